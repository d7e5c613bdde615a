# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies and options of managers with which no kubelet starts. Pure.

They are of the CPU, memory and topology manager. The rules are from the sources of 1.14.0 to
1.36.3: pkg/kubelet/cm, pkg/kubelet/apis/config/validation, pkg/features.

| key | known since | what decides |
|---|---|---|
| cpuManagerPolicy | 1.8 | up to 1.15 an unknown policy is none; CPUManager off: ignored (to 1.25) |
| topologyManagerPolicy | 1.16 | TopologyManager: off in 1.16 and 1.17, of no effect from 1.27 |
| topologyManagerScope | 1.20 | the same |
| topologyManagerPolicyOptions | 1.26 | gate off in 1.26, 1.27; with none ignored from 1.28 |
| memoryManagerPolicy | 1.21 | MemoryManager: off in 1.21, of no effect from 1.32 |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .. import cpu_manager_options
from .config import Setting
from .configured_value import (
    NEWEST,
    ConfiguredKubelet,
    Found,
    Refusal,
    Release,
    listed,
    release_name,
)

CPU, TOPOLOGY, SCOPE, MEMORY = (
    "cpuManagerPolicy",
    "topologyManagerPolicy",
    "topologyManagerScope",
    "memoryManagerPolicy",
)
CPU_OPTIONS, TOPOLOGY_OPTIONS = CPU + "Options", TOPOLOGY + "Options"
FLAGS: Mapping[str, str] = {
    CPU: "cpu-manager-policy",
    CPU_OPTIONS: "cpu-manager-policy-options",
    TOPOLOGY: "topology-manager-policy",
    TOPOLOGY_OPTIONS: "topology-manager-policy-options",
    SCOPE: "topology-manager-scope",
    MEMORY: "memory-manager-policy",
}
ACCEPTED: Mapping[str, tuple[str, ...]] = {
    CPU: ("none", "static"),
    TOPOLOGY: ("none", "best-effort", "restricted", "single-numa-node"),
    SCOPE: ("container", "pod"),
    MEMORY: ("None", "Static"),
}
SINCE: Mapping[str, Release] = {
    CPU: (1, 8),
    TOPOLOGY: (1, 16),
    SCOPE: (1, 20),
    MEMORY: (1, 21),
    CPU_OPTIONS: (1, 22),
    TOPOLOGY_OPTIONS: (1, 26),
}
CLOSEST, MOST_NODES = "prefer-closest-numa-nodes", "max-allowable-numa-nodes"
# Option -> the releases that knew it first, that had it as beta and that had it as stable.
STAGES: Mapping[str, tuple[Release, Release, Release]] = {
    CLOSEST: ((1, 26), (1, 28), (1, 32)),
    MOST_NODES: ((1, 31), (1, 31), (1, 35)),
}
NUMA_NODES = 8  # that a topology manager takes, unless an option says more
_WHOLE = re.compile(r"[+-]?[0-9]{1,9}")  # of strconv.Atoi


def refused(kubelet: ConfiguredKubelet) -> Iterator[Found]:
    """Yield the problems of the policies and their options."""
    yield from _cpu(kubelet)
    yield from _topology(kubelet)
    yield from memory(kubelet)


def _cpu(kubelet: ConfiguredKubelet) -> Iterator[Found]:
    policy, setting = kubelet.scalar(CPU, FLAGS[CPU], "none")
    gated = kubelet.release is None or kubelet.release < (1, 26)
    if gated and not kubelet.gate("CPUManager", True, "AllBeta"):
        return

    def judge(release: Release) -> str | None:
        if release < (1, 16):
            return ""
        return _value(CPU, policy, setting, release)

    refusals = kubelet.refused(CPU, SINCE[CPU], judge, setting)
    yield from refusals
    options = kubelet.node.options
    if refusals or not options:
        return
    settings = kubelet.config.mapping(CPU_OPTIONS, FLAGS[CPU_OPTIONS]).values()
    topology = kubelet.scalar(TOPOLOGY, FLAGS[TOPOLOGY], "none")[0]

    def judge_options(release: Release) -> str | None:
        reason = cpu_manager_options.misfits(policy, options, kubelet.node.gates, release, topology)
        if reason or release <= NEWEST:
            return reason
        if all(map(_is_stable, options)):
            return ""
        return None

    yield from kubelet.refused(CPU_OPTIONS, SINCE[CPU_OPTIONS], judge_options, *settings)


def _topology(kubelet: ConfiguredKubelet) -> Iterator[Found]:
    policy, setting = kubelet.scalar(TOPOLOGY, FLAGS[TOPOLOGY], "none")
    wrong = kubelet.refused(
        TOPOLOGY,
        SINCE[TOPOLOGY],
        lambda release: _gated(kubelet, TOPOLOGY, policy, setting, release),
        setting,
    )
    yield from wrong
    scope, set_by = kubelet.scalar(SCOPE, FLAGS[SCOPE], "container")
    yield from kubelet.refused(
        SCOPE, SINCE[SCOPE], lambda release: _gated(kubelet, SCOPE, scope, set_by, release), set_by
    )
    if wrong:
        return
    options = kubelet.config.mapping(TOPOLOGY_OPTIONS, FLAGS[TOPOLOGY_OPTIONS])
    if options:
        yield from kubelet.refused(
            TOPOLOGY_OPTIONS,
            SINCE[TOPOLOGY_OPTIONS],
            lambda release: _options(kubelet, policy, options, release),
            *options.values(),
        )
    if policy != "none":
        yield from _nodes(kubelet, policy, setting, options)


def _is_stable(option: str) -> bool:
    """Return whether an option is stable in the newest known release; another may become so."""
    return option in cpu_manager_options.STAGES and cpu_manager_options.STAGES[option][2] <= NEWEST


