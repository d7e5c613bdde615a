# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node shows of a runtime that its kubelet does not hear in time. Pure.

The Ready condition has only the kubelet's own words: the runtime is down, its list of containers is
late. Why is on the node: its unit, processes that cannot end, the disk, the memory, the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...module_utils.shared.text import times
from ..evidence import contract
from ..evidence.answers.node.hangs import Hangs, Task
from ..evidence.answers.node.kernel_log import KernelLog
from ..evidence.answers.node.kubelet_log import KubeletLog
from ..evidence.answers.node.pressure import Memory, Pressure
from ..evidence.answers.node.runtime import Runtime
from ..evidence.answers.node.space import Spaces
from ..evidence.answers.node.system import System
from ..evidence.document import ends, one_line
from ..parsers import systemd_unit
from ..parsers.systemd_unit import Unit
from . import remote_mounts, store
from .kubelet import status as kubelet_status
from .pressure import size
from .result import EvidenceRef

RECENT_SECONDS = 120  # the kubelet says it again every few seconds while it lasts
SHOWN, QUOTED = 3, 200
STALLED = 40.0  # percent of a minute
LOW_SHARE = 20  # the part of the memory below which a node is short of it: one twentieth
# As the collectors runtime and cri have them.
DOCKER, EMBEDDED = "docker", "embedded"
OK, UNIMPLEMENTED, SILENT = 0, 12, "no answer"
ENDED = frozenset(
    (systemd_unit.LOOPING, systemd_unit.GAVE_UP, systemd_unit.FAILED, systemd_unit.STOPPED)
)
# "pleg has yet to be successful" is a kubelet's first seconds
_PLEG = re.compile(r"PLEG is not healthy: pleg was last seen active ([\w.]{1,20}) ago")
_PROGRAMS = ("runc", "crun", "containerd", "conmon", "crio", "dockerd", "kubelet", "umount")
_KERNEL = {
    "hang": "the kernel reports a processor or a process that does not go on",
    "disk": "the kernel reports a disk or a file system that fails",
    "oom": "the kernel killed a process for want of memory",
    "storage": "the kernel reports a remote file system that does not answer",
    "memory": "the kernel finds no memory for its own work",
}
_STORAGE = frozenset(("hang", "disk", "storage"))
_RUNTIME_USES = frozenset(("runtime", "run", "kubelet"))


@dataclass(frozen=True)
class RuntimeWork:
    """What a node shows of its runtime.

    is_told: whether the unit or the socket of the runtime is a finding of its own
    state: how the runtime is now, as a clause
    signs: what may keep it from its work, as clauses
    of_storage: those of its disk and of mounts, with what proves them
    mounts_answer: whether remote mounts were asked, and each of them answered
    """

    is_told: bool = False
    state: str = ""
    unit: str = ""
    signs: tuple[str, ...] = ()
    proofs: tuple[EvidenceRef, ...] = ()
    of_storage: tuple[tuple[str, EvidenceRef], ...] = ()
    mounts_answer: bool = False


def extract(document: Mapping[str, Any]) -> RuntimeWork:
    """Return what one node's evidence shows of its runtime."""
    hangs = contract.optional_answer(document, Hangs)
    waits = (*_tasks(document), *_stalls(document), *_stores(document))
    of_storage = (*waits, *_kernel(document, _STORAGE))
    mounts_answer = hangs is not None and all(map(remote_mounts.is_well, hangs.mounts))
    rows = (*waits, *_memory(document), *_kernel(document, _KERNEL))
    return replace(_work(document, rows), of_storage=of_storage, mounts_answer=mounts_answer)


def _work(document: Mapping[str, Any], rows: Iterable[tuple[str, EvidenceRef]]) -> RuntimeWork:
    """Return the state of the runtime, with all that may keep it from its work."""
    answer = contract.optional_answer(document, Runtime)
    signs = tuple(clause for clause, _proof in rows)
    proofs = tuple(proof for _clause, proof in rows)
    if answer is None or answer.kind == EMBEDDED:
        return RuntimeWork(signs=signs, proofs=proofs)
    units = [systemd_unit.unit(record) for record in answer.units if not record.absent]
    unit = next(reversed(units), Unit())
    if _is_told(answer) or pleg(document) is not None:
        return RuntimeWork(True, unit=unit.name)
    return RuntimeWork(False, _state(answer, unit), unit.name, signs, proofs)


