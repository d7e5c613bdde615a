# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies and options of managers with which no kubelet starts. Pure.

Of the CPU, memory and topology manager. Read in the sources of 1.14.0 to 1.36.3: pkg/kubelet/cm,
pkg/kubelet/apis/config/validation, pkg/features.

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

from .. import cpu_manager_options as cpu_options
from .config import Setting
from .configured_value import NEWEST, Found, Refusal, Release, Told, listed, name

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


def refused(told: Told) -> Iterator[Found]:
    """Yield what is wrong with the policies and their options."""
    yield from _cpu(told)
    yield from _topology(told)
    yield from memory(told)


def _cpu(told: Told) -> Iterator[Found]:
    policy, setting = told.scalar(CPU, FLAGS[CPU], "none")
    if not told.gate("CPUManager", True, "AllBeta") and (
        told.release is None or told.release < (1, 26)
    ):
        return

    def judge(release: Release) -> str | None:
        return "" if release < (1, 16) else _value(CPU, policy, setting, release)

    wrong = told.refused(CPU, SINCE[CPU], judge, setting)
    yield from wrong
    options = told.node.options
    if wrong or not options:
        return
    settings = told.config.mapping(CPU_OPTIONS, FLAGS[CPU_OPTIONS]).values()
    topology = told.scalar(TOPOLOGY, FLAGS[TOPOLOGY], "none")[0]

    def fit(release: Release) -> str | None:
        why = cpu_options.misfits(policy, options, told.node.gates, release, topology)
        if why or release <= NEWEST:
            return why
        # What is not stable in the newest release that is known may have become so.
        return (
            ""
            if all(
                one in cpu_options.STAGES and cpu_options.STAGES[one][2] <= NEWEST
                for one in options
            )
            else None
        )

    yield from told.refused(CPU_OPTIONS, SINCE[CPU_OPTIONS], fit, *settings)


def _topology(told: Told) -> Iterator[Found]:
    policy, setting = told.scalar(TOPOLOGY, FLAGS[TOPOLOGY], "none")
    wrong = told.refused(
        TOPOLOGY,
        SINCE[TOPOLOGY],
        lambda release: _gated(told, TOPOLOGY, policy, setting, release),
        setting,
    )
    yield from wrong
    scope, set_by = told.scalar(SCOPE, FLAGS[SCOPE], "container")
    yield from told.refused(
        SCOPE, SINCE[SCOPE], lambda release: _gated(told, SCOPE, scope, set_by, release), set_by
    )
    if wrong:
        return
    options = told.config.mapping(TOPOLOGY_OPTIONS, FLAGS[TOPOLOGY_OPTIONS])
    if options:
        yield from told.refused(
            TOPOLOGY_OPTIONS,
            SINCE[TOPOLOGY_OPTIONS],
            lambda release: _options(told, policy, options, release),
            *options.values(),
        )
    if policy != "none":
        yield from _nodes(told, policy, setting, options)


def _gated(
    told: Told, key: str, value: str, setting: Setting | None, release: Release
) -> str | None:
    """Judge a topology manager's policy or scope: up to 1.26 a gate decides too."""
    why = _value(key, value, setting, release)
    if why or why is None or value == ACCEPTED[key][0] or release >= (1, 27):
        return why
    alpha = release < (1, 18)
    if told.gate("TopologyManager", not alpha, "AllAlpha" if alpha else "AllBeta"):
        return ""
    return _off(_shown(key, value, setting), release, "TopologyManager")


def _off(shown: str, release: Release, gate: str) -> str:
    return f"{shown}; Kubernetes {name(release)} needs the feature gate {gate}, which is off"


