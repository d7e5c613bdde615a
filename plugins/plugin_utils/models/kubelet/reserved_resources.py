# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reserved CPUs and memory with which no kubelet starts. Pure.

The rules are from cmd/kubelet/app/server.go and pkg/kubelet/cm of 1.14.0 to 1.36.3. The static
memory manager wants reservedMemory to be, type by type, the sum of kubeReserved, systemReserved and
evictionHard, none of which holds huge pages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ....module_utils.shared import quantity
from ...parsers import cpuset, pflag
from ...safe_io import yaml_nodes
from ..cpu_manager import RESERVED_CGROUPS
from . import manager_policies
from .config import Setting
from .configured_value import ConfiguredKubelet, Found, Refusal, Release, Unsure

LIST, KUBE, SYSTEM, MEMORY, EVICTION = (
    "reservedSystemCPUs",
    "kubeReserved",
    "systemReserved",
    "reservedMemory",
    "evictionHard",
)
RESERVES = ((KUBE, "kube-reserved"), (SYSTEM, "system-reserved"))
KINDS = frozenset(("cpu", "memory", "ephemeral-storage", "pid"))
AVAILABLE, USUAL = "memory.available", "100Mi"
MERGED = (1, 33)  # mergeDefaultEvictionSettings came with it
NEAR = 1024 * 1024  # a percentage is reckoned in floats: a sum this near to it is not judged
_HUGE = "hugepages-"
_NUMBER = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True)
class Part:
    """Amount of reservedMemory.

    amount: the amount, None for what is no quantity
    """

    node: int
    kind: str
    amount: Fraction | None
    setting: Setting


class _UnknownError(Exception):
    """A value that the sum depends on is not known."""


def refused(kubelet: ConfiguredKubelet) -> Iterator[Found]:
    """Yield the problems of the reservations."""
    yield from _listed(kubelet)
    wrong = list(_amounts(kubelet))
    yield from wrong or _beyond(kubelet)
    parts = _parts(kubelet)
    if isinstance(parts, Unsure):
        yield parts
    elif not wrong:
        yield from _memory(kubelet, parts)


def _listed(kubelet: ConfiguredKubelet) -> Iterator[Found]:
    """Check reservedSystemCPUs, which came with 1.17."""
    setting = kubelet.config.setting(LIST, "reserved-cpus")
    if setting is None or not setting.value.strip() or not kubelet.since((1, 17)):
        return
    excluded = _reserved_cgroups(kubelet)
    if excluded:
        yield Refusal(
            LIST,
            f"{setting.text}; it excludes {' and '.join(cgroup.text for cgroup in excluded)}",
            (setting, *excluded),
        )
    try:
        cpus = cpuset.parse(setting.value)
    except cpuset.CpusetError:
        yield Refusal(LIST, f"{setting.text}; accepted is a list of CPUs such as 0-1,4", (setting,))
        return
    online = kubelet.node.online
    if online is None:
        yield Unsure(LIST, f"{LIST}: which CPUs are online could not be read")
    elif not cpus <= online:
        yield Refusal(
            LIST,
            f"{setting.text}; this machine has the CPUs {cpuset.text(online)} online, and not"
            f" {cpuset.text(cpus - online)}",
            (setting,),
        )


def _reserves(kubelet: ConfiguredKubelet) -> Iterator[tuple[str, str, Setting]]:
    """Yield (key, kind, setting) of kubeReserved and systemReserved, as far as they count."""
    cpus = kubelet.config.setting(LIST, "reserved-cpus")
    is_list_set = cpus is not None and bool(cpus.value.strip())
    for key, flag in RESERVES:
        for kind, setting in kubelet.config.mapping(key, flag).items():
            if kind != "cpu" or not is_list_set:
                yield key, kind, setting


def _amounts(kubelet: ConfiguredKubelet) -> Iterator[Found]:
    for key, kind, setting in _reserves(kubelet):
        amount = quantity.parse(setting.value)
        if kind not in KINDS:
            yield Refusal(
                key,
                f"{setting.text}; {key} takes cpu, memory, ephemeral-storage and pid, "
                f"and not {kind}",
                (setting,),
            )
        elif amount is None or amount < 0:
            yield Refusal(
                key,
                f"{setting.text}; accepted is a quantity that is not negative, such as 500m or 1Gi",
                (setting,),
            )


def _beyond(kubelet: ConfiguredKubelet) -> Iterator[Found]:
    """Compare what is reserved with what the host has."""
    rows = [(key, setting) for key, kind, setting in _reserves(kubelet) if kind == "cpu"]
    settings = [setting for dummy, setting in rows]
    total = sum((_amount(setting.value) for setting in settings), Fraction(0))
    online = kubelet.node.online
    if settings and online is not None and total > len(online):
        texts = " and ".join(setting.text for setting in settings)
        yield Refusal(
            rows[0][0],
            f"{texts}; this machine has {len(online)} CPUs online",
            tuple(settings),
        )