def _gated(
    kubelet: ConfiguredKubelet, key: str, value: str, setting: Setting | None, release: Release
) -> str | None:
    """Judge a topology manager's policy or scope: up to 1.26 a gate decides too."""
    reason = _value(key, value, setting, release)
    if reason != "" or value == ACCEPTED[key][0] or release >= (1, 27):
        return reason
    if _is_gate_on(kubelet, "TopologyManager", release, (1, 18)):
        return ""
    return _off(_shown(key, value, setting), release, "TopologyManager")


def _off(shown: str, release: Release, gate: str) -> str:
    return (
        f"{shown}; Kubernetes {release_name(release)} needs the feature gate {gate}, which is off"
    )


def _is_gate_on(kubelet: ConfiguredKubelet, gate: str, release: Release, beta: Release) -> bool:
    """Return whether a gate is on that is off as alpha, and on from its beta release."""
    if release < beta:
        return kubelet.gate(gate, False, "AllAlpha")
    return kubelet.gate(gate, True, "AllBeta")


def _options(
    kubelet: ConfiguredKubelet, policy: str, options: Mapping[str, Setting], release: Release
) -> str | None:
    """Judge topologyManagerPolicyOptions."""
    gate = "TopologyManagerPolicyOptions"
    if release < (1, 32) and not _is_gate_on(kubelet, gate, release, (1, 28)):
        return _off(f"{TOPOLOGY_OPTIONS} {', '.join(sorted(options))}", release, gate)
    if policy == "none" and release >= (1, 28):
        return ""
    answers = [
        _option(kubelet, option, options[option].value, release) for option in sorted(options)
    ]
    reason = next(filter(None, answers), "")
    if not reason and None in answers:
        return None
    return reason


def _option(kubelet: ConfiguredKubelet, option: str, value: str, release: Release) -> str | None:
    shown = f"{TOPOLOGY_OPTIONS}.{option}: {value}"
    if option not in STAGES:
        if release > NEWEST:
            return None
        return f"{shown}; known options are {listed(_known(release))}"
    first, beta, stable = STAGES[option]
    if release < first:
        return (
            f"{shown}; Kubernetes {release_name(release)} does not know it, it came with"
            f" {release_name(first)}"
        )
    if release < stable:
        gate, is_on = _stage_gate(kubelet, release, beta)
        if not is_on:
            return _off(shown, release, gate)
    return _option_value(option, value, shown)


def _stage_gate(kubelet: ConfiguredKubelet, release: Release, beta: Release) -> tuple[str, bool]:
    """Return the gate of an option's stage, and whether it is on."""
    if release < beta:
        gate = "TopologyManagerPolicyAlphaOptions"
        return gate, kubelet.gate(gate, False, "AllAlpha")
    gate = "TopologyManagerPolicyBetaOptions"
    return gate, kubelet.gate(gate, release >= (1, 28), "AllBeta")


def _option_value(option: str, value: str, shown: str) -> str:
    if option == MOST_NODES:
        if _WHOLE.fullmatch(value) and int(value) >= NUMA_NODES:
            return ""
        return f"{shown}; accepted is a number from {NUMA_NODES} on"
    if value in cpu_manager_options.TRUTHS | cpu_manager_options.LIES:
        return ""
    return f"{shown}; accepted values are true and false"


def _known(release: Release) -> tuple[str, ...]:
    return tuple(option for option, stages in STAGES.items() if release >= stages[0])


def _nodes(
    kubelet: ConfiguredKubelet,
    policy: str,
    setting: Setting | None,
    options: Mapping[str, Setting],
) -> Iterator[Found]:
    """Compare the host's NUMA nodes with what a topology manager takes."""
    limit, option = NUMA_NODES, options.get(MOST_NODES)
    if option is not None and _WHOLE.fullmatch(option.value):
        limit = int(option.value)
    numa = kubelet.node.numa
    has_policy = kubelet.release is not None and kubelet.release >= SINCE[TOPOLOGY]
    if has_policy and numa is not None and len(numa) > limit:
        yield Refusal(
            TOPOLOGY,
            f"{_shown(TOPOLOGY, policy, setting)}; this machine has {len(numa)} NUMA nodes, and "
            f"it takes {limit} at the most "
            f"({TOPOLOGY_OPTIONS} {MOST_NODES}, from 1.31 on)",
            tuple(filter(None, (setting,))),
        )


def has_memory_manager(kubelet: ConfiguredKubelet, release: Release) -> bool:
    """Return whether a kubelet of this release has a memory manager, as its gates are."""
    if release < SINCE[MEMORY]:
        return False
    return release >= (1, 32) or _is_gate_on(kubelet, "MemoryManager", release, (1, 22))


def memory(kubelet: ConfiguredKubelet) -> Iterator[Found]:
    """Yield the problems of memoryManagerPolicy."""
    policy, setting = kubelet.scalar(MEMORY, FLAGS[MEMORY], "None")

    def judge(release: Release) -> str | None:
        if not has_memory_manager(kubelet, release):
            return ""
        return _value(MEMORY, policy, setting, release)

    yield from kubelet.refused(MEMORY, SINCE[MEMORY], judge, setting)


def _value(key: str, value: str, setting: Setting | None, release: Release) -> str | None:
    """Judge a value. A newer release may know more, but none that differs only in its case."""
    accepted = ACCEPTED[key]
    if value in accepted:
        return ""
    if release > NEWEST and value.lower() not in map(str.lower, accepted):
        return None
    return f"{_shown(key, value, setting)}; accepted values are {listed(accepted)}"


def _shown(key: str, value: str, setting: Setting | None) -> str:
    if setting is None:
        return f"{key}: {value}"
    return setting.text
