# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reserved CPUs and memory with which no kubelet starts. Pure.

Read in cmd/kubelet/app/server.go and pkg/kubelet/cm of 1.14.0 to 1.36.3. The static memory manager
wants reservedMemory to be, type by type, the sum of kubeReserved, systemReserved and evictionHard,
none of which holds huge pages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ....module_utils.shared import quantity
from ...parsers import cpuset
from ...parsers import pflag as flags
from ...safe_io import yaml_nodes
from ..cpu_manager import RESERVED_CGROUPS
from . import manager_policies as manager_values
from .config import Setting
from .configured_value import Found, Refusal, Release, Told, Unsure

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
    """One amount of reservedMemory. amount: None for what is no quantity."""

    node: int
    kind: str
    amount: Fraction | None
    setting: Setting


class _UnknownError(Exception):
    """What the sum depends on is not known."""


def refused(told: Told) -> Iterator[Found]:
    """Yield what is wrong with the reservations."""
    yield from _listed(told)
    wrong = list(_amounts(told))
    yield from wrong or _beyond(told)
    parts = _parts(told)
    if isinstance(parts, Unsure):
        yield parts
    elif not wrong:
        yield from _memory(told, parts)


def _listed(told: Told) -> Iterator[Found]:
    """Look at reservedSystemCPUs, which came with 1.17."""
    setting = told.config.setting(LIST, "reserved-cpus")
    if setting is None or not setting.value.strip() or not told.since((1, 17)):
        return
    cgroups = [told.config.setting(key, flag) for key, flag in RESERVED_CGROUPS]
    beside = [one for one in cgroups if one is not None and one.value.strip()]
    if beside:
        yield Refusal(
            LIST,
            f"{setting.text}; it excludes {' and '.join(one.text for one in beside)}",
            (setting, *beside),
        )
    try:
        cpus = cpuset.parse(setting.value)
    except cpuset.CpusetError:
        yield Refusal(LIST, f"{setting.text}; accepted is a list of CPUs such as 0-1,4", (setting,))
        return
    if told.node.online is None:
        yield Unsure(LIST, f"{LIST}: which CPUs are online could not be read")
    elif not cpus <= told.node.online:
        lacking, there = cpuset.text(cpus - told.node.online), cpuset.text(told.node.online)
        yield Refusal(
            LIST,
            f"{setting.text}; this machine has the CPUs {there} online, and not {lacking}",
            (setting,),
        )


def _reserves(told: Told) -> Iterator[tuple[str, str, Setting]]:
    """Yield (key, kind, setting) of kubeReserved and systemReserved, as far as they count."""
    listed = told.config.setting(LIST, "reserved-cpus")
    for key, flag in RESERVES:
        for kind, setting in told.config.mapping(key, flag).items():
            if kind != "cpu" or listed is None or not listed.value.strip():
                yield key, kind, setting


def _amounts(told: Told) -> Iterator[Found]:
    for key, kind, setting in _reserves(told):
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


def _beyond(told: Told) -> Iterator[Found]:
    """Compare what is reserved with what the machine has."""
    kept = [(key, setting) for key, kind, setting in _reserves(told) if kind == "cpu"]
    total = sum((quantity.parse(one.value) or Fraction(0) for dummy, one in kept), Fraction(0))
    if kept and told.node.online is not None and total > len(told.node.online):
        shown = " and ".join(one.text for dummy, one in kept)
        yield Refusal(
            kept[0][0],
            f"{shown}; this machine has {len(told.node.online)} CPUs online",
            tuple(one for dummy, one in kept),
        )


def _parts(told: Told) -> list[Part] | Unsure:
    """Return what reservedMemory holds."""
    given = flags.string_flags(told.config.argv, "reserved-memory")
    try:
        return _of_flags(given) if given else _of_files(told)
    except ValueError:
        return Unsure(MEMORY, f"{MEMORY} is not as a kubelet writes it")


def _of_flags(given: list[str]) -> list[Part]:
    """Read 0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=1Gi. Raises ValueError."""
    found = []
    for text in given:
        for one in filter(None, text.split(";")):
            node, limits = one.split(":")
            for limit in limits.split(","):
                kind, amount = limit.split("=")
                found.append(
                    Part(
                        _node(node),
                        kind.strip(),
                        quantity.parse(amount),
                        Setting(amount, f"--reserved-memory={text}"),
                    )
                )
    return found


def _of_files(told: Told) -> list[Part]:
    rows = dict(told.config.rows(MEMORY))
    nodes = {path[0]: _node(one.value) for path, one in rows.items() if path[1:] == ("numaNode",)}
    limits = [
        (path[0], path[2], one)
        for path, one in rows.items()
        if len(path) == 3 and path[1] == "limits"
    ]
    if len(nodes) + len(limits) != len(rows):
        raise ValueError("another shape")
    return [
        Part(nodes.get(index, 0), kind, quantity.parse(one.value), one)
        for index, kind, one in limits
    ]


def _node(text: str) -> int:
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError("no number of a NUMA node")
    return int(text)


def _memory(told: Told, parts: list[Part]) -> Iterator[Found]:
    """Look at reservedMemory: its parts under each policy, their sum under Static."""
    wrong = [Refusal(MEMORY, why, (one.setting,)) for one, why in _wrong(parts)]
    if wrong and told.since(manager_values.SINCE[manager_values.MEMORY]):
        yield from wrong
        return
    policy, setting = told.scalar(
        manager_values.MEMORY, manager_values.FLAGS[manager_values.MEMORY], "None"
    )
    if policy != "Static":
        return
    try:
        why = _absent(told, parts) or _sums(told, parts)
    except _UnknownError as error:
        if any(manager_values.has_memory_manager(told, release) for release in told.since((1, 21))):
            yield Unsure(MEMORY, f"{MEMORY}: {error}")
        return
    settings = [one.setting for one in parts] or [setting]

    def judge(release: Release) -> str | None:
        return why if manager_values.has_memory_manager(told, release) else ""

    yield from told.refused(MEMORY, (1, 21), judge, *settings)


