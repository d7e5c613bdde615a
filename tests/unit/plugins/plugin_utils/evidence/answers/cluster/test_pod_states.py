# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All pods that have a node, by state."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    pod_states,
)
from tests.unit.support import answers

RAW = {
    "nodes": [{"node": "w1", "states": {"Running": 4, "Terminating": 1}}],
    "ending": [
        {
            "node": "w1",
            "pods": 1,
            "since": "2027-01-15T07:30:00Z",
            "names": ["default/a"],
            "finalizers": 0,
        }
    ],
}


def test_the_states_of_a_node_and_the_pods_that_end():
    answer = answers.typed(pod_states.PodStates, RAW)
    assert answer.nodes[0].states["Terminating"] == 1
    assert (answer.ending[0].pods, answer.ending[0].names) == (1, ("default/a",))


def test_a_count_of_another_type_is_refused():
    decoded = answers.changed(
        pod_states.PodStates, RAW, "nodes", 0, "states", "Running", value="many"
    )
    assert decoded.malformed == ("nodes[0].states.Running",)
    assert decoded.answer.nodes[0].states == {"Terminating": 1}


def test_nodes_that_are_no_list_are_unknown():
    decoded = answers.changed(pod_states.PodStates, RAW, "nodes", value={})
    assert (decoded.malformed, decoded.answer.nodes) == (("nodes",), None)
