# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of one kubelet, changed in the file that decides; all else is kept. Pure.

The file is this node's own. What kubeadm or an inventory would write over it at the next upgrade is
reported next to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..evidence.answers.file_record import FileRecord
from ..evidence.answers.node.kubelet import Kubelet
from ..models.kubelet import config
from ..models.kubelet.config import KubeletConfig
from ..parsers import pod_manifest
from . import draft, scalar
from .draft import EditRefused, Source

# Setting of a KubeletConfiguration -> the flag that would overrule it.
FLAGS = {"cpuManagerPolicy": "cpu-manager-policy", "reservedSystemCPUs": "reserved-cpus"}
# What a kubelet takes where nothing is given.
DEFAULTS = {"cpuManagerPolicy": "none", "reservedSystemCPUs": ""}


@dataclass(frozen=True)
class Edited:
    """Edited configuration.

    changes: the changes of files for the node, one per file
    kubelet: the answer of its collector as it would be afterwards
    diff: the difference for operators
    told: the same in words
    """

    changes: tuple[dict[str, Any], ...]
    kubelet: Kubelet
    diff: str
    told: str


def edited(kubelet: Kubelet, settings: Mapping[str, str]) -> Edited:
    """Return the edit that makes the kubelet's next start read these settings.

    settings: of FLAGS, to their values. An empty list counts as not set. Raises EditRefused with
    the place and the way out.
    """
    read = config.read(kubelet)
    by_path: dict[str, dict[str, str]] = {}
    summaries = []
    for key, value in settings.items():
        if _value(read, key) == value:
            continue
        summaries.append(_summary(read, key, value))
        by_path.setdefault(_place(kubelet, read, key), {})[key] = value
    changes, diff, after = [], "", kubelet
    for path, values in by_path.items():
        change, text, difference = _in_file(_record(kubelet, path), values)
        changes.append(change)
        diff += difference
        after = _with(after, path, text)
    _verify(after, settings)
    return Edited(tuple(changes), after, diff, ", ".join(summaries))


def _value(read: KubeletConfig, key: str) -> str:
    """Return the value of a setting, or its default."""
    setting = read.setting(key, FLAGS[key])
    if setting is None:
        return DEFAULTS[key]
    return setting.value


def _summary(read: KubeletConfig, key: str, value: str) -> str:
    setting, former = read.setting(key, FLAGS[key]), "not set"
    if setting is not None:
        former = setting.value
    return f"{key}: {value or 'none'} (was {former})"


def _place(kubelet: Kubelet, read: KubeletConfig, key: str) -> str:
    """Return the file that decides, or would decide."""
    setting = read.setting(key, FLAGS[key])
    if setting is not None and setting.path is None:
        raise EditRefused(
            "the kubelet's command line",
            None,
            f"it sets --{FLAGS[key]}, which overrules every file",
            "change it where the unit is made",
        )
    path = (kubelet.config or FileRecord()).path
    if setting is not None:
        path = setting.path or ""
    if not path:
        raise EditRefused(
            "the kubelet's command line",
            None,
            "it names no --config file",
            f"give this kubelet {key} where the unit is made",
        )
    return path


def _record(kubelet: Kubelet, path: str) -> FileRecord:
    return next(
        file
        for file in (kubelet.config, *kubelet.config_dropins)
        if file is not None and file.path == path
    )


def _in_file(file: FileRecord, values: Mapping[str, str]) -> tuple[dict[str, Any], str, str]:
    """Return (the change for the node, the text afterwards, its difference).

    All is in one write, of what lies between the first and the last change. The text has letters
    where the file is masked, because a masked scalar is no YAML; the difference has the mask.
    """
    source = Source.from_record(asdict(file))
    former = text = pod_manifest.parseable(source.text, source.masked)
    for key, value in values.items():
        text = scalar.set_scalar(Source(text, source.path), [key], value).text
    splice = _splice(former.encode("utf-8"), text.encode("utf-8"))
    if source.hides(splice.start, splice.end):
        raise EditRefused(
            source.path, None, "a secret stands at the place to change", draft.BY_HAND
        )
    shown = source.text.encode("utf-8")
    change = draft.change_of(source.path, source.sha256, [splice])
    return change, text, draft.unified(source.path, shown, draft.apply(shown, [splice]))


def _splice(old: bytes, new: bytes) -> draft.Splice:
    """Return the one splice between the common beginning and the common end."""
    begin = _common(old, new)
    behind = _common(old[begin:][::-1], new[begin:][::-1])
    end = len(old) - behind
    return draft.Splice(begin, end, old[begin:end], new[begin : len(new) - behind])


def _common(first_bytes: bytes, second_bytes: bytes) -> int:
    """Return the length of the common beginning."""
    pairs = zip(first_bytes, second_bytes, strict=False)
    differences = (place for place, (first, second) in enumerate(pairs) if first != second)
    return next(differences, min(len(first_bytes), len(second_bytes)))


def _with(kubelet: Kubelet, path: str, text: str) -> Kubelet:
    """Return the answer with another text in one file."""

    def updated(file: FileRecord) -> FileRecord:
        if file.path == path:
            return replace(file, text=text, size=len(text.encode("utf-8")), masked=())
        return file

    return replace(
        kubelet,
        config=kubelet.config and updated(kubelet.config),
        config_dropins=tuple(map(updated, kubelet.config_dropins)),
    )


def _verify(kubelet: Kubelet, settings: Mapping[str, str]) -> None:
    """Read the settings again: several edits of one file must not interfere."""
    read = config.read(kubelet)
    for key, value in settings.items():
        if read.problem or _value(read, key) != value:
            raise EditRefused(
                _path(kubelet, read, key),
                None,
                f"{key} would not be {value} afterwards",
                draft.BY_HAND,
            )


def _path(kubelet: Kubelet, read: KubeletConfig, key: str) -> str:
    """Return the file that decides about a setting, as far as one is known."""
    setting = read.setting(key, FLAGS[key])
    if setting is not None and setting.path:
        return setting.path
    if kubelet.config is not None:
        return kubelet.config.path
    return next(iter(file.path for file in kubelet.config_dropins), "the kubelet's configuration")
