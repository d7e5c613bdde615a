# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet's configuration as its next start would read it: command line, drop-ins, file. Pure.

A flag wins over every file, a later drop-in over an earlier one and over the file; maps are merged
key by key, a list is replaced as a whole, and a flag that is a map replaces the files' whole map.
Temporary arguments of a reset do not count. A kubelet inside another program (k3s,
MicroK8s) has no command line of its own; k3s logs the one that it gives it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from yaml.nodes import MappingNode, Node, SequenceNode

from ....module_utils.shared import quantity, restart_impact
from ...evidence import memoize
from ...evidence.answers.file_record import FileRecord
from ...evidence.answers.node.kubelet import Kubelet, KubeletProcess, KubeletUnit
from ...parsers import pflag, pod_manifest
from ...safe_io import yaml_nodes
from ..result import EvidenceRef
from . import dropin

# Nodes of one cluster mostly have the same file: as many different ones as clusters have groups of
# nodes.
TEXTS = 32
USUAL_ROOT = "/var/lib/kubelet"
# MicroK8s has it in a file of arguments: --root-dir=${SNAP_COMMON}/var/lib/kubelet
MICROK8S_ROOT = "/var/snap/microk8s/common/var/lib/kubelet"


@dataclass(frozen=True)
class Setting:
    """Value as it was written, and its place.

    The place is a file's line, or the command line (path and line None).
    """

    value: str
    text: str
    path: str | None = None
    line: int | None = None

    def proof(self, host: str) -> EvidenceRef:
        """Return its place, for a report."""
        kind = "process"
        if self.path:
            kind = "file"
        return EvidenceRef(kind, host, path=self.path, line=self.line, text=self.text)


@dataclass(frozen=True)
class KubeletConfig:
    """Configuration of a kubelet.

    values: the values by the path of their keys
    problem: why not all of it can be read, in one clause, else empty
    tops: the place that decides each first-level key, also one that holds an empty list or map
    """

    argv: tuple[str, ...]
    values: Mapping[tuple[str, ...], Setting]
    problem: str = ""
    tops: Mapping[str, Setting] = field(default_factory=dict)

    def setting(self, key: str, flag: str) -> Setting | None:
        """Return a scalar, None where nothing sets it."""
        value = pflag.string_flag(self.argv, flag)
        if value is None:
            return self.values.get((key,))
        return Setting(value, f"--{flag}={value}")

    def switch(self, key: str, flag: str) -> tuple[bool | None, Setting | None]:
        """Return a boolean (None for what is none) and what sets it.

        A bare flag is true, and does not take the next word.
        """
        use = pflag.bool_flag(self.argv, flag)
        if use is not None:
            return use.value, Setting(use.raw.partition("=")[2] or "true", use.raw)
        setting = self.values.get((key,))
        if setting is None:
            return None, None
        return yaml_nodes.boolean(setting.value), setting

    def certain(self, setting: Setting | None) -> bool:
        """Return whether nothing that could not be read may override it: a flag wins over files."""
        return not self.problem or (setting is not None and setting.path is None)

    def mapping(self, key: str, flag: str) -> dict[str, Setting]:
        """Return a map of scalars: kubeReserved, systemReserved, cpuManagerPolicyOptions."""
        uses = pflag.string_flags(self.argv, flag)
        if not uses:
            return {path[0]: setting for path, setting in self.rows(key) if len(path) == 1}
        settings: dict[str, Setting] = {}
        for use in uses:
            for pair in filter(str.strip, use.split(",")):
                name, _equals, value = pair.partition("=")
                settings[name.strip()] = Setting(value.strip(), f"--{flag}={use}")
        return settings

    def rows(self, key: str) -> list[tuple[tuple[str, ...], Setting]]:
        """Return (path below it, scalar) of all that the files have under a first-level key."""
        return [(path[1:], value) for path, value in self.values.items() if path[0] == key]


def pending_changes(kubelet: Kubelet, own_files: Sequence[str] = ()) -> list[str]:
    """Return the clauses about what the kubelet's next start would load, but for these files."""
    process, unit = kubelet.process or KubeletProcess(), kubelet.unit or KubeletUnit()
    evidence = {
        "process": {
            "started_at": process.started_at,
            "exe": process.exe,
            "exe_deleted": process.exe_deleted,
        },
        "unit": {
            "need_daemon_reload": unit.need_daemon_reload,
            "environment_files": [_times(file) for file in unit.environment_files],
        },
        "config": _times(kubelet.config) if kubelet.config is not None else None,
        "config_dropins": [_times(file) for file in kubelet.config_dropins],
    }
    clauses: list[str] = restart_impact.of_kubelet(evidence, own_files)
    return clauses


def _times(file: FileRecord) -> dict[str, Any]:
    return {"path": file.path, "mtime": file.mtime}