def _wrong(parts: list[Part]) -> Iterator[tuple[Part, str]]:
    seen: Counter[tuple[int, str]] = Counter()
    for one in parts:
        seen[one.node, one.kind] += 1
        shown = f"{MEMORY} of NUMA node {one.node}, {one.kind}: {one.setting.value}"
        if one.amount is None:
            yield one, f"{shown}; accepted is a quantity such as 1Gi"
        elif one.kind != "memory" and not one.kind.startswith(_HUGE):
            yield one, f"{shown}; accepted are memory and hugepages-<size>"
        elif one.amount == 0:
            yield one, f"{shown}; it may not be zero"
        elif seen[one.node, one.kind] > 1:
            yield one, f"{shown}; it is given twice"


def _absent(told: Told, parts: list[Part]) -> str:
    """Return why a NUMA node that is named is not there. Raises _UnknownError."""
    named = {one.node for one in parts}
    found = told.node.numa
    if found is None and not named <= told.node.numa_of_cpus:
        raise _UnknownError("which NUMA nodes this machine has could not be read")
    gone = sorted(named - found) if found is not None else []
    return (
        f"{MEMORY} names NUMA node {gone[0]}; this machine has "
        f"{cpuset.text(frozenset(found or ()))}"
        if gone
        else ""
    )


def _sums(told: Told, parts: list[Part]) -> str:
    """Return why the sums differ. Raises _UnknownError."""
    mine: dict[str, Fraction] = {"memory": Fraction(0)}
    for one in parts:
        mine[one.kind] = mine.get(one.kind, Fraction(0)) + (one.amount or 0)
    huge = sorted(kind for kind in mine if kind != "memory" and mine[kind])
    if huge:
        return (
            f"{MEMORY} has {shown(mine[huge[0]])} of {huge[0]}; it must be none, because "
            f"{KUBE} and {SYSTEM} take no huge pages"
        )
    kept = [
        (f"{key}.memory", setting.value)
        for key, kind, setting in _reserves(told)
        if kind == "memory"
    ]
    total = sum((quantity.parse(amount) or Fraction(0) for dummy, amount in kept), Fraction(0))
    threshold = eviction(told)
    near = 0
    if threshold.endswith("%"):
        share, near = _share(told, threshold), NEAR
    else:
        share = quantity.parse(threshold)
    if share is None:
        raise _UnknownError(f"{EVICTION} {AVAILABLE}: {threshold} is no quantity")
    must = total + share
    difference = abs(mine["memory"] - must)
    if near and difference <= near:
        raise _UnknownError(
            f"{EVICTION} {AVAILABLE} is a share of the memory ({threshold}), and the sum is too "
            "near to tell"
        )
    if difference == 0:
        return "" if must else f"{MEMORY} has no memory; the policy Static needs some"
    told_parts = ", ".join(
        f"{one} {amount}" for one, amount in (*kept, (f"{EVICTION} {AVAILABLE}", threshold))
    )
    return (
        f"{MEMORY} comes to {shown(mine['memory'])} of memory; it must be {shown(must)}, "
        f"the sum of {told_parts}"
    )


def _share(told: Told, threshold: str) -> Fraction | None:
    """Return a percentage of the machine's memory. Raises _UnknownError."""
    if threshold in ("0%", "100%"):
        return Fraction(0)
    part = quantity.parse(threshold[:-1])
    if part is None or told.node.memory_total is None:
        raise _UnknownError(f"{EVICTION} {AVAILABLE}: {threshold} of a memory that is not known")
    return part * told.node.memory_total / 100


def eviction(told: Told) -> str:
    """Return the threshold of eviction, which counts as reserved. Raises _UnknownError."""
    ignored, _dummy = told.config.switch("", "experimental-allocatable-ignore-eviction")
    if ignored:
        return "0"
    given = flags.string_flags(told.config.argv, "eviction-hard")
    values: Mapping[str, str] = {}
    if given:
        values = dict(
            part.split("<", 1) for text in given for part in text.split(",") if "<" in part
        )
    elif EVICTION in told.config.tops:
        values = {path[0]: one.value for path, one in told.config.rows(EVICTION) if len(path) == 1}
    else:
        return USUAL
    if AVAILABLE in values:
        return values[AVAILABLE].strip()
    # An empty map, and one in a drop-in, are filled up from the defaults by some releases.
    several = not given and (not values or told.config.tops[EVICTION].path != told.node.config_path)
    merged = told.config.values.get(("mergeDefaultEvictionSettings",))
    if several or (merged and told.release is None):
        raise _UnknownError(
            f"{EVICTION} has no {AVAILABLE}, and whether a default takes its place is not known"
        )
    wanted = merged is not None and yaml_nodes.boolean(merged.value) is True
    return USUAL if wanted and told.release is not None and told.release >= MERGED else "0"


def shown(amount: Fraction) -> str:
    """Return bytes as people write them."""
    for unit, size in (("Gi", 1024**3), ("Mi", 1024**2), ("Ki", 1024)):
        if amount and amount % size == 0:
            return f"{amount // size}{unit}"
    return str(int(amount))
