# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of systemd that run the control plane."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    component_units,
)
from tests.unit.support import answers

# as the lab's scheduler was, made a unit and disabled
ROW = {
    "name": "kube-scheduler.service",
    "active_state": "active",
    "unit_file_state": "disabled",
    "n_restarts": 0,
    "component": "kube-scheduler",
    "argv": ["/usr/local/bin/kube-scheduler", "--leader-elect=true"],
    "wanted_by": [],
    "started_at": 1795719470.2,
    "said": [],
    "lines": [],
    "journal_error": None,
}


def test_a_unit_of_the_scheduler():
    (unit,) = answers.typed(component_units.ComponentUnits, {"units": [ROW]}).units
    assert (unit.name, unit.component, unit.unit_file_state) == (
        "kube-scheduler.service",
        "kube-scheduler",
        "disabled",
    )
    assert (unit.started_at, unit.ended_at, unit.wanted_by) == (1795719470.2, None, ())
    assert unit.argv[1] == "--leader-elect=true"


def test_a_line_that_is_no_text_is_dropped():
    rows = {"units": [dict(ROW, lines=["a", 7])]}
    (unit,) = answers.typed(component_units.ComponentUnits, {"units": [ROW]}).units
    decoded = answers.changed(
        component_units.ComponentUnits, rows, "units", 0, "started_at", value="soon"
    )
    assert unit.lines == ()
    assert "units[0].started_at" in decoded.malformed
    assert decoded.answer.units[0].lines == ("a",)
