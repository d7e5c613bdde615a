# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The typed result of judging, from which every report is rendered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

REPORT_SCHEMA = "kubemend.report/1"
VERDICTS = ("present", "unknown", "clear", "not_applicable")
DOCS = "docs/faults"
SEVERITIES = ("critical", "warning", "info")
WAIVED = "waived"  # in place of a severity, for a finding that a waiver covers
FIRST = frozenset(("KM115",))  # told before all others of their severity, because they explain them
# the key of the one cluster of hosts none of which proved its own: no root, or none answered
UNPROVEN = "unproven"


@dataclass(frozen=True)
class EvidenceRef:
    """One pointer to what proves a finding; fields that do not apply are None.

    kind: file, process, api, http, unit or log. line: 1-based. text: the line, value or answer, as
    the node said it (untrusted: every renderer escapes it).
    """

    kind: str
    host: str | None = None
    path: str | None = None
    line: int | None = None
    pid: int | None = None
    argv: tuple[str, ...] | None = None
    object: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class Missing:
    """Evidence that a verdict lacks.

    host: the host that it is of
    collector: the collector that reads it
    status: what became of it (an evidence status), or starting: what it shows may soon change
    """

    host: str
    collector: str
    status: str


@dataclass(frozen=True)
class Waived:
    """Why a finding is accepted, who answers for it, and the last day of that (UTC)."""

    reason: str
    owner: str
    expires: str


@dataclass(frozen=True)
class Finding:
    """A fault that is present.

    risk: 0-4 as the docs define it
    remedy: one sentence naming place and new text
    waived: set where a waiver covers it; then it counts for no threshold and is not planned
    since: the start of the run from which on it was found, where earlier reports say that
    hosts: every host that it is of, host among them, where several share one kernel (containers as
    nodes); else empty
    """

    code: str
    severity: str
    cluster: str | None
    host: str | None
    component: str | None
    summary: str
    node: str | None = None
    because: tuple[str, ...] = ()
    evidence: tuple[EvidenceRef, ...] = ()
    remedy: str | None = None
    risk: int = 0
    command: str | None = None
    hosts: tuple[str, ...] = ()
    waived: Waived | None = None
    since: str | None = None

    @property
    def state(self) -> str:
        """The severity that it counts with, or `waived`."""
        if self.waived is not None:
            return WAIVED
        return self.severity

    @property
    def everywhere(self) -> tuple[str, ...]:
        """The hosts that it is of; none where it is of no host."""
        return self.hosts or ((self.host,) if self.host else ())

    @property
    def id(self) -> str:
        """Return a name that is stable between runs, so that two reports can be compared.

        It has the code and the place, never wording.
        """
        return "/".join(
            (self.code, self.cluster or "-", self.host or self.node or "-", self.component or "-")
        )

    @property
    def docs(self) -> str:
        """The page of its fault, in the folder of the collection."""
        return f"{DOCS}/{self.code}.md"


# one for each fault and place: of a large fleet a million, and a frozen dataclass takes four times
# as long to make
class Verdict(NamedTuple):
    """What is known about one fault at one place.

    note: why, where the verdict alone would puzzle the reader.
    """

    code: str
    cluster: str | None
    verdict: str
    host: str | None = None
    component: str | None = None
    missing: tuple[Missing, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class NotJudged:
    """A fault that this run did not ask about.

    reason: limit, tier or slice
    """

    code: str
    cluster: str | None
    reason: str


@dataclass(frozen=True)
class HostRow:
    """One audited or expected host.

    role: control_plane, worker or unknown
    status: ok, unreachable or error
    judged: how many faults of the run's tier were judged for it
    """

    host: str
    node: str | None
    cluster: str | None
    role: str
    status: str
    reason: str = ""
    judged: int = 0


@dataclass(frozen=True)
class Coverage:
    """Which Nodes of a cluster were audited.

    nodes: how many its API lists, None where it did not say
    left: (name of a Node or host, why it was not audited): no_host, limit, or the status of its
    host
    """

    cluster: str | None
    nodes: int | None
    audited: int
    left: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Lack:
    """Why a collector gave no answer, in the node's or the API's own words (untrusted).

    Reason may be empty.
    """

    cluster: str | None
    host: str
    collector: str
    status: str
    reason: str


@dataclass(frozen=True)
class ClusterRow:
    """One cluster: key is the first 16 hex digits of the digest that proves it, or UNPROVEN."""

    key: str
    kubernetes_version: str | None
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """Everything that judging says, in a stable order.

    Reports add the run's own data (id, times, mode, exit).
    """

    clusters: tuple[ClusterRow, ...] = ()
    hosts: tuple[HostRow, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    findings: tuple[Finding, ...] = field(default=())
    faults: int = 0  # how many the catalogue has in the run's tier, chosen or not
    coverage: tuple[Coverage, ...] = ()
    lacks: tuple[Lack, ...] = ()
