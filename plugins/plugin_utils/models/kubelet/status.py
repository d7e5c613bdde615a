# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the kubelet of a node runs, and what it died of.

Its unit and the end of its journal, put together. Pure.

One look meets a kubelet that ends and is started again in any state: waiting, starting, running for
a moment. It loops where systemd itself started it last, and it has not lived longer yet than those
before it did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ....module_utils.shared.start_refusal import Refusal
from ...evidence import memoize as remember
from ...parsers import systemd_unit as kubelet_unit
from ...parsers import unit_journal as kubelet_starts
from ...parsers.systemd_unit import State, Unit
from .. import control_plane
from .. import unit_start as start_refused
from . import exit_cause as kubelet_death
from .exit_cause import Death

ENDED = frozenset(
    (kubelet_unit.LOOPING, kubelet_unit.GAVE_UP, kubelet_unit.FAILED, kubelet_unit.STOPPED)
)
GRACE = 20  # seconds that a process may live longer than those before it
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)([+-]\d\d):?(\d\d) ")
_AGAIN = re.compile(r"Scheduled restart job|scheduling restart")


@dataclass(frozen=True)
class Why:
    """state: as systemd and the journal say; death: what it died of, as far as that is told; since.

    When it ended last; last: its last line.

    asked: whether the end of the journal was brought; runs: whether a kubelet runs that is not its
    unit's; refused: what systemd refuses of its start.
    """

    unit: Unit
    state: State
    death: Death | None
    since: str
    last: str
    asked: bool
    runs: bool
    refused: tuple[Refusal, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether it is proven not to run, for long at least."""
        return self.state.kind in ENDED and not self.runs and not self.unit.masked


@remember.last
def read(document: Mapping[str, Any]) -> Why | None:
    """Of a node's evidence; None where that names no unit of a kubelet."""
    kubelet = control_plane.data(document, "kubelet")
    facts = kubelet.get("unit")
    if not isinstance(facts, Mapping):
        return None
    unit, told = kubelet_unit.unit(facts), control_plane.data(document, "kubelet_end").get("lines")
    lines = [one for one in told if isinstance(one, str)] if isinstance(told, (list, tuple)) else []
    state = _state(unit, lines, document)
    death = None
    if state.kind in ENDED:
        death = kubelet_death.death(lines, facts)
        if death is None or not death.certain:
            death = (
                kubelet_death.repeated(lines, facts) if state.kind == kubelet_unit.LOOPING else None
            ) or death
    process = (
        isinstance(kubelet.get("process"), Mapping) and kubelet.get("argv_source") == "process"
    )
    alive = process and state.kind in ENDED and state.kind != kubelet_unit.LOOPING
    last = next((line for line in reversed(lines) if _TIME.match(line)), "")
    refused = tuple(start_refused.of(document, facts, lines)) if state.kind in ENDED else ()
    past = start_refused.past(refused)
    if state.kind == kubelet_unit.STOPPED and past is not None:
        state = replace(state, why=past.what)  # systemd did, not an operator
    return Why(
        unit, state, death, _since(last), last, isinstance(told, (list, tuple)), alive, refused
    )


def _state(unit: Unit, lines: Sequence[str], document: Mapping[str, Any]) -> State:
    """As systemd says; one that is up for a moment only is looping."""
    found = kubelet_unit.state(unit)
    if unit.runs and found.kind != kubelet_unit.LOOPING:
        found = State(kubelet_unit.RUNNING, "it is running")  # whatever became of its file
    if (
        found.kind not in (kubelet_unit.RUNNING, kubelet_unit.STARTING)
        or unit.restarts == 0
        or not _by_itself(lines)
    ):
        return found
    ends = [
        at
        for at in (moment(one.exit_line) for one in kubelet_starts.starts(lines) if one.exit)
        if at is not None
    ]
    clock = control_plane.data(document, "system").get("clock")
    if len(ends) < 2 or not isinstance(clock, (int, float)) or isinstance(clock, bool):
        return found
    if not -GRACE <= clock - ends[-1] <= ends[-1] - ends[-2] + GRACE:
        return found
    return State(
        kubelet_unit.LOOPING, "it ended again and again, and systemd started it anew a moment ago"
    )


def _by_itself(lines: Sequence[str]) -> bool:
    """Whether the newest start after an end was systemd's own, not somebody's."""
    for line in reversed(lines):
        if " systemd[1]: " in line:
            if _AGAIN.search(line):
                return True
            if " exited, code=" in line:
                return False
    return False


def moment(line: str) -> float | None:
    """When a line of `journalctl -o short-iso` was written, in seconds since the epoch.

    None where that is no such line.
    """
    match = _TIME.match(line)
    if match is None:
        return None
    try:
        return datetime.strptime("".join(match.groups()), "%Y-%m-%dT%H:%M:%S%z").timestamp()
    except ValueError:
        return None


def _since(line: str) -> str:
    match = _TIME.match(line)
    return "".join(match.groups()) if match else ""
