# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel said of a node."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kernel_log,
)
from tests.unit.support import answers

RAW = {"since": 1.5, "cut": False, "rows": [{"kind": "oom", "count": 2, "last": 9.5, "line": "x"}]}


def test_a_kind_with_its_newest_line():
    answer = answers.typed(kernel_log.KernelLog, RAW)
    (row,) = answer.rows
    assert (row.kind, row.count, row.last, row.line) == ("oom", 2, 9.5, "x")


def test_a_kill_and_evidence_without_any():
    assert answers.typed(kernel_log.KernelLog, RAW).kills is None
    kill = {"pid": 7, "program": "java", "at": 9.5, "scope": "machine"}
    (row,) = answers.typed(kernel_log.KernelLog, {**RAW, "kills": [kill]}).kills
    assert (row.pid, row.program, row.at, row.scope) == (7, "java", 9.5, "machine")


def test_a_value_of_another_type_is_refused():
    decoded = answers.changed(kernel_log.KernelLog, RAW, "rows", 0, "count", value="no")
    assert decoded.malformed == ("rows[0].count",)
