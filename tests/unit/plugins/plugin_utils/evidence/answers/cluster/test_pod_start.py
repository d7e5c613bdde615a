# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods that their nodes accepted and that do not start."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    pod_start,
)
from tests.unit.support import answers

RAW = {
    "read": 3,
    "pods": [
        {
            "node": "w1",
            "namespace": "default",
            "owner": "ReplicaSet/app-1",
            "state": "ContainerCreating",
            "pods": 2,
            "names": ["a", "b"],
            "since": "2027-01-15T07:30:00Z",
            "message": "",
            "event": {"reason": "FailedMount", "message": "timed out", "last": None},
        }
    ],
    "events": [
        {
            "node": "w1",
            "reason": "FailedMount",
            "message": "timed out",
            "pod": "default/a",
            "count": 9,
            "pods": 2,
            "waiting": 2,
            "first": "2027-01-15T07:31:00Z",
            "last": None,
        }
    ],
    "nodes": [{"node": "w1", "waiting": 2, "states": {"Running": 4}}],
    "attachments": [
        {
            "name": "csi-1",
            "node": "w2",
            "attacher": "x",
            "volume": "pvc-1",
            "attached": True,
            "deleted": None,
            "error": "",
        }
    ],
}


def test_pods_events_nodes_and_attachments():
    answer = answers.typed(pod_start.PodStart, RAW)
    assert (answer.pods[0].pods, answer.pods[0].event.reason) == (2, "FailedMount")
    assert (answer.events[0].count, answer.events[0].last) == (9, None)
    assert answer.nodes[0].states == {"Running": 4}
    assert answer.attachments[0].volume == "pvc-1"


def test_pods_without_an_event_and_a_node_without_states():
    answer = answers.changed(pod_start.PodStart, RAW, "pods", 0, "event", value=None)
    assert (answer.malformed, answer.answer.pods[0].event) == ((), None)
    answer = answers.changed(pod_start.PodStart, RAW, "attachments", value=None)
    assert (answer.malformed, answer.answer.attachments) == ((), None)


def test_a_count_of_another_type_is_refused():
    decoded = answers.changed(pod_start.PodStart, RAW, "pods", 0, "pods", value="2")
    assert decoded.malformed == ("pods[0].pods",)