@memoize.last
def read(kubelet: Kubelet) -> KubeletConfig:
    """Return the configuration from the answer of the collector kubelet. Never raises."""
    values: dict[tuple[str, ...], Setting] = {}
    tops: dict[str, Setting] = {}
    temporary = dropin.lent(kubelet)
    argv = tuple(word for word in _argv(kubelet) if word not in temporary)
    problems = [_unreadable(argv)]
    for file in (kubelet.config, *kubelet.config_dropins):
        if file is None:
            continue
        try:
            _take(file, values, tops)
            problem = _file_problem(file)
        except pod_manifest.ManifestError as error:
            problem = error.problem
        if problem:
            problems.append(f"{file.path}: {problem}")
    return KubeletConfig(argv, values, next(filter(None, problems), ""), tops)


def _argv(kubelet: Kubelet) -> tuple[str, ...]:
    """Return the kubelet's command line, of one within k3s that which k3s logs for it."""
    if kubelet.distribution is not None and kubelet.distribution.argv:
        return kubelet.distribution.argv
    return kubelet.argv


def _file_problem(file: FileRecord) -> str:
    if file.error:
        return file.error
    if file.text is None:
        return "it is no text"
    return ""


def _unreadable(argv: tuple[str, ...]) -> str:
    """Return why the command line does not show everything, else ""."""
    if not argv:
        return "its command line is not known"
    program = inside(argv)
    if program == "k3s":
        return (
            "it is part of k3s, which logs the kubelet's command line at each start: the journal"
            " does not have it any more, and has it again after the next start"
        )
    if program:
        return f"it is part of {program}, whose command line is not a kubelet's"
    if pflag.string_flag(argv, "dynamic-config-dir"):
        return "--dynamic-config-dir may give it another configuration through the API"
    return ""


def other_root(argv: Sequence[str]) -> str:
    """Return the folder of a kubelet where it is not the usual one of all kubelets, else ""."""
    root = (pflag.string_flag(argv, "root-dir") or "").rstrip("/")
    if not root and inside(argv) == "kubelite":
        root = MICROK8S_ROOT
    return "" if root == USUAL_ROOT else root


def inside(argv: Sequence[str]) -> str:
    """Return the program that contains this kubelet (k3s, kubelite), whose arguments are its own.

    It is empty for a kubelet with a program of its own.
    """
    names = [word.rpartition("/")[2] for word in argv[:2]]
    if not argv or "kubelet" in names:
        return ""
    return names[0]


def _take(
    file: FileRecord, values: dict[tuple[str, ...], Setting], tops: dict[str, Setting]
) -> None:
    """Merge one file into the values of earlier files. Raises ManifestError."""
    text = pod_manifest.parseable(file.text or "", file.masked)
    settings = _settings(text, file.path)
    for key in settings.whole:
        _remove(values, key)
    values.update(settings.values)
    tops.update(settings.tops)


class _FileSettings(NamedTuple):
    """The settings of one file.

    whole: the first-level keys that replace all that earlier files had there
    """

    values: dict[tuple[str, ...], Setting]
    tops: dict[str, Setting]
    whole: list[str]


@functools.lru_cache(TEXTS)
def _settings(text: str, path: str) -> _FileSettings:
    """Return the settings of a file, which many nodes have in common."""
    scalars, keys = _parsed(text)
    return _FileSettings(
        {names: Setting(value, shown, path, line) for names, value, shown, line in scalars},
        {key: Setting("", key, path, line) for key, line, _whole in keys},
        [key for key, _line, whole in keys if whole],
    )


def _remove(values: dict[tuple[str, ...], Setting], key: str) -> None:
    for path in [path for path in values if path[0] == key]:
        del values[path]


@functools.lru_cache(TEXTS)
def _parsed(
    text: str,
) -> tuple[tuple[tuple[tuple[str, ...], str, str, int], ...], tuple[tuple[str, int, bool], ...]]:
    """Return the scalars and the first-level keys of a file.

    A scalar is (path of keys, value, both as one text, line), a key (key, line, whether it replaces
    all that was there). A map is merged key by key; a null, like a list, replaces all.
    """
    root, pairs = pod_manifest.compose(text), []
    if isinstance(root, MappingNode):
        pairs = root.value
    unset = {(yaml_nodes.text_of(key),) for key, value in pairs if yaml_nodes.nothing(value)}
    named = [
        (tuple(map(str, keys)), value, line) for keys, value, line in pod_manifest.scalars(text)
    ]
    scalars = tuple(
        (keys, value, f"{'.'.join(keys)}: {value}", line)
        for keys, value, line in named
        if keys not in unset
    )
    top_keys = tuple(
        (yaml_nodes.text_of(key), key.start_mark.line + 1, _whole(value)) for key, value in pairs
    )
    return scalars, top_keys


def _whole(node: Node) -> bool:
    """Return whether this value replaces what an earlier file has under its key."""
    return isinstance(node, SequenceNode) or yaml_nodes.nothing(node)


def cpus(text: str) -> Fraction | None:
    """Parse a quantity of CPUs, such as 500m, 2 or 1.5; return None where it is none."""
    number: Fraction | None = quantity.parse(text)
    return number
