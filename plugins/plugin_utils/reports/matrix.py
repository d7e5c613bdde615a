# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One cluster at a glance: its hosts against the faults that are present or unknown.

Hosts with the same states are one row, all hosts without a fault are one row, and faults that are
unknown on the same hosts are one column: 5,000 hosts read as a handful of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ..models import result as model_result

ROWS = 200
# Worst first. A fault that is present is shown by its severity.
STATES = (
    *model_result.SEVERITIES,
    model_result.WAIVED,
    "present",
    "unknown",
    "clear",
    "not_applicable",
    "",
)
PRESENT = frozenset(STATES[:5])
TROUBLE = frozenset(STATES[:6])
WHOLE = None  # stands for the cluster, and for none of its hosts


@dataclass(frozen=True)
class Row:
    """Hosts with the same states.

    Attributes:
        kind: host, whole (the cluster) or clean.
        status: of the hosts.
        cells: a state for each column.
    """

    kind: str
    hosts: tuple[str, ...]
    status: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Matrix:
    """Rows of hosts and columns of faults.

    Attributes:
        columns: codes; several in one column if all of them are unknown on the same hosts.
        hidden: the number of hosts whose rows did not fit.
    """

    columns: tuple[tuple[str, ...], ...]
    rows: tuple[Row, ...]
    hidden: int


_HostStates = Mapping[str, str]  # state by code
States = Mapping[str | None, _HostStates]
NO_STATES: _HostStates = {}


def states(
    verdicts: Iterable[model_result.Verdict], findings: Iterable[model_result.Finding]
) -> dict[str | None, dict[str, str]]:
    """Return the state of each host for each fault that is present or unknown anywhere.

    WHOLE stands for the cluster.
    """
    verdicts, findings = list(verdicts), list(findings)
    codes = {item.code for item in verdicts if item.verdict in ("present", "unknown")}
    codes.update(finding.code for finding in findings)
    relevant = (item for item in verdicts if item.code in codes)
    table: dict[str | None, dict[str, str]] = {}
    for host, code, state in chain(_verdict_states(relevant), _finding_states(findings)):
        row = table.setdefault(host, {})
        if code not in row or STATES.index(state) < STATES.index(row[code]):
            row[code] = state
    if WHOLE in table:
        _refine_whole(table, findings)
    return table


def _verdict_states(
    verdicts: Iterable[model_result.Verdict],
) -> Iterator[tuple[str | None, str, str]]:
    for item in verdicts:
        if item.verdict != "unknown" or item.host:
            yield item.host, item.code, item.verdict
        elif not item.missing:
            yield WHOLE, item.code, "unknown"
        for lack in item.missing:
            yield lack.host, item.code, "unknown"


def _finding_states(
    findings: Iterable[model_result.Finding],
) -> Iterator[tuple[str | None, str, str]]:
    for finding in findings:
        state = "present"
        if finding.state in STATES:
            state = finding.state
        for host in places(finding):
            yield host, finding.code, state


def _refine_whole(
    table: dict[str | None, dict[str, str]], findings: Sequence[model_result.Finding]
) -> None:
    """Remove faults from the row of the cluster that a host's row shows, and add severities."""
    whole = table[WHOLE]
    on_hosts: set[str] = set()
    for host, row in table.items():
        if host is not WHOLE:
            on_hosts.update(code for code, state in row.items() if state in PRESENT)
    for code, state in list(whole.items()):
        if code in on_hosts:
            del whole[code]
        elif state == "present":
            severities = (finding.state for finding in findings if finding.code == code)
            known_severities = (severity for severity in severities if severity in STATES)
            whole[code] = min(known_severities, key=STATES.index, default=state)


def places(finding: model_result.Finding) -> list[str | None]:
    """Return the hosts of a finding, else those of its evidence, else the whole cluster.

    An answer of the API is of no host: any one may have asked.
    """
    if finding.host or finding.node:
        return list(finding.everywhere) or [finding.node]
    hosts = (proof.host for proof in finding.evidence if proof.host and proof.kind != "api")
    return list(dict.fromkeys(hosts)) or [WHOLE]


def make(hosts: Sequence[model_result.HostRow], table: States) -> Matrix:
    """Return the matrix of these hosts; without columns if nothing is present or unknown."""
    codes = _troubled_codes(table)
    statuses = {row.host: row.status for row in hosts}
    clean: list[str] = []
    names_by_state: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for host in dict.fromkeys([*statuses, *(name for name in table if name is not WHOLE)]):
        row = table.get(host, NO_STATES)
        if statuses.get(host, "ok") == "ok" and TROUBLE.isdisjoint(row.values()):
            clean.append(host)
        else:
            key = (statuses.get(host, ""), _cells(row, codes))
            names_by_state.setdefault(key, []).append(host)
    rows = [
        Row("host", tuple(names), status, cells)
        for (status, cells), names in names_by_state.items()
    ]
    rows.sort(key=_row_order)
    hidden = sum(len(row.hosts) for row in rows[ROWS:])
    whole = table.get(WHOLE, NO_STATES)
    if not TROUBLE.isdisjoint(whole.values()):
        rows.insert(0, Row("whole", (), "", _cells(whole, codes)))
    rows = rows[:ROWS]
    if clean:
        cells = _cells(_worst(table, clean), codes)
        rows.append(Row("clean", tuple(clean), "ok", cells))
    return _narrow(codes, rows, hidden)


def _row_order(row: Row) -> tuple[list[int], tuple[str, ...]]:
    return sorted(map(STATES.index, row.cells)), row.hosts


def _troubled_codes(table: States) -> list[str]:
    """Return the codes of the columns, worst first: a wide table shows only its first ones."""
    worst: dict[str, int] = {}
    for row in table.values():
        for code, state in row.items():
            if state in TROUBLE:
                index = STATES.index(state)
                worst[code] = min(worst.get(code, index), index)
    return sorted(worst, key=lambda code: (worst[code], code))


def _cells(row: _HostStates, codes: Iterable[str]) -> tuple[str, ...]:
    return tuple(row.get(code, "") for code in codes)


def _worst(table: States, hosts: Iterable[str]) -> _HostStates:
    worst: dict[str, str] = {}
    for host in hosts:
        for code, state in table.get(host, NO_STATES).items():
            worst[code] = min(worst.get(code, state), state, key=STATES.index)
    return worst


def _narrow(codes: Sequence[str], rows: Sequence[Row], hidden: int) -> Matrix:
    """Join columns with the same state on all hosts that are present nowhere."""
    groups: dict[object, list[int]] = {}
    for index, code in enumerate(codes):
        column = tuple(row.cells[index] for row in rows)
        key: object = column
        if hidden or not PRESENT.isdisjoint(column):
            key = code
        groups.setdefault(key, []).append(index)
    kept = list(groups.values())
    return Matrix(
        tuple(tuple(codes[index] for index in group) for group in kept),
        tuple(
            Row(row.kind, row.hosts, row.status, tuple(row.cells[group[0]] for group in kept))
            for row in rows
        ),
        hidden,
    )
