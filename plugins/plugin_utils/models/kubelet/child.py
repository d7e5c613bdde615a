# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the kubelet that RKE2 starts as a process of its own ends again and again. Pure.

RKE2 logs each end in its journal ("Kubelet exited: …"), and starts it again after five seconds
(pkg/podexecutor/staticpod.go). The kubelet itself writes to agent/logs/kubelet.log. Meanwhile the
unit is in its start, or runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ...evidence.answers.node.kubelet_end import KubeletEnd
from ...parsers import systemd_unit, unit_journal
from ...parsers.unit_journal import Said, Start
from . import exit_cause
from .exit_cause import Death

_EXITED = re.compile(r'time="[^"]{1,64}" level=error msg="Kubelet exited: ([^"\\]{1,80})"')
_STATUS = re.compile(r"exit status (\d{1,3})")
_PID = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,9} +(\d{1,10}) ")
OFTEN = 2  # ends of which no other one need tell whether they go on


@dataclass(frozen=True)
class Child:
    """The end of a kubelet that RKE2 started.

    words: how it ended; count: how often since RKE2 started; line: the last of these lines.
    death: the exit cause by its own log
    """

    words: str
    count: int
    line: str
    death: Death

    @property
    def repeats(self) -> bool:
        """Return whether another start ends in the same way."""
        lasting = self.death.certain and self.death.cause not in exit_cause.PASSING
        return self.count >= OFTEN or lasting


def find(end: KubeletEnd) -> Child | None:
    """Return how the kubelet ended last in the newest start of RKE2, or None. Never raises."""
    starts = unit_journal.starts(end.lines)
    if not starts or starts[-1].exit is not None:
        return None
    exits = [line for line in starts[-1].lines if _EXITED.match(line.text)]
    last = _EXITED.match(exits[-1].text) if exits else None
    if last is None:
        return None
    words, raw = last.group(1), exits[-1].raw
    return Child(words, len(exits), raw, _death(end, words, raw))


def _death(end: KubeletEnd, words: str, raw: str) -> Death:
    """Return the exit cause by the kubelet's own log, else that it is not known."""
    unknown = Death(exit_cause.UNKNOWN, words, raw)
    status = _STATUS.fullmatch(words)
    if status is None or end.file is None:
        return unknown
    number = int(status.group(1))
    lines = [Said(line, _pid(line), line) for line in end.file.lines]
    unit = systemd_unit.Unit(result="exit-code", status=number)
    start = Start(lines=lines, exit=("exited", number))
    death = exit_cause.of_start(start, unit)
    if death is None:
        return unknown
    if death.cause == exit_cause.UNKNOWN:
        return replace(death, what=words)
    return death


def _pid(line: str) -> int | None:
    """Return the process id in a line's header: a line of this file has no other."""
    header = _PID.match(line)
    return int(header.group(1)) if header is not None else None
