# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps the API from hearing a kubelet: every way that a collector tells has its advice."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import api_way
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node import (
    heartbeat_cause,
)
from tests.unit.support.refused_writes import stopped


def test_each_part_of_the_way_has_a_reason():
    parts = {api_way.NAME, api_way.CONNECTION, api_way.CERTIFICATE}
    assert set(heartbeat_cause.LOST) == parts


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_cluster_without_writes_keeps_kubelets_from_having_a_node(world, is_stopped):
    items = world.data("api", "nodes")["items"]
    items[:] = [item for item in items if item["name"] != "w1"]
    world.data("w1", "kubelet")["process"] = {"pid": 7, "argv": [], "started_at": 1799990000.0}
    if is_stopped:
        stopped(world)
    (found,) = [item for item in world.judge(faults={"KM525"}).findings if item.host == "w1"]
    assert (heartbeat_cause.FROZEN[0] in found.summary) is is_stopped
