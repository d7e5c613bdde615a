# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors that a component repeats."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    repeated_errors,
)
from tests.unit.support import answers

ENTRY = {"count": 9, "minutes": 8, "first": 1.0, "last": 2.0, "pods": 0, "line": "E1 x"}
ROW = {
    "component": "kubelet",
    "source": "kubelet.service",
    "error": None,
    "started": 1.0,
    "since": 1.5,
    "lines": 10,
    "errors": 9,
    "cut": False,
    "entries": [ENTRY],
}
RAW = {"read_at": 3.0, "components": [ROW]}


def test_rows_and_entries():
    answer = answers.typed(repeated_errors.RepeatedErrors, RAW)
    assert (answer.read_at, answer.components[0].source) == (3.0, "kubelet.service")
    assert answer.components[0].entries[0].minutes == 8


def test_a_log_that_was_not_read():
    decoded = answers.changed(
        repeated_errors.RepeatedErrors, RAW, "components", 0, "error", value="denied"
    )
    assert (decoded.malformed, decoded.answer.components[0].error) == ((), "denied")


def test_a_value_of_another_type_is_refused():
    decoded = answers.changed(
        repeated_errors.RepeatedErrors, RAW, "components", 0, "entries", 0, "count", value="9"
    )
    assert decoded.malformed == ("components[0].entries[0].count",)
