# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine is by itself, against which the Node that its kubelet posts is compared. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.pinning import Pinning
from ..evidence.answers.node.pressure import Pressure
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from ..parsers import cpuset

MIN_ID = 32  # characters; an image that was never booted has another word as its machine id
PREFIX = "Kubernetes "


@dataclass(frozen=True)
class Machine:
    """One machine, None where something of it is not known.

    cpus: how many are online
    memory: its bytes
    program: the path of the kubelet that runs
    version: what the program at that path says of itself now
    is_replaced: whether the program was removed or replaced since the kubelet started
    kernel: the release of its kernel
    """

    machine_id: str | None = None
    boot_id: str | None = None
    cpus: int | None = None
    memory: int | None = None
    program: str = ""
    version: str | None = None
    is_replaced: bool = False
    kernel: str = ""

    def differs(self, other: Machine) -> bool:
        """Tell whether another host is another machine; a clone may have the same machine id."""
        is_booted_apart = _differ(self.boot_id, other.boot_id)
        return is_booted_apart or _differ(self.machine_id, other.machine_id)

    def has_other_id(self, other: Machine) -> bool:
        """Tell whether another host has another machine id."""
        return _differ(self.machine_id, other.machine_id)

    def is_another(self, machine_id: str | None, boot_id: str | None) -> bool:
        """Tell whether these ids are another machine's: neither of them is this one's."""
        return _differ(self.machine_id, machine_id) and _differ(self.boot_id, boot_id)


def _differ(first: str | None, second: str | None) -> bool:
    """Tell whether two ids are known and differ."""
    return bool(first and second) and bare(first) != bare(second)


def bare(machine_id: str | None) -> str:
    """Return an id by which two spellings of it are one."""
    return (machine_id or "").replace("-", "").lower()


def extract(document: Mapping[str, Any]) -> Machine:
    """Return what evaluating a cluster keeps of one host's machine."""
    system = contract.answer(document, System)
    pinning = contract.answer(document, Pinning)
    process = contract.answer(document, Kubelet).process
    program, is_replaced = "", False
    if process is not None:
        program, is_replaced = one_line(process.exe or "", 200), process.exe_deleted is True
    return Machine(
        whole_id(system.machine_id),
        whole_id(system.boot_id),
        _online(pinning),
        _memory(document, pinning),
        program,
        _version(pinning.kubelet_version),
        is_replaced,
        one_line(system.kernel or "", 80),
    )


def whole_id(text: str | None) -> str | None:
    """Return an id of a machine or a boot, None where it is none."""
    if text is None or len(bare(text)) < MIN_ID:
        return None
    return text


def _online(pinning: Pinning) -> int | None:
    if pinning.cpus is None or not pinning.cpus.online:
        return None
    try:
        return len(cpuset.parse(pinning.cpus.online)) or None
    except cpuset.CpusetError:
        return None


def _memory(document: Mapping[str, Any], pinning: Pinning) -> int | None:
    memory = contract.answer(document, Pressure).memory
    if memory is not None and memory.total:
        return memory.total
    return pinning.memory_total or None


def _version(text: str | None) -> str | None:
    if text is None or not text.startswith(PREFIX):
        return None
    return one_line(text[len(PREFIX) :].strip(), 60) or None
