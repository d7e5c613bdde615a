# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units that failed, as the collector writes them."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    failed_units,
)
from tests.unit.support import answers

UNITS = {
    "failed": 2,
    "units": [
        {
            "name": "iscsid.service",
            "type": "simple",
            "active_state": "failed",
            "result": "exit-code",
            "exec_main_status": 7,
            "lines": ["2026-11-24T12:00:01+0000 w1 iscsid[77]: Could not read"],
        }
    ],
}


def test_a_unit():
    answer = answers.typed(failed_units.FailedUnits, UNITS)
    (unit,) = answer.units
    assert (answer.failed, unit.exec_main_status, len(unit.lines)) == (2, 7, 1)


def test_a_status_that_is_a_text_is_malformed():
    decoded = answers.changed(
        failed_units.FailedUnits, UNITS, "units", 0, "exec_main_status", value="x"
    )
    assert decoded.malformed == ("units[0].exec_main_status",)