def pleg(document: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return how long a kubelet has missed the runtime's lists, and its log line, or None."""
    clock = contract.answer(document, System).clock
    if clock is None:
        return None
    for line in reversed(contract.answer(document, KubeletLog).lines):
        match = _PLEG.search(line)
        if match is None:
            continue
        logged = kubelet_status.moment(line)
        if logged is None:
            continue
        if not -RECENT_SECONDS <= clock - logged <= RECENT_SECONDS:
            return None
        return match.group(1), ends(line, 400)
    return None


def _is_told(answer: Runtime) -> bool:
    """Tell whether a runtime does not run, or does not answer, which KM508 reports."""
    units = [systemd_unit.unit(record) for record in answer.units if not record.absent]
    if any(systemd_unit.state(unit).kind in ENDED for unit in units):
        return True
    if answer.error or answer.socket in ("missing", "other"):
        return True
    calls = set((answer.calls or {}).values())
    return SILENT in calls or calls == {UNIMPLEMENTED}


def _state(answer: Runtime, unit: Unit) -> str:
    """Return how a runtime is now, as a clause, "" where that is not known."""
    restarts = ""
    if unit.restarts:
        restarts = f", which systemd started again {times(unit.restarts)},"
    calls = (answer.calls or {}).values()
    if unit.runs and (OK in calls or answer.kind == DOCKER):
        return f"{unit.name}{restarts} runs and answers a call now"
    if unit.name:
        return f"{unit.name}{restarts} is {unit.active} ({unit.sub})"
    return ""


def _tasks(document: Mapping[str, Any]) -> Iterator[tuple[str, EvidenceRef]]:
    """Yield processes of the runtime that cannot go on."""
    tasks = contract.answer(document, Hangs).tasks
    of_runtime = [task for task in tasks if task.name.startswith(_PROGRAMS)]
    for task in of_runtime[:SHOWN]:
        yield (
            f"{_named(task)} is in state D",
            EvidenceRef(
                "process",
                document["host"],
                pid=task.pid,
                text=f"waits in {one_line(task.wchan, 80)}",
            ),
        )


def _named(task: Task) -> str:
    return f"{one_line(task.name, 64)} (pid {task.pid}, in {one_line(task.wchan, 80) or '?'})"


def _stalls(document: Mapping[str, Any]) -> Iterator[tuple[str, EvidenceRef]]:
    """Yield that all work of the node waited for its disks in much of the last minute."""
    stalls = contract.answer(document, Pressure).stalls
    if stalls is None or stalls.io is None or stalls.io < STALLED:
        return
    clause = f"all work of the node waited for a disk in {stalls.io:.0f} % of the last minute"
    text = f"full avg60={stalls.io:.2f}"
    yield clause, EvidenceRef("file", document["host"], path="/proc/pressure/io", text=text)


def _stores(document: Mapping[str, Any]) -> Iterator[tuple[str, EvidenceRef]]:
    """Yield file systems of the runtime that take no writes."""
    for full in store.unwritable(contract.answer(document, Spaces).stores or ()):
        if any(folder.use in _RUNTIME_USES for folder in full.stores):
            path = one_line(full.stores[0].path, 200)
            clause = f"the file system of {path} {full.why}"
            yield clause, EvidenceRef("file", document["host"], path=path, text=full.why)


def _memory(document: Mapping[str, Any]) -> Iterator[tuple[str, EvidenceRef]]:
    memory = contract.answer(document, Pressure).memory or Memory()
    if memory.available is None or not memory.total:
        return
    if memory.available < memory.total / LOW_SHARE:
        clause = f"of {size(memory.total)} memory {size(memory.available)} are available"
        yield clause, EvidenceRef("file", document["host"], path="/proc/meminfo", text=clause)


def _kernel(
    document: Mapping[str, Any], kinds: Container[str]
) -> Iterator[tuple[str, EvidenceRef]]:
    """Yield what the kernel said in the last hour, the newest line of each kind."""
    rows = sorted(contract.answer(document, KernelLog).rows, key=lambda row: -(row.last or 0.0))
    newest = {row.kind: row for row in reversed(rows) if row.kind in kinds}
    for kind, row in list(newest.items())[:SHOWN]:
        line = ends(one_line(row.line, 2000), QUOTED)
        yield (
            f"{_KERNEL[kind]}: {line}",
            EvidenceRef("log", document["host"], path="/dev/kmsg", text=line),
        )