def _options(
    told: Told, policy: str, options: Mapping[str, Setting], release: Release
) -> str | None:
    """Judge topologyManagerPolicyOptions."""
    if release < (1, 32) and not told.gate(
        "TopologyManagerPolicyOptions",
        release >= (1, 28),
        "AllBeta" if release >= (1, 28) else "AllAlpha",
    ):
        return _off(
            f"{TOPOLOGY_OPTIONS} {', '.join(sorted(options))}",
            release,
            "TopologyManagerPolicyOptions",
        )
    if policy == "none" and release >= (1, 28):
        return ""
    answers = [_option(told, one, options[one].value, release) for one in sorted(options)]
    return next((one for one in answers if one), None if None in answers else "")


def _option(told: Told, option: str, value: str, release: Release) -> str | None:
    shown = f"{TOPOLOGY_OPTIONS}.{option}: {value}"
    first, beta, stable = STAGES.get(option, (None, None, None))
    if first is None or beta is None or stable is None:
        return None if release > NEWEST else f"{shown}; known options are {listed(_known(release))}"
    if release < first:
        return f"{shown}; Kubernetes {name(release)} does not know it, it came with {name(first)}"
    stage = "Alpha" if release < beta else "Beta"
    if release < stable and not told.gate(
        f"TopologyManagerPolicy{stage}Options",
        stage == "Beta" and release >= (1, 28),
        f"All{stage}",
    ):
        return _off(shown, release, f"TopologyManagerPolicy{stage}Options")
    if option == MOST_NODES:
        number = int(value) if _WHOLE.fullmatch(value) else None
        return (
            ""
            if number is not None and number >= NUMA_NODES
            else f"{shown}; accepted is a number from {NUMA_NODES} on"
        )
    return (
        ""
        if value in cpu_options.TRUTHS | cpu_options.LIES
        else f"{shown}; accepted values are true and false"
    )


def _known(release: Release) -> tuple[str, ...]:
    return tuple(one for one, stages in STAGES.items() if release >= stages[0])


def _nodes(
    told: Told, policy: str, setting: Setting | None, options: Mapping[str, Setting]
) -> Iterator[Found]:
    """Compare the machine's NUMA nodes with what a topology manager takes."""
    most = options[MOST_NODES].value if MOST_NODES in options else ""
    limit = int(most) if _WHOLE.fullmatch(most) else NUMA_NODES
    found = told.node.numa
    known = told.release is not None and told.release >= SINCE[TOPOLOGY]
    if known and found is not None and len(found) > limit:
        yield Refusal(
            TOPOLOGY,
            f"{_shown(TOPOLOGY, policy, setting)}; this machine has {len(found)} NUMA nodes, and "
            f"it takes {limit} at the most "
            f"({TOPOLOGY_OPTIONS} {MOST_NODES}, from 1.31 on)",
            tuple(filter(None, (setting,))),
        )


def has_memory_manager(told: Told, release: Release) -> bool:
    """Return whether a kubelet of this release has a memory manager, as its gates are."""
    if release < SINCE[MEMORY]:
        return False
    alpha = release < (1, 22)
    return release >= (1, 32) or told.gate(
        "MemoryManager", not alpha, "AllAlpha" if alpha else "AllBeta"
    )


def memory(told: Told) -> Iterator[Found]:
    """Yield what is wrong with memoryManagerPolicy."""
    policy, setting = told.scalar(MEMORY, FLAGS[MEMORY], "None")

    def judge(release: Release) -> str | None:
        return _value(MEMORY, policy, setting, release) if has_memory_manager(told, release) else ""

    yield from told.refused(MEMORY, SINCE[MEMORY], judge, setting)


def _value(key: str, value: str, setting: Setting | None, release: Release) -> str | None:
    """Judge one word. A newer release may know more, but none that differs only in its case."""
    accepted = ACCEPTED[key]
    if value in accepted:
        return ""
    if release > NEWEST and value.lower() not in [one.lower() for one in accepted]:
        return None
    return f"{_shown(key, value, setting)}; accepted values are {listed(accepted)}"


def _shown(key: str, value: str, setting: Setting | None) -> str:
    return setting.text if setting is not None else f"{key}: {value}"
