# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of one kubelet's configuration changed where they have the last word, comments and all
else kept. Pure.

The file is this node's own. What kubeadm or an inventory would write over it at the next upgrade is
said beside it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..models.kubelet import config as kubelet_config
from ..models.kubelet.config import KubeletConfig
from ..parsers import pod_manifest as manifest
from . import draft as edit_source
from . import scalar as edit_scalar
from .draft import EditRefused, Source

# Setting of a KubeletConfiguration -> the flag that would overrule it.
FLAGS = {"cpuManagerPolicy": "cpu-manager-policy", "reservedSystemCPUs": "reserved-cpus"}
# What a kubelet takes where nothing is given.
DEFAULTS = {"cpuManagerPolicy": "none", "reservedSystemCPUs": ""}


@dataclass(frozen=True)
class Edited:
    """changes: for the node, a file each; kubelet: the evidence as it would be then; diff and told.

    For people.
    """

    changes: tuple[dict[str, Any], ...]
    kubelet: Mapping[str, Any]
    diff: str
    told: str


def edited(kubelet: Mapping[str, Any], wanted: Mapping[str, str]) -> Edited:
    """What makes the kubelet's next start read these settings. wanted: of FLAGS, to their values.

    An empty list as if none had been given.

    EditRefused with the place and the way out.
    """
    config, by_path, told = kubelet_config.read(kubelet), {}, []
    for key, value in wanted.items():
        setting = config.setting(key, FLAGS[key])
        if (setting.value if setting else DEFAULTS[key]) == value:
            continue
        path = _place(kubelet, config, key)
        told.append(f"{key}: {value or 'none'} (was {setting.value if setting else 'not set'})")
        by_path.setdefault(path, {})[key] = value
    changes, diff, after = [], "", kubelet
    for path, values in by_path.items():
        change, text, lines = _in_file(_record(kubelet, path), values)
        changes.append(change)
        diff += lines
        after = _with(after, path, text)
    _prove(after, wanted)
    return Edited(tuple(changes), after, diff, ", ".join(told))


def _place(kubelet: Mapping[str, Any], config: KubeletConfig, key: str) -> str:
    """The file that has, or would get, the last word."""
    setting = config.setting(key, FLAGS[key])
    if setting is not None and setting.path is None:
        raise EditRefused(
            "the kubelet's command line",
            None,
            f"it sets --{FLAGS[key]}, which overrules every file",
            "change it where the unit is made",
        )
    path = setting.path if setting else (kubelet.get("config") or {}).get("path")
    if not path:
        raise EditRefused(
            "the kubelet's command line",
            None,
            "it names no --config file",
            f"give this kubelet {key} where the unit is made",
        )
    return str(path)


def _record(kubelet: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    return next(
        record
        for record in (kubelet.get("config"), *(kubelet.get("config_dropins") or ()))
        if record and record.get("path") == path
    )


def _in_file(
    record: Mapping[str, Any], values: Mapping[str, str]
) -> tuple[dict[str, Any], str, str]:
    """(the change for the node, the text afterwards, its difference).

    All in one write, of what lies between the first and the last change.

    The text has letters where the file is masked, because a masked scalar is no YAML; what is shown
    has the mask.
    """
    source = Source.of(record)
    was = text = manifest.parseable(source.text, source.masked)
    for key, value in values.items():
        text = edit_scalar.set_scalar(Source(text, source.path), [key], value).text
    old, new = was.encode("utf-8"), text.encode("utf-8")
    begin = len(os.path.commonprefix([old, new]))
    behind = len(os.path.commonprefix([old[begin:][::-1], new[begin:][::-1]]))
    end = len(old) - behind
    if source.hides(begin, end):
        raise EditRefused(
            source.path, None, "a secret stands at the place to change", edit_source.BY_HAND
        )
    splice = edit_source.Splice(begin, end, old[begin:end], new[begin : len(new) - behind])
    shown = source.text.encode("utf-8")
    change = edit_source.change_of(source.path, source.sha256, [splice])
    return change, text, edit_source.unified(source.path, shown, edit_source.apply(shown, [splice]))


def _with(kubelet: Mapping[str, Any], path: str, text: str) -> dict[str, Any]:
    def new(record: Any) -> Any:
        return (
            {**record, "text": text, "size": len(text.encode("utf-8")), "masked": []}
            if record and record.get("path") == path
            else record
        )

    return {
        **kubelet,
        "config": new(kubelet.get("config")),
        "config_dropins": [new(one) for one in kubelet.get("config_dropins") or ()],
    }


def _prove(kubelet: Mapping[str, Any], wanted: Mapping[str, str]) -> None:
    """Read again: several edits of one file must not have come into each other's way."""
    config = kubelet_config.read(kubelet)
    for key, value in wanted.items():
        setting = config.setting(key, FLAGS[key])
        if config.problem or (setting.value if setting else DEFAULTS[key]) != value:
            raise EditRefused(
                str((kubelet.get("config") or {}).get("path")),
                None,
                f"{key} would not be {value} afterwards",
                edit_source.BY_HAND,
            )
