# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter scheduling_reasons."""

from __future__ import annotations

import re

from ansible_collections.kubemend.remediation.plugins.filter.scheduling_reasons import FilterModule

HEAD = "0/4 nodes are available: "


def test_the_filter_gives_plain_data():
    found = FilterModule().filters()["scheduling_reasons"](
        HEAD + "1 Insufficient cpu, 2 node(s) were unschedulable."
    )
    assert found == {
        "nodes": 4,
        "whole": True,
        "total": 3,
        "missing": 1,
        "preemption": [],
        "reasons": [
            {"kind": "resource", "nodes": 1, "name": "cpu", "text": "Insufficient cpu"},
            {"kind": "cordon", "nodes": 2, "name": "", "text": "node(s) were unschedulable"},
        ],
    }
    assert not re.search("object at", str(found))
