# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has that a later release of Kubernetes refuses, whichever release that is. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.instances import ConfigFile, Instances
from ..evidence.answers.node.kubelet import Distribution, Kubelet, KubeletUnit
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from ..parsers import pflag
from . import installer, release_refusal
from .kubelet import config as kubelet_config
from .kubelet.config import KubeletConfig
from .release_refusal import KUBELET, SCHEDULER, Refusal

MAX_REFUSALS, MAX_LINES = 100, 1000
_NAME = re.compile(r"^\s*(?:export\s+)?\w+=")
_ASSIGNMENT = re.compile(_NAME.pattern + ".*")
_SCHEDULER_VERSION = re.compile(
    r"(?m)^apiVersion:[ \t]*[\"']?kubescheduler\.config\.k8s\.io/(v\w{1,20})[\"']?[ \t]*(?:#.*)?$"
)
_ARGUMENTS = re.compile(r"(kubelet|kube-apiserver|kube-controller-manager|kube-scheduler)-arg\Z")


@dataclass(frozen=True)
class NextRelease:
    """What decides whether a host can take a later release.

    refused: settings that a later release refuses; those of static pods are in ControlPlane
    owner: the installer that writes these settings again with its own release, else empty
    unread: why the kubelet's settings are not all known, empty where they are
    cgroup: the version of the host's cgroups, such as v1
    takes_v1: whether the kubelet is told to run on cgroup v1; None where it is not known
    dockershim: whether a kubelet of up to 1.23 uses Docker by itself; None where it is not known
    """

    refused: tuple[Refusal, ...] = ()
    owner: str = ""
    unread: str = ""
    cgroup: str = ""
    takes_v1: bool | None = None
    dockershim: bool | None = None


def extract(document: Mapping[str, Any]) -> NextRelease:
    """Return what one node's evidence has for a later release."""
    kubelet = contract.answer(document, Kubelet)
    config = kubelet_config.read(kubelet)
    owner = installer.owner_of(document) or ""
    refused = [*_of_files(config)]
    if kubelet.distribution is not None:
        refused += _of_distribution(kubelet.distribution)
    if not owner:
        refused += _of_command_lines(kubelet, config)
        refused += _of_processes(contract.answer(document, Instances))
    return NextRelease(
        tuple(_distinct(refused))[:MAX_REFUSALS],
        owner,
        _unread(kubelet, config),
        one_line(contract.answer(document, System).cgroup or "", 20),
        _takes_v1(config),
        _dockershim(config),
    )


def _distinct(refused: Iterable[Refusal]) -> list[Refusal]:
    """Return each refusal once, where a file has it without what the running process has."""
    rows = list(dict.fromkeys(refused))
    in_files = {row.key for row in rows if row.path}
    return [row for row in rows if row.path or row.key not in in_files]


def _unread(kubelet: Kubelet, config: KubeletConfig) -> str:
    if kubelet.distribution is not None:
        return ""
    return config.problem


def _of_files(config: KubeletConfig) -> Iterator[Refusal]:
    """Yield what is refused of the feature gates in the kubelet's configuration."""
    for (gate, *_rest), setting in config.rows("featureGates"):
        for kind, since in release_refusal.of_gate(gate, setting.value):
            text = one_line(setting.text, release_refusal.SHOWN)
            place = (one_line(setting.path or "", 300), setting.line)
            yield Refusal(kind, KUBELET, gate, since, setting.value, text, *place)


def _of_command_lines(kubelet: Kubelet, config: KubeletConfig) -> Iterator[Refusal]:
    """Yield what is refused of the kubelet's command line, as it runs and as it starts next."""
    unit = kubelet.unit or KubeletUnit()
    for file in unit.environment_files:
        yield from _of_environment(file.text or "", file.path)
    if not kubelet_config.inside(config.argv):
        yield from release_refusal.of_words(KUBELET, config.argv)
        yield from release_refusal.of_words(KUBELET, unit.start_words)


@functools.lru_cache(kubelet_config.TEXTS)
def _of_environment(text: str, path: str) -> tuple[Refusal, ...]:
    """Return what is refused of the arguments in an EnvironmentFile= of the kubelet's unit."""
    refused: list[Refusal] = []
    continued = False
    for number, line in enumerate(text.splitlines()[:MAX_LINES], 1):
        assigned = _ASSIGNMENT.fullmatch(line) is not None
        if assigned or continued:
            value = _NAME.sub("", line).strip().rstrip("\\").strip().strip("\"'")
            words = pflag.shell_words(value)
            places = [(one_line(path, 300), number)] * len(words)
            refused += release_refusal.of_words(KUBELET, words, places)
        continued = line.rstrip().endswith("\\") and (continued or assigned)
    return tuple(refused)


def _of_distribution(distribution: Distribution) -> Iterator[Refusal]:
    """Yield what is refused of the arguments in the configuration of k3s or RKE2."""
    for file in distribution.files:
        for setting in file.settings:
            match = _ARGUMENTS.match(setting.key)
            if match and setting.value:
                place = (one_line(file.path, 300), setting.line)
                yield from release_refusal.of_words(match[1], [f"--{setting.value}"], [place])


def _of_processes(instances: Instances) -> Iterator[Refusal]:
    """Yield what is refused of the control plane's processes, and of the scheduler's file."""
    for process in instances.processes:
        if process.pod_uid and not process.static:
            continue  # of a cluster within this one
        yield from release_refusal.of_words(process.component, process.argv)
        if process.config is not None:
            yield from _of_scheduler_file(process.config)


def _of_scheduler_file(file: ConfigFile) -> Iterator[Refusal]:
    match = _SCHEDULER_VERSION.search(file.text or "")
    if match:
        line = 1 + match.string.count("\n", 0, match.start())
        place = (one_line(file.host_path or file.path, 300), line)
        yield from release_refusal.of_version(SCHEDULER, match[1], match[0], place)


def _takes_v1(config: KubeletConfig) -> bool | None:
    """Return whether failCgroupV1 is false; None where its value is not known."""
    value, setting = config.switch("failCgroupV1", "fail-cgroupv1")
    if not config.certain(setting):
        return None
    if setting is None:
        return False
    if value is None:
        return None
    return not value


def _dockershim(config: KubeletConfig) -> bool | None:
    """Return whether a kubelet that still has dockershim uses it; None where that is not known."""
    if not config.argv or kubelet_config.inside(config.argv):
        return None
    return pflag.string_flag(config.argv, "container-runtime") in (None, "docker")
