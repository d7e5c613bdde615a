# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Components that k0s runs and that end again and again, from the journal of its unit. Pure.

k0s runs each component as a process of its own, logs what it says with the field component, and
starts it again by itself (pkg/supervisor/supervisor.go), so that systemd sees nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..evidence.answers.node.component_units import ComponentUnit
from ..parsers import component_log, message_class
from ..parsers.component_log import Telling
from .kubelet import status as kubelet_status

PROGRAM = "k0s"
# Three ends within ten minutes, the last one of late, are a loop: k0s waits 5 seconds between two.
LOOP_SECONDS, LATE_SECONDS, ENDS = 600, 120, 3
# What waits for what k0s has not started yet ends once or twice.
SETTLE_SECONDS = 300
LONGEST = 2048
_LINE = re.compile(
    r'time="[^"]{1,64}" level=\w{1,10} msg=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<word>\S{1,200}))'
    r"(?: \w{1,20}=\S{1,200}){0,4}? component=(?P<component>[a-z0-9-]{1,40})(?= |$)"
)
_ESCAPED = re.compile(r"\\(.)")
# What k0s itself says of a component that ended, each once for an end.
_ENDED = {
    "exit": re.compile(r"exit status \d{1,3}$|signal: [a-z ]{1,30}$|Failed to wait for process"),
    "again": re.compile(r"respawning in \d"),
    "started": re.compile(r"Restarted \(\d"),
    "failed": re.compile(r"Failed to start: "),
}
_OWN = re.compile(r"Starting to supervise|Started successfully|Stopping|Shutting down")


@dataclass
class Child:
    """A component that k0s runs.

    lines: what it said, oldest first; ends: the times of its ends, by who tells of them
    """

    component: str
    lines: list[str] = field(default_factory=list)
    ends: dict[str, list[float]] = field(default_factory=dict)

    @property
    def times(self) -> list[float]:
        """Return when it ended, by the one who tells of most ends."""
        return max(self.ends.values(), key=len, default=[])

    @property
    def telling(self) -> Telling:
        """Return the line that tells why it ended last."""
        last = component_log.last_word(self.lines)
        return component_log.telling(self.lines, last, self.component)


def find(row: ComponentUnit, clock: float | None) -> list[Child]:
    """Return the components of a k0s that runs which end again and again, or ended just now."""
    if row.component != PROGRAM or clock is None:
        return []
    settled = row.started_at is None or clock - row.started_at > SETTLE_SECONDS
    children = []
    for child in _children(row.lines, clock - LOOP_SECONDS):
        is_late = child.times and clock - max(child.times) < LATE_SECONDS
        if is_late and (settled or len(child.times) >= ENDS or _is_lasting(child.telling)):
            children.append(child)
    return children


def _is_lasting(telling: Telling) -> bool:
    """Tell whether what a component said at its end does not pass by itself."""
    if telling.reading is None or telling.reading.weak:
        return False
    return telling.reading.meaning not in message_class.PASSING


def _children(lines: Iterable[str], since: float) -> list[Child]:
    children: dict[str, Child] = {}
    for raw in lines:
        match = _LINE.search(raw[:LONGEST])
        time = kubelet_status.moment(raw)
        if match is None or time is None or time < since:
            continue
        name = match.group("component")
        child = children.setdefault(name, Child(name))
        message = match.group("word") or _ESCAPED.sub(r"\1", match.group("quoted") or "")
        _add(child, message, time)
    return list(children.values())


def _add(child: Child, message: str, time: float) -> None:
    """Add what k0s logs of a component."""
    source = next((kind for kind, words in _ENDED.items() if words.match(message)), "")
    if source == "failed" or (not source and not _OWN.match(message)):
        child.lines.append(message)
    if not source and component_log.says_exit(message):
        source = "own"
    if source:
        child.ends.setdefault(source, []).append(time)
