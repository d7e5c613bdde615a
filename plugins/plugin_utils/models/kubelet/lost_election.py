# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The election that a component lost, and with it the kubelet of the same process. Pure.

k3s, kubelite of MicroK8s, and RKE2 up to 1.20.7 run controllers in the process of the kubelet. A
controller that cannot renew its lease ends its process, whatever else that process is
(app/controllermanager.go of cloud-provider, cmd/kube-scheduler/app/server.go):

* `F0601 … controllermanager.go:222] leaderelection lost`
* `E0601 … controllermanager.go:274] "leaderelection lost"`, also "leaderelection lost/stopped"
* `E0601 … server.go:328] "Leaderelection lost"`
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.kubelet_end import KubeletEnd
from ...evidence.document import ends, one_line
from ...parsers import unit_journal
from ...parsers.unit_journal import Start
from . import supervisor

LOST = "eaderelection lost"
FOLLOW = 20  # lines that other goroutines may still write between that one and the end
KUBELITE, RKE2 = "kubelite", "rke2"
CLOUD = "cloud-controller-manager"
_LOST = re.compile(
    r'[EF]\d{4} [\d:.]{8,20} +\d{1,10} (?P<file>\w{1,40})\.go:\d{1,6}\] "?[\w ]{0,10}'
)
# Of late as a value: lock="kube-system/kube-scheduler".
_LEASE = re.compile(
    r'[Ff]ailed to renew lease"? (?:lock=")?(?P<lease>[a-z0-9-]{1,63}/[a-z0-9.-]{1,253})'
)
# The file that logs it, and a part of the name of its lease.
_OF_FILES = {"controllermanager": "controller-manager", "server": "scheduler"}


@dataclass(frozen=True)
class LostElection:
    """The election after whose loss a process ended.

    lease: its namespace and name, "" where no line tells it
    reason: what the last request about that lease met, "" where no line tells it
    program: of which the component is a part, as people call it
    lines: what tells it
    """

    lease: str = ""
    reason: str = ""
    program: str = ""
    unit: str = ""
    lines: tuple[str, ...] = ()

    @property
    def component(self) -> str:
        """Return the component that lost it."""
        return self.lease.partition("/")[2] or "a component"

    @property
    def clause(self) -> str:
        """Return what happened, for a summary, "" where no election was lost."""
        if not self.lines:
            return ""
        lease = f" {self.lease}" if self.lease else ""
        reason = f" ({self.reason})" if self.reason else ""
        return (
            f"; {self.component} lost its election (leaderelection lost): the API server or its"
            f" database did not let it renew its lease{lease} in time{reason}. It is a part of the"
            f" process of {self.program}, which ends with it, and with the kubelet"
        )

    @property
    def advice(self) -> str:
        """Return what to look at, and what keeps the process from ending, or ""."""
        if not self.lines:
            return ""
        text = (
            "see what made etcd (or the database in its place) and with it the API server slow in"
            " the seconds before: the logs of both and of"
            f" {self.unit} (took too long, slow fdatasync, Slow SQL, database is locked, no"
            " leader), iostat -x 5 for its disk, top for processors and steal time, ping between"
            " servers; give the data of the database a disk of its own, or the machine more CPU"
        )
        if self.program == supervisor.TITLES[RKE2] and self.component == CLOUD:
            text += (
                f"; update RKE2, whose later releases have {CLOUD} as a static pod of its own, so"
                " that RKE2 does not end with it (https://github.com/rancher/rke2/issues/1085)"
            )
        return text


NONE = LostElection()


def read(document: Mapping[str, Any]) -> LostElection:
    """Return the election that ended the last process of a unit, an empty one without it."""
    end = contract.optional_answer(document, KubeletEnd)
    owner = supervisor.read(document)
    if end is None:
        return NONE
    unit = end.unit or ""
    if owner is None and KUBELITE not in unit:
        return NONE
    program = owner.title if owner is not None else KUBELITE
    ended = [start for start in unit_journal.starts(end.lines) if start.exit is not None]
    if not ended:
        return NONE
    return _of_start(ended[-1], program, one_line(unit, 80))


def _of_start(start: Start, program: str, unit: str) -> LostElection:
    last = next((raw for _line, raw in unit_journal.about(start, LOST)), "")
    match = _LOST.search(last)
    if match is None or last not in [line.raw for line in start.lines[-FOLLOW:]]:
        return NONE
    lease_line, lease = _lease(start, _OF_FILES.get(str(match.group("file")), ""))
    reason_line, reason = _reason(start, lease)
    lines = tuple(
        ends(one_line(line, 600), 400) for line in (reason_line, lease_line, last) if line
    )
    return LostElection(lease, reason, program, unit, lines)


def _lease(start: Start, part: str) -> tuple[str, str]:
    """Return (line, lease) of the newest one that was not renewed and has this in its name."""
    rows = [(raw, _LEASE.search(raw)) for _line, raw in unit_journal.about(start, "renew lease")]
    leases = [(raw, str(match.group("lease"))) for raw, match in rows if match is not None]
    return next(((raw, lease) for raw, lease in leases if part in lease), ("", ""))


def _reason(start: Start, lease: str) -> tuple[str, str]:
    """Return (line, its innermost reason) of the last request about a lease that failed."""
    if not lease:
        return "", ""
    for line, raw in unit_journal.about(start, lease):
        error = line.get("err") or line.message.partition(f"{lease}: ")[2]
        if error and not _LEASE.search(raw):
            return raw, one_line(error.rpartition(": ")[2], 120)
    return "", ""
