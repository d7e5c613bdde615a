# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One cluster at a glance: its hosts against the faults that are present or unknown.

Hosts of which the same is said are one row, all hosts without a fault are one row, and faults that
are unknown of the same hosts are one column: 5,000 hosts read as a handful of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..models import result as model

ROWS = 200
# Worst first. A fault that is present is shown by its severity.
STATES = ("critical", "warning", "info", "present", "unknown", "clear", "not_applicable", "")
TROUBLE = frozenset(STATES[:5])
WHOLE = None  # what is said of the cluster, and of none of its hosts


@dataclass(frozen=True)
class Row:
    """Hosts of which the same is said. kind: host, whole (the cluster) or clean; status.

    Of the hosts; cells: a state for each column.
    """

    kind: str
    hosts: tuple[str, ...]
    status: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Matrix:
    """columns: codes; more than one where all of them are unknown of the same hosts. hidden.

    Hosts whose rows did not fit.
    """

    columns: tuple[tuple[str, ...], ...]
    rows: tuple[Row, ...]
    hidden: int


States = Mapping[str | None, Mapping[str, str]]


def states(
    verdicts: Iterable[model.Verdict], findings: Iterable[model.Finding]
) -> dict[str | None, dict[str, str]]:
    """What is said of each host about each fault that is present or unknown anywhere; WHOLE.

    Of the cluster.
    """
    verdicts, findings = list(verdicts), list(findings)
    codes = {item.code for item in verdicts if item.verdict in ("present", "unknown")} | {
        item.code for item in findings
    }
    found: dict[str | None, dict[str, str]] = {}

    def say(host: str | None, code: str, state: str) -> None:
        mine = found.setdefault(host, {})
        if code not in mine or STATES.index(state) < STATES.index(mine[code]):
            mine[code] = state

    for item in verdicts:
        if item.code in codes:
            if item.verdict != "unknown" or item.host:
                say(item.host, item.code, item.verdict)
            for lack in item.missing:
                say(lack.host, item.code, "unknown")
            if item.verdict == "unknown" and not item.host and not item.missing:
                say(WHOLE, item.code, "unknown")
    for one in findings:
        for host in places(one):
            say(host, one.code, one.severity if one.severity in model.SEVERITIES else "present")
    whole = found.get(WHOLE, {})
    for code, state in list(whole.items()):
        if any(mine.get(code) in STATES[:4] for host, mine in found.items() if host is not WHOLE):
            del whole[code]  # it is shown where it is
        elif state == "present":
            whole[code] = min(
                (one.severity for one in findings if one.code == code and one.severity in STATES),
                key=STATES.index,
                default=state,
            )
    return found


def places(item: model.Finding) -> list[str | None]:
    """The hosts that a finding is about.

    Its own, else those of its evidence, else the whole cluster.
    """
    if item.host or item.node:
        return list(item.everywhere) or [item.node]
    return list(dict.fromkeys(proof.host for proof in item.evidence if proof.host)) or [WHOLE]


def make(hosts: Sequence[model.HostRow], said: States) -> Matrix:
    """The matrix of these hosts; empty (without columns) where nothing is present or unknown."""
    codes = sorted(
        {code for mine in said.values() for code, state in mine.items() if state in TROUBLE}
    )
    statuses = {row.host: row.status for row in hosts}
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    clean: list[str] = []
    cleanest: dict[str, str] = {}
    nothing: Mapping[str, str] = {}
    for host in dict.fromkeys([*statuses, *(name for name in said if name is not WHOLE)]):
        mine = said.get(host, nothing)
        if statuses.get(host, "ok") == "ok" and TROUBLE.isdisjoint(mine.values()):
            clean.append(host)
            for code, state in mine.items():
                cleanest[code] = min(cleanest.get(code, state), state, key=STATES.index)
        else:
            alike.setdefault(
                (statuses.get(host, ""), tuple(mine.get(code, "") for code in codes)), []
            ).append(host)
    rows = [Row("host", tuple(names), status, cells) for (status, cells), names in alike.items()]
    rows.sort(key=lambda row: (sorted(STATES.index(cell) for cell in row.cells), row.hosts))
    hidden = sum(len(row.hosts) for row in rows[ROWS:])
    whole = said.get(WHOLE, nothing)
    if any(state in TROUBLE for state in whole.values()):
        rows.insert(0, Row("whole", (), "", tuple(whole.get(code, "") for code in codes)))
    rows = rows[:ROWS]
    if clean:
        rows.append(
            Row("clean", tuple(clean), "ok", tuple(cleanest.get(code, "") for code in codes))
        )
    return _narrow(codes, rows, hidden)


def _narrow(codes: Sequence[str], rows: Sequence[Row], hidden: int) -> Matrix:
    """Columns of which the same is said of all hosts, and that are present nowhere, become one."""
    groups: dict[object, list[int]] = {}
    for index, code in enumerate(codes):
        column = tuple(row.cells[index] for row in rows)
        apart = hidden or any(cell in STATES[:4] for cell in column)
        groups.setdefault(code if apart else column, []).append(index)
    kept = list(groups.values())
    return Matrix(
        tuple(tuple(codes[index] for index in group) for group in kept),
        tuple(
            Row(row.kind, row.hosts, row.status, tuple(row.cells[group[0]] for group in kept))
            for row in rows
        ),
        hidden,
    )
