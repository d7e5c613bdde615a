# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts, components and times of a cluster."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import cluster
from tests.unit.support.clock_evidence import NOW, judge_clocks, set_clocks


@pytest.mark.parametrize(
    "change",
    [
        {"asked_at": "x"},
        {"asked_at": True},
        {"received_at": NOW - 5},
        {"received_at": float("nan")},
        {"asked_at": 0},
        {"received_at": 1e300},
    ],
)
def test_times_that_make_no_sense_are_none(world, change):
    set_clocks(world)
    world.documents["w1"].update(change)
    assert cluster.host_of(world.documents["w1"]).clock is None
    assert judge_clocks(world)[0] == "not judged"
