# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's cpu_manager_state as its bytes say it: policy, sets, checksum. Pure.

Up to 1.17 entries are by container id, from 1.18 on by pod and container. The checksum is FNV-1a of
32 bits over the text that the kubelet's printer makes of the record with a checksum of 0; 0 and
none are accepted by every kubelet. A record with fields beyond these (CPUs of pods, since 1.36) is
of a format whose checksum and sets are not known here.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...module_utils.shared.checksum import fnv32a
from . import cpuset

RIGHT, WRONG, ABSENT, UNKNOWN = "right", "wrong", "absent", "unknown"
FIELDS = frozenset(("policyName", "defaultCpuSet", "entries", "checksum"))
TEXTS = 32  # that are kept once read: without containers of their own CPUs all nodes have the same
NONE, STATIC = "none", "static"


@dataclass(frozen=True)
class CpuState:
    """Contents of a cpu_manager_state file.

    problem: why a kubelet cannot read it, else empty. generation: 1 by container, 2 by pod, None
    where the file does not show it. entries: {(pod UID, container): CPUs}; in generation 1 the UID
    is empty and the container is its id. more: fields of a newer format.
    """

    problem: str = ""
    policy: str = ""
    default: cpuset.CPUs = frozenset()
    entries: Mapping[tuple[str, str], cpuset.CPUs] = field(default_factory=dict)
    checksum: str = ABSENT
    generation: int | None = None
    more: tuple[str, ...] = ()

    @property
    def assigned(self) -> cpuset.CPUs:
        """Return all CPUs that some container has exclusively."""
        return frozenset().union(*self.entries.values())

    @property
    def overlaps(self) -> tuple[tuple[tuple[str, str], tuple[str, str] | None], ...]:
        """Return the pairs whose sets intersect; None stands for the default set."""
        pairs: list[tuple[tuple[str, str], tuple[str, str] | None]] = []
        keys = sorted(self.entries)
        for index, key in enumerate(keys):
            if self.entries[key] & self.default:
                pairs.append((key, None))
            later_keys = keys[index + 1 :]
            pairs += [
                (key, other) for other in later_keys if self.entries[key] & self.entries[other]
            ]
        return tuple(pairs)


@functools.lru_cache(TEXTS)
def cpu_state(text: str | None) -> CpuState:
    """Parse the text of the file. Never raises."""
    if text is None or not text.strip():
        return CpuState("it is empty")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        return CpuState(f"it is no JSON ({str(error)[:80]})")
    if not isinstance(record, dict):
        return CpuState("it is no JSON object")
    try:
        return _state(record)
    except (cpuset.CpusetError, TypeError, AttributeError) as error:
        return CpuState(
            f"it is not what a kubelet writes ({str(error)[:120]})",
            str(record.get("policyName") or ""),
        )


def _state(record: Mapping[str, Any]) -> CpuState:
    policy, default = _string(record, "policyName"), _string(record, "defaultCpuSet")
    raw = record.get("entries") or {}
    if not isinstance(raw, dict):
        raise TypeError("entries is no object")
    generation = _generation(raw)
    entries = _flat(raw, generation)
    more = tuple(sorted(str(name)[:40] for name in set(record) - FIELDS))
    checksum = UNKNOWN
    if not more:
        checksum = _checked(record.get("checksum") or 0, _printed(policy, default, raw, generation))
    return CpuState(
        "",
        policy,
        cpuset.parse(default),
        {key: cpuset.parse(value) for key, value in entries.items()},
        checksum,
        generation,
        more,
    )


def _generation(raw: Mapping[str, Any]) -> int | None:
    by_pod = [isinstance(value, dict) for value in raw.values()]
    if any(by_pod) and not all(by_pod):
        raise TypeError("entries are of two kinds")
    if not raw:
        return None
    if by_pod[0]:
        return 2
    return 1


def _flat(raw: Mapping[str, Any], generation: int | None) -> dict[tuple[str, str], str]:
    if generation != 2:
        return {("", name): str(text) for name, text in raw.items()}
    return {(pod, name): str(text) for pod, inner in raw.items() for name, text in inner.items()}


def _checked(checksum: object, printed: list[str]) -> str:
    if not checksum:
        return ABSENT
    if checksum in {fnv32a(text.encode("utf-8", "surrogatepass")) for text in printed}:
        return RIGHT
    return WRONG


def _string(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name, "")
    if not isinstance(value, str):
        raise TypeError(f"{name} is no text")
    return value


def _printed(
    policy: str, default: str, entries: Mapping[str, Any], generation: int | None
) -> list[str]:
    """Return the texts that the checksum may have been computed over.

    Without entries the two generations differ in the type of nothing. With the gate
    PodLevelResourceManagers (since 1.36) a kubelet prints its map of pods' CPUs too, and writes it
    only where there are some.
    """
    shapes = []
    if generation != 2:
        inner = _map({name: str(value) for name, value in entries.items()})
        shapes.append(f"(map[string]string){inner}")
    if generation != 1:
        inner = _map({pod: _map(sets) for pod, sets in entries.items()})
        shapes += [
            f"(map[string]map[string]string){inner}",
            f"(map[string]map[string]string){inner} PodEntries:(state.PodCPUAssignments)map[]",
        ]
    return [
        f"(*state.CPUManagerCheckpoint){{PolicyName:(string){policy}"
        f" DefaultCPUSet:(string){default} Entries:{text} Checksum:(checksum.Checksum)0}}"
        for text in shapes
    ]


def _map(values: Mapping[str, Any]) -> str:
    return f"map[{' '.join(f'{name}:{values[name]}' for name in sorted(values))}]"
