# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The matrix of faults and hosts."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    result as model_result,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    matrix,
)
from tests.browser import fleet


def states(size=6, broken=2, silent=1):
    found = fleet.result(size, broken=broken, silent=silent)
    said = matrix.states(found.verdicts, found.findings)
    return found, said, matrix.make(found.hosts, said)


def test_unknown_is_never_clear_in_the_matrix_and_a_silent_host_never_clean():
    found, said, table = states(6, broken=0, silent=2)
    silent = {row.host for row in found.hosts if row.status != "ok"}
    assert silent
    assert not silent & {name for row in table.rows if row.kind == "clean" for name in row.hosts}
    assert all("unknown" in said[host].values() for host in silent)
    clean = matrix.make((model_result.HostRow("a", "a", "k", "worker", "unreachable"),), {})
    assert [(row.kind, row.status) for row in clean.rows] == [("host", "unreachable")]


def test_rows_that_do_not_fit_are_counted():
    said = {
        f"h{n:04}": {f"KM{100 + bit}": "warning" for bit in range(10) if n >> bit & 1}
        for n in range(1, 1000)
    }
    table = matrix.make(
        [model_result.HostRow(host, None, "k", "worker", "ok") for host in said], said
    )
    assert len(table.rows) == matrix.ROWS
    assert table.hidden == 999 - matrix.ROWS
    assert sum(len(row.hosts) for row in table.rows) + table.hidden == 999


def test_the_columns_with_the_worst_findings_come_first():
    said = {
        "w1": {"KM101": "unknown", "KM204": "warning", "KM218": "info", "KM904": "warning"},
        "w2": {"KM502": "critical", "KM204": "clear", "KM900": "not_applicable"},
    }
    hosts = [model_result.HostRow(host, None, "k", "worker", "ok") for host in said]
    table = matrix.make(hosts, said)
    assert [codes[0] for codes in table.columns] == ["KM502", "KM204", "KM904", "KM218", "KM101"]
    (first,) = (row for row in table.rows if row.hosts == ("w2",))
    assert first.cells[0] == "critical"
