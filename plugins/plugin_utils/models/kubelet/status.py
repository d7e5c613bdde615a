# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State of a node's kubelet and its exit cause, by its unit and the end of its journal. Pure.

One read meets a kubelet that ends and is started again in any state: waiting, starting, running for
a moment. The kubelet loops if systemd itself started it last, and if it has not run longer yet than
those before it did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ....module_utils.shared.start_refusal import Refusal
from ...evidence import contract, memoize
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.answers.node.kubelet_end import KubeletEnd
from ...evidence.answers.node.system import System
from ...parsers import systemd_unit, unit_journal
from ...parsers.runtime_journal import Words
from ...parsers.systemd_unit import State, Unit
from .. import unit_start
from . import child as kubelet_child
from . import exit_cause, runtime_log, supervisor, waiting_start
from .child import Child
from .exit_cause import Death
from .waiting_start import Wait

ENDED = frozenset(
    (systemd_unit.LOOPING, systemd_unit.GAVE_UP, systemd_unit.FAILED, systemd_unit.STOPPED)
)
SHORT = 30  # seconds within which a kubelet ends that refuses its configuration
GRACE = 20  # seconds that a process may live longer than those before it
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)([+-]\d\d):?(\d\d) ")
_AGAIN = re.compile(r"Scheduled restart job|scheduling restart")


@dataclass(frozen=True)
class KubeletStatus:
    """State of a kubelet's unit and the reason of its end.

    state: as systemd and the journal show
    death: exit cause, as far as it is known
    since: when it ended last
    last: its last line
    asked: whether the end of the journal was collected
    runs: whether a kubelet runs that is not its unit's
    refused: what systemd refuses of its start
    wait: what a start waits for that does not come by itself
    child: how the kubelet ends that RKE2 starts, where that is why it does not run
    log: the file in which that kubelet writes
    runtime: the last line of the containerd of k3s or RKE2 that ended, and the file that has them
    """

    unit: Unit
    state: State
    death: Death | None
    since: str
    last: str
    asked: bool
    runs: bool
    refused: tuple[Refusal, ...] = ()
    wait: Wait | None = None
    child: Child | None = None
    log: str = ""
    runtime: tuple[Words, str] | None = None

    @property
    def ended(self) -> bool:
        """Return whether it verifiably does not run, for long at least."""
        return self.state.kind in ENDED and not self.runs and not self.unit.masked


@memoize.last
def read(document: Mapping[str, Any]) -> KubeletStatus | None:
    """Return the state of a node's kubelet; None where the evidence names no unit."""
    kubelet = contract.answer(document, Kubelet)
    if kubelet.unit is None:
        return None
    unit, end = systemd_unit.unit(kubelet.unit), contract.optional_answer(document, KubeletEnd)
    lines: tuple[str, ...] = ()
    if end is not None:
        lines = end.lines
    clock = contract.answer(document, System).clock
    state = _state(unit, lines, clock)
    child = _child(kubelet, state, end, unit, clock)
    state = _state_of_child(child) or state
    refused: tuple[Refusal, ...] = ()
    if state.kind in ENDED:
        refused = tuple(unit_start.find_refusals(document, kubelet.unit, lines))
    past = unit_start.past(refused)
    if state.kind == systemd_unit.STOPPED and past is not None:
        state = replace(state, why=past.what)  # systemd did, not an operator
    last = next((line for line in reversed(lines) if _TIME.match(line)), "")
    return KubeletStatus(
        unit,
        state,
        _death_of_child(child) or _death(state, lines, unit),
        _since(last),
        last,
        end is not None,
        _runs_apart(kubelet, state),
        refused,
        _wait(document, state, lines),
        child,
        _file(end),
        _runtime(end),
    )


def _wait(document: Mapping[str, Any], state: State, lines: Sequence[str]) -> Wait | None:
    """Return what the start of k3s or RKE2 waits for, or None."""
    if state.kind != systemd_unit.STARTING:
        return None
    owner = supervisor.read(document)
    return waiting_start.find(lines, owner.server if owner is not None else "")


def _file(end: KubeletEnd | None) -> str:
    """Return the file in which a kubelet of RKE2 writes, or ""."""
    return end.file.path if end is not None and end.file is not None else ""


def _runtime(end: KubeletEnd | None) -> tuple[Words, str] | None:
    words = runtime_log.find(end)
    if words is None or end is None or end.runtime_file is None:
        return None
    return words, end.runtime_file.path