def _amount(text: str) -> Fraction:
    return quantity.parse(text) or Fraction(0)


def _parts(kubelet: ConfiguredKubelet) -> list[Part] | Unsure:
    """Return the parts of reservedMemory."""
    uses = pflag.string_flags(kubelet.config.argv, "reserved-memory")
    try:
        if uses:
            return _parts_of_flags(uses)
        return _parts_of_files(kubelet)
    except ValueError:
        return Unsure(MEMORY, f"{MEMORY} is not as a kubelet writes it")


def _node(text: str) -> int:
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError("no number of a NUMA node")
    return int(text)


def _parts_of_flags(uses: list[str]) -> list[Part]:
    """Parse 0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=1Gi. Raises ValueError."""
    parts = []
    for use in uses:
        for reservation in filter(None, use.split(";")):
            node, limits = reservation.split(":")
            for limit in limits.split(","):
                kind, amount = limit.split("=")
                setting = Setting(amount, f"--reserved-memory={use}")
                parts.append(Part(_node(node), kind.strip(), quantity.parse(amount), setting))
    return parts


def _parts_of_files(kubelet: ConfiguredKubelet) -> list[Part]:
    rows = dict(kubelet.config.rows(MEMORY))
    nodes = {path[0]: _node(row.value) for path, row in rows.items() if path[1:] == ("numaNode",)}
    limits = {path: row for path, row in rows.items() if len(path) == 3 and path[1] == "limits"}
    if len(nodes) + len(limits) != len(rows):
        raise ValueError("another shape")
    return [
        Part(nodes.get(path[0], 0), path[2], quantity.parse(row.value), row)
        for path, row in limits.items()
    ]


def _memory(kubelet: ConfiguredKubelet, parts: list[Part]) -> Iterator[Found]:
    """Check reservedMemory: its parts under each policy, their sum under Static."""
    refusals = [Refusal(MEMORY, reason, (part.setting,)) for part, reason in _wrong(parts)]
    if refusals and kubelet.since(manager_policies.SINCE[manager_policies.MEMORY]):
        yield from refusals
        return
    policy, setting = kubelet.scalar(
        manager_policies.MEMORY, manager_policies.FLAGS[manager_policies.MEMORY], "None"
    )
    if policy == "Static":
        yield from _static_memory(kubelet, parts, setting)


def _static_memory(
    kubelet: ConfiguredKubelet, parts: list[Part], policy: Setting | None
) -> Iterator[Found]:
    """Check that NUMA nodes and the sum are right; only releases with a memory manager do so."""

    def has_manager(release: Release) -> bool:
        return manager_policies.has_memory_manager(kubelet, release)

    try:
        reason = _absent(kubelet, parts) or _sums(kubelet, parts)
    except _UnknownError as error:
        if any(map(has_manager, kubelet.since((1, 21)))):
            yield Unsure(MEMORY, f"{MEMORY}: {error}")
        return
    settings: list[Setting | None] = [part.setting for part in parts] or [policy]

    def judge(release: Release) -> str | None:
        if not has_manager(release):
            return ""
        return reason

    yield from kubelet.refused(MEMORY, (1, 21), judge, *settings)


def _wrong(parts: list[Part]) -> Iterator[tuple[Part, str]]:
    counts: Counter[tuple[int, str]] = Counter()
    for part in parts:
        counts[part.node, part.kind] += 1
        text = f"{MEMORY} of NUMA node {part.node}, {part.kind}: {part.setting.value}"
        if part.amount is None:
            yield part, f"{text}; accepted is a quantity such as 1Gi"
        elif part.kind != "memory" and not part.kind.startswith(_HUGE):
            yield part, f"{text}; accepted are memory and hugepages-<size>"
        elif part.amount == 0:
            yield part, f"{text}; it may not be zero"
        elif counts[part.node, part.kind] > 1:
            yield part, f"{text}; it is given twice"


def _absent(kubelet: ConfiguredKubelet, parts: list[Part]) -> str:
    """Return why a NUMA node that is named is not there. Raises _UnknownError."""
    nodes = {part.node for part in parts}
    numa = kubelet.node.numa
    if numa is None:
        if nodes <= kubelet.node.numa_of_cpus:
            return ""
        raise _UnknownError("which NUMA nodes this machine has could not be read")
    absent = sorted(nodes - numa)
    if not absent:
        return ""
    return f"{MEMORY} names NUMA node {absent[0]}; this machine has {cpuset.text(numa)}"


