# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare events about processes that the kernel killed with the kernel's own log. Pure.

A kubelet that starts reads the kernel's log from its beginning and reports each kill that it finds
as a new event. So neither the number of such events nor their time is that of the kills.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.shared.memory_kills import CGROUP, MAX_KILLS
from ...module_utils.shared.text import times
from ..evidence import contract
from ..evidence.answers.cluster.object_events import ObjectEvent
from ..evidence.answers.node.kernel_log import KernelLog, MemoryKill
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from .moments import moment

REASONS = frozenset(("SystemOOM", "OOMKilling"))
HOUR = 3600.0  # seconds: what the kernel said before is no finding
SLACK = 60.0  # seconds between the reading of the log and of the host's clock
_OF_KUBELET = re.compile(r"victim process: (.{1,64}), pid: \d")
_OF_KERNEL = re.compile(r"[Kk]ill(?:ed)? process \d{1,10} \((.{1,64}?)\)")
_DIGITS = re.compile(r"\d+")  # rows of events are alike but for numbers


@dataclass(frozen=True)
class KernelKills:
    """What the kernel of a node killed for want of memory.

    clock: the node's own time when that was read
    begins: when the kernel's log begins, where it does not reach an hour back
    cut: whether the log may have more
    """

    kills: tuple[MemoryKill, ...]
    clock: float
    begins: float | None
    cut: bool


@dataclass(frozen=True)
class Confirmation:
    """How often and when processes were killed, as far as that is known.

    is_over: whether the kernel's log shows that the machine was not without memory in the last hour
    """

    when: str = ""
    is_over: bool = False


def extract(document: Mapping[str, Any]) -> KernelKills | None:
    """Return what the kernel of a node killed, None where its log was not read."""
    log = contract.optional_answer(document, KernelLog)
    clock = contract.answer(document, System).clock
    if log is None or log.kills is None or clock is None:
        return None
    begins = log.since
    if begins is not None and clock - begins > HOUR - SLACK:
        begins = None
    return KernelKills(log.kills, clock, begins, log.cut or _is_full(log.kills, clock))


def _is_full(kills: tuple[MemoryKill, ...], clock: float) -> bool:
    """Tell whether the last hour may have had more kills than a node sends."""
    return len(kills) >= MAX_KILLS and clock - min(kill.at or 0.0 for kill in kills) < HOUR


def compare(event: ObjectEvent, kernel: KernelKills | None) -> Confirmation:
    """Return what is known of the kills that events report."""
    if kernel is None:
        return Confirmation(_as_reported(event))
    of_program = [kill for kill in kernel.kills if _is_of(event, kill)]
    recent = [kill for kill in of_program if kernel.clock - (kill.at or 0.0) < HOUR]
    of_machine = [kill for kill in recent if kill.scope != CGROUP]
    if of_machine:
        return Confirmation(_as_logged(event, of_machine))
    if kernel.cut:
        return Confirmation(_as_reported(event))
    begins = moment(kernel.begins)
    if of_program or begins is None:
        return Confirmation(is_over=True)
    return Confirmation(
        f"({_reason(event)}) before {begins:%Y-%m-%dT%H:%M:%SZ}, where the kernel's log begins"
    )


def _is_of(event: ObjectEvent, kill: MemoryKill) -> bool:
    """Tell whether events may be about this kill: those of one row name one program."""
    match = _OF_KUBELET.search(event.message) or _OF_KERNEL.search(event.message)
    return match is None or _folded(match.group(1)) == _folded(kill.program)


def _folded(program: str) -> str:
    return _DIGITS.sub("#", program)


def _as_logged(event: ObjectEvent, kills: list[MemoryKill]) -> str:
    last = moment(max(kill.at or 0.0 for kill in kills))
    time = f", last at {last:%Y-%m-%dT%H:%M:%SZ}" if last is not None else ""
    return f"{times(len(kills))} in the last hour by its own log ({_reason(event)}){time}"


def _as_reported(event: ObjectEvent) -> str:
    """Return what events alone show: how many kills, and a time that none of them is after."""
    count = f"{times(event.texts)} " if event.texts else ""
    time = f"at {one_line(event.first, 40)} or before" if event.first else "at an unknown time"
    return (
        f"{count}({_reason(event)}), first {time}: a kubelet that starts again reports old kills"
        " again, and the kernel's log was not read"
    )


def _reason(event: ObjectEvent) -> str:
    return one_line(event.reason, 80)