def _state_of_child(child: Child | None) -> State | None:
    return State(systemd_unit.LOOPING, _of_child(child)) if child is not None else None


def _death_of_child(child: Child | None) -> Death | None:
    return child.death if child is not None else None


def _child(
    kubelet: Kubelet, state: State, end: KubeletEnd | None, unit: Unit, clock: float | None
) -> Child | None:
    """Return how the kubelet ends that RKE2 starts again and again, else None."""
    kinds = (systemd_unit.RUNNING, systemd_unit.STARTING)
    if unit.family != "rke2" or state.kind not in kinds or end is None:
        return None
    child = kubelet_child.find(end)
    if child is None or not child.repeats or _outlives(kubelet, child, clock):
        return None
    return child


def _outlives(kubelet: Kubelet, child: Child, clock: float | None) -> bool:
    """Return whether a kubelet runs for longer than one that ends at its start."""
    if kubelet.process is None or kubelet.argv_source != "process":
        return False
    started, ended = kubelet.process.started_at, moment(child.line)
    if started is None or ended is None or clock is None:
        return True
    return clock - started > SHORT or clock - ended > 2 * SHORT


def _of_child(child: Child) -> str:
    often = f", {child.count} times in its last log lines" if child.count > 1 else ""
    return f"RKE2 starts it, and it ends ({child.words}){often}"


def place_of_line(status: KubeletStatus) -> str:
    """Return the log that has the line of the exit cause: a unit's journal, or a file."""
    line = status.death.line if status.death is not None else ""
    if status.child is not None and line != status.child.line:
        return status.log
    return status.unit.name


def _runs_apart(kubelet: Kubelet, state: State) -> bool:
    """Return whether a kubelet runs that is not its unit's."""
    if state.kind not in ENDED or state.kind == systemd_unit.LOOPING:
        return False
    return kubelet.process is not None and kubelet.argv_source == "process"


def _death(state: State, lines: Sequence[str], unit: Unit) -> Death | None:
    if state.kind not in ENDED or state.has_stop_job:
        return None
    death = exit_cause.death(lines, unit)
    if state.kind != systemd_unit.LOOPING or (death is not None and death.certain):
        return death
    return exit_cause.repeated(lines, unit) or death


def _state(unit: Unit, lines: Sequence[str], clock: float | None) -> State:
    """Return the state by systemd; a kubelet that is up for a moment only is looping."""
    state = systemd_unit.state(unit)
    if unit.runs and state.kind != systemd_unit.LOOPING:
        state = State(systemd_unit.RUNNING, "it is running")  # whatever became of its file
    if state.kind == systemd_unit.FAILED and _had_stop_job(lines):
        return State(
            systemd_unit.STOPPED,
            f"systemctl stop, or a unit that conflicts with it, stopped it; {state.why}",
            has_stop_job=True,
        )
    if state.kind not in (systemd_unit.RUNNING, systemd_unit.STARTING) or unit.restarts == 0:
        return state
    if clock is None or not _by_itself(lines) or not _is_as_short_as_before(lines, clock):
        return state
    return State(
        systemd_unit.LOOPING, "it ended again and again, and systemd started it again a moment ago"
    )


def _had_stop_job(lines: Sequence[str]) -> bool:
    """Return whether systemd stopped it in its newest start.

    k3s then ends with status 1, so that its unit is failed.
    """
    starts = unit_journal.starts(lines)
    return bool(starts) and starts[-1].has_stop_job


def _is_as_short_as_before(lines: Sequence[str], clock: float) -> bool:
    """Return whether the process has not outlived the one before it yet."""
    exits = [moment(start.exit_line) for start in unit_journal.starts(lines) if start.exit]
    ends = [end for end in exits if end is not None]
    if len(ends) < 2:
        return False
    return -GRACE <= clock - ends[-1] <= ends[-1] - ends[-2] + GRACE


def _by_itself(lines: Sequence[str]) -> bool:
    """Return whether the newest start after an end was systemd's own."""
    for line in reversed(lines):
        if " systemd[1]: " not in line:
            continue
        if _AGAIN.search(line):
            return True
        if " exited, code=" in line:
            return False
    return False


def moment(line: str) -> float | None:
    """Return the epoch seconds of a line of `journalctl -o short-iso`, or None."""
    try:
        return datetime.strptime(_since(line), "%Y-%m-%dT%H:%M:%S%z").timestamp()
    except ValueError:
        return None


def _since(line: str) -> str:
    match = _TIME.match(line)
    if match is None:
        return ""
    return "".join(match.groups())