def _sums(kubelet: ConfiguredKubelet, parts: list[Part]) -> str:
    """Return why the sums differ. Raises _UnknownError."""
    sums = _by_kind(parts)
    huge = sorted(kind for kind, amount in sums.items() if kind != "memory" and amount)
    if huge:
        return (
            f"{MEMORY} has {shown(sums[huge[0]])} of {huge[0]}; it must be none, because "
            f"{KUBE} and {SYSTEM} take no huge pages"
        )
    amounts = {
        f"{key}.memory": setting.value
        for key, kind, setting in _reserves(kubelet)
        if kind == "memory"
    }
    threshold = eviction(kubelet)
    required = sum(map(_amount, amounts.values()), _threshold(kubelet, threshold))
    difference = abs(sums["memory"] - required)
    if threshold.endswith("%") and difference <= NEAR:
        raise _UnknownError(
            f"{EVICTION} {AVAILABLE} is a share of the memory ({threshold}), and the sum is too "
            "near to decide"
        )
    if difference == 0:
        return _why_empty(required)
    amounts[f"{EVICTION} {AVAILABLE}"] = threshold
    return (
        f"{MEMORY} comes to {shown(sums['memory'])} of memory; it must be {shown(required)}, "
        f"the sum of {', '.join(f'{name} {amount}' for name, amount in amounts.items())}"
    )


def _by_kind(parts: list[Part]) -> dict[str, Fraction]:
    """Return the sum of each kind of memory over all NUMA nodes."""
    sums: dict[str, Fraction] = {"memory": Fraction(0)}
    for part in parts:
        sums[part.kind] = sums.get(part.kind, Fraction(0)) + (part.amount or 0)
    return sums


def _why_empty(required: Fraction) -> str:
    if required:
        return ""
    return f"{MEMORY} has no memory; the policy Static needs some"


def _threshold(kubelet: ConfiguredKubelet, threshold: str) -> Fraction:
    """Return a threshold of eviction in bytes. Raises _UnknownError."""
    if threshold.endswith("%"):
        return _share(kubelet, threshold)
    amount: Fraction | None = quantity.parse(threshold)
    if amount is None:
        raise _UnknownError(f"{EVICTION} {AVAILABLE}: {threshold} is no quantity")
    return amount


def _share(kubelet: ConfiguredKubelet, threshold: str) -> Fraction:
    """Return a percentage of the host's memory. Raises _UnknownError."""
    if threshold in ("0%", "100%"):
        return Fraction(0)
    part: Fraction | None = quantity.parse(threshold[:-1])
    if part is None or kubelet.node.memory_total is None:
        raise _UnknownError(f"{EVICTION} {AVAILABLE}: {threshold} of a memory that is not known")
    return part * kubelet.node.memory_total / 100


def _reserved_cgroups(kubelet: ConfiguredKubelet) -> list[Setting]:
    cgroups = [kubelet.config.setting(key, flag) for key, flag in RESERVED_CGROUPS]
    return [cgroup for cgroup in cgroups if cgroup is not None and cgroup.value.strip()]


def eviction(kubelet: ConfiguredKubelet) -> str:
    """Return the threshold of eviction, which counts as reserved. Raises _UnknownError."""
    ignored, _dummy = kubelet.config.switch("", "experimental-allocatable-ignore-eviction")
    if ignored:
        return "0"
    uses = pflag.string_flags(kubelet.config.argv, "eviction-hard")
    if not uses and EVICTION not in kubelet.config.tops:
        return USUAL
    thresholds = _thresholds(kubelet, uses)
    if AVAILABLE in thresholds:
        return thresholds[AVAILABLE].strip()
    return _default_threshold(kubelet, _may_be_merged(kubelet, uses, thresholds))


def _default_threshold(kubelet: ConfiguredKubelet, may_be_merged: bool) -> str:
    """Return the threshold where none is given. Raises _UnknownError."""
    merged, release = kubelet.config.values.get(("mergeDefaultEvictionSettings",)), kubelet.release
    if may_be_merged or (merged and release is None):
        raise _UnknownError(
            f"{EVICTION} has no {AVAILABLE}, and whether a default takes its place is not known"
        )
    if merged is None or release is None or release < MERGED:
        return "0"
    if yaml_nodes.boolean(merged.value) is True:
        return USUAL
    return "0"


def _thresholds(kubelet: ConfiguredKubelet, uses: list[str]) -> dict[str, str]:
    if not uses:
        rows = kubelet.config.rows(EVICTION)
        return {path[0]: row.value for path, row in rows if len(path) == 1}
    pairs = [part.split("<", 1) for use in uses for part in use.split(",")]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _may_be_merged(
    kubelet: ConfiguredKubelet, uses: list[str], thresholds: Mapping[str, str]
) -> bool:
    """Return whether some releases fill it up from defaults: an empty map, or one in a drop-in."""
    if uses:
        return False
    return not thresholds or kubelet.config.tops[EVICTION].path != kubelet.node.config_path


def shown(amount: Fraction) -> str:
    """Return bytes in the largest unit that divides them."""
    for unit, size in (("Gi", 1024**3), ("Mi", 1024**2), ("Ki", 1024)):
        if amount and amount % size == 0:
            return f"{amount // size}{unit}"
    return str(int(amount))
