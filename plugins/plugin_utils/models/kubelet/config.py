# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet's configuration as its next start would read it: command line, drop-ins, file. Pure.

A flag wins over every file, a later drop-in over an earlier one and over the file; maps are merged
key by key, a list is replaced as a whole, and a flag that is a map replaces the files' whole map.
What a reset lends a kubelet for a drain is not its own. A kubelet inside another program (k3s,
MicroK8s) has no command line of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from yaml.nodes import MappingNode, Node, SequenceNode

from ....module_utils.shared import quantity
from ...evidence import memoize as remember
from ...parsers import pflag as flags
from ...parsers import pod_manifest as manifest
from ...safe_io import yaml_nodes
from .. import control_plane
from ..result import Proof
from . import dropin as kubelet_dropin

# Nodes of one cluster mostly have the same file: as many different ones as clusters have groups of
# nodes.
TEXTS = 32


@dataclass(frozen=True)
class Setting:
    """A value as it was written, and where.

    A file's line, or the command line (path and line None).
    """

    value: str
    text: str
    path: str | None = None
    line: int | None = None

    def proof(self, host: str) -> Proof:
        """Where it stands, for a report."""
        return Proof(
            "file" if self.path else "process", host, path=self.path, line=self.line, text=self.text
        )


@dataclass(frozen=True)
class KubeletConfig:
    """values: by the path of their keys. problem: why not all of it can be read, in one clause.

    Empty where all was.

    tops: where each first-level key has its last word, also one that holds an empty list or map.
    """

    argv: tuple[str, ...]
    values: Mapping[tuple[str, ...], Setting]
    problem: str = ""
    tops: Mapping[str, Setting] = field(default_factory=dict)

    def setting(self, key: str, flag: str) -> Setting | None:
        """A scalar, None where nothing sets it."""
        given = flags.string_flag(self.argv, flag)
        return Setting(given, f"--{flag}={given}") if given is not None else self.values.get((key,))

    def switch(self, key: str, flag: str) -> tuple[bool | None, Setting | None]:
        """A boolean, and what sets it; None for what is none.

        A bare flag is true, and does not take the next word.
        """
        given = flags.bool_flag(self.argv, flag)
        if given is not None:
            return given.value, Setting(given.raw.partition("=")[2] or "true", given.raw)
        found = self.values.get((key,))
        return (yaml_nodes.boolean(found.value) if found else None), found

    def certain(self, setting: Setting | None) -> bool:
        """Whether nothing that could not be read may say otherwise: a flag has the last word."""
        return not self.problem or (setting is not None and setting.path is None)

    def mapping(self, key: str, flag: str) -> dict[str, Setting]:
        """A map of scalars: kubeReserved, systemReserved, cpuManagerPolicyOptions."""
        given = flags.string_flags(self.argv, flag)
        if not given:
            return {
                path[1]: value
                for path, value in self.values.items()
                if len(path) == 2 and path[0] == key
            }
        pairs = [
            (one, part.partition("=")) for one in given for part in one.split(",") if part.strip()
        ]
        return {
            name.strip(): Setting(value.strip(), f"--{flag}={one}")
            for one, (name, dummy, value) in pairs
        }

    def rows(self, key: str) -> list[tuple[tuple[str, ...], Setting]]:
        """(the path below it, the scalar) of all that the files have under a first-level key."""
        return [(path[1:], value) for path, value in self.values.items() if path[0] == key]


@remember.last
def read(kubelet: Mapping[str, Any]) -> KubeletConfig:
    """What the collector kubelet found. Never raises."""
    values: dict[tuple[str, ...], Setting] = {}
    tops: dict[str, Setting] = {}
    lent = kubelet_dropin.lent(kubelet)
    argv = tuple(str(word) for word in kubelet.get("argv") or () if word not in lent)
    problem = _unreadable(argv)
    for record in (kubelet.get("config"), *(kubelet.get("config_dropins") or ())):
        if not isinstance(record, Mapping):
            continue
        trouble = record.get("error") or ("" if record.get("text") is not None else "it is no text")
        try:
            _take(record, values, tops)
        except manifest.ManifestError as error:
            trouble = error.problem
        problem = problem or (f"{record.get('path')}: {trouble}" if trouble else "")
    return KubeletConfig(argv, values, problem, tops)


def _unreadable(argv: tuple[str, ...]) -> str:
    """Why the command line does not tell all."""
    if not argv:
        return "its command line is not known"
    if inside(argv):
        return f"it is part of {inside(argv)}, whose command line is not a kubelet's"
    if flags.string_flag(argv, "dynamic-config-dir"):
        return "--dynamic-config-dir may give it another configuration through the API"
    return ""


def inside(argv: Sequence[str]) -> str:
    """The program that holds this kubelet (k3s, kubelite), whose command line is not a kubelet's.

    Empty where it is one of its own.
    """
    return (
        ""
        if "kubelet" in [word.rpartition("/")[2] for word in argv[:2]] or not argv
        else argv[0].rpartition("/")[2]
    )


def _take(
    record: Mapping[str, Any], values: dict[tuple[str, ...], Setting], tops: dict[str, Setting]
) -> None:
    """Merge one file into what the files before it say. Raises ManifestError."""
    path = str(record.get("path"))
    text = manifest.parseable(str(record.get("text") or ""), control_plane.spans(record))
    found, keys = _parsed(text)
    for key, line, whole in keys:
        for old in [one for one in values if whole and one[0] == key]:
            del values[old]
        tops[key] = Setting("", key, path, line)
    values.update((names, Setting(value, shown, path, line)) for names, value, shown, line in found)


@functools.lru_cache(TEXTS)
def _parsed(
    text: str,
) -> tuple[tuple[tuple[tuple[str, ...], str, str, int], ...], tuple[tuple[str, int, bool], ...]]:
    """((path of keys, value, both as one text, line) of each scalar, (key, line, whether it
    replaces all) of each first-level key).
    """
    root = manifest.compose(text)
    pairs: list[tuple[Node, Node]] = root.value if isinstance(root, MappingNode) else []
    unset = {(yaml_nodes.text_of(key),) for key, value in pairs if yaml_nodes.nothing(value)}
    named = [(tuple(map(str, keys)), value, line) for keys, value, line in manifest.scalars(text)]
    found = tuple(
        (keys, value, f"{'.'.join(keys)}: {value}", line)
        for keys, value, line in named
        if keys not in unset
    )
    # A map is merged key by key. What is nothing, like a list, takes the place of all that was
    # there.
    keys = tuple(
        (yaml_nodes.text_of(key), key.start_mark.line + 1, _whole(value)) for key, value in pairs
    )
    return found, keys


def _whole(node: Node) -> bool:
    """Whether this value replaces what an earlier file has under its key."""
    return isinstance(node, SequenceNode) or yaml_nodes.nothing(node)


def cpus(text: str) -> Fraction | None:
    """A quantity of CPUs, such as 500m, 2 or 1.5; None where it is none."""
    return quantity.parse(text)
