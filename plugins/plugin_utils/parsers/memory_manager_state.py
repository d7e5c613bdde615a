# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's memory_manager_state as its bytes say it: policy and checksum. Pure.

The checksum is made as that of cpu_manager_state: FNV-1a of 32 bits over the text that the
kubelet's printer makes of the record with a checksum of 0. Whether a file without one is accepted
depends on the release. Fields beyond these (podEntries, since 1.36) are a newer format.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.shared.checksum import fnv32a
from .cpu_manager_state import ABSENT, RIGHT, TEXTS, UNKNOWN, WRONG

FIELDS = frozenset(("policyName", "machineState", "entries", "checksum"))
NUMA = (
    ("NumberOfAssignments", "numberOfAssignments"),
    ("MemoryMap", "memoryMap"),
    ("Cells", "cells"),
)
TABLE = (
    ("TotalMemSize", "total"),
    ("SystemReserved", "systemReserved"),
    ("Allocatable", "allocatable"),
    ("Reserved", "reserved"),
    ("Free", "free"),
)
BLOCK = (("NUMAAffinity", "numaAffinity"), ("Type", "type"), ("Size", "size"))
NIL = "<nil>"
MOST = 1 << 64  # what Go's uint64 does not hold
OTHER = "it is not what a kubelet writes"


@dataclass(frozen=True)
class MemoryState:
    """Contents of a memory_manager_state file.

    problem: why a kubelet cannot read it, else empty. checksum: as in cpu_manager_state. more:
    fields of a newer format.
    """

    problem: str = ""
    policy: str = ""
    checksum: str = ABSENT
    more: tuple[str, ...] = ()


class _NewerError(ValueError):
    """A field that is not known here."""


@functools.lru_cache(TEXTS)
def memory_state(text: str | None) -> MemoryState:
    """Parse the text of the file. Never raises."""
    if text is None or not text.strip():
        return MemoryState("it is empty")
    try:
        record = json.loads(text)
        policy = record["policyName"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return MemoryState(OTHER)
    if not isinstance(policy, str):
        return MemoryState(OTHER)
    more = tuple(sorted(str(name)[:40] for name in set(record) - FIELDS))
    if more:
        return MemoryState("", policy, UNKNOWN, more)
    try:
        printed = _printed(record, policy)
    except _NewerError as newer:
        return MemoryState("", policy, UNKNOWN, (str(newer)[:40],))
    except (TypeError, ValueError, AttributeError, RecursionError):
        return MemoryState(OTHER, policy)
    return MemoryState("", policy, _checked(record.get("checksum"), printed))


def _checked(checksum: object, printed: list[str]) -> str:
    if not checksum:
        return ABSENT
    if checksum in {fnv32a(text.encode("utf-8", "surrogatepass")) for text in printed}:
        return RIGHT
    return WRONG


def _printed(record: Mapping[str, Any], policy: str) -> list[str]:
    """Return the texts that the checksum may have been computed over.

    With the gate PodLevelResourceManagers (since 1.36) the text also has an empty map of pods'
    memory.
    """
    machine = _map(record.get("machineState", {}), lambda node: _struct(node, NUMA, _numa), int)
    entries = _map(record.get("entries", {}), lambda pod: _map(pod, _blocks))
    begin = (
        f"(*state.MemoryManagerCheckpoint){{PolicyName:(string){policy}"
        f" MachineState:(state.NUMANodeMap){machine}"
        f" Entries:(state.ContainerMemoryAssignments){entries} "
    )
    return [
        begin + between + "Checksum:(checksum.Checksum)0}"
        for between in ("", "PodEntries:(state.PodMemoryAssignments)map[] ")
    ]


def _blocks(blocks: Any) -> str:
    return _list(blocks, lambda block: _struct(block, BLOCK, _block, ""))


def _numa(name: str, value: Any) -> str:
    if name == "NumberOfAssignments":
        return f"(int){_number_or_zero(value)}"
    if name == "Cells":
        return f"([]int){_list(value, _number)}"
    tables = _map(
        value,
        lambda table: _struct(table, TABLE, lambda dummy, size: f"(uint64){_number_or_zero(size)}"),
    )
    return f"(map[v1.ResourceName]*state.MemoryTable){tables}"


def _block(name: str, value: Any) -> str:
    if name == "NUMAAffinity":
        return f"([]int){_list(value, _number)}"
    if name == "Size":
        return f"(uint64){_number_or_zero(value)}"
    return f"(v1.ResourceName){_text_or_empty(value)}"


def _struct(
    value: Any, fields: tuple[tuple[str, str], ...], show: Any, pointer: str = "<*>"
) -> str:
    """Return a record as Go's printer shows it; a pointer to none is nil."""
    if value is None and pointer:
        return NIL
    unknown = sorted(set(value or {}) - {key for dummy, key in fields})
    if unknown:
        raise _NewerError(str(unknown[0]))
    shown = " ".join(f"{name}:{show(name, (value or {}).get(key))}" for name, key in fields)
    return f"{pointer}{{{shown}}}"


def _map(value: Any, show: Any, key: Any = str) -> str:
    if value is None:
        return NIL
    names = sorted(map(key, value.keys()))
    return f"map[{' '.join(f'{name}:{show(value[str(name)])}' for name in names)}]"


def _list(value: Any, show: Any) -> str:
    if value is None:
        return NIL
    if not isinstance(value, list):
        raise TypeError("no list")
    return f"[{' '.join(show(item) for item in value)}]"


def _number_or_zero(value: Any) -> str:
    if value is None:
        return "0"
    return _number(value)


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST:
        raise TypeError("no number that a kubelet writes")
    return str(value)


def _text_or_empty(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError("no text")
    return value
