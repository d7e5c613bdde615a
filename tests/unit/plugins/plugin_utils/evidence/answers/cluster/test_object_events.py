# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events about Nodes, Services and volumes, as the collector writes them."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    object_events,
)
from tests.unit.support import answers

EVENTS = {
    "items": [
        {
            "kind": "Node",
            "reason": "SystemOOM",
            "type": "Warning",
            "component": "kubelet",
            "namespace": "",
            "name": "w1",
            "message": "System OOM encountered, victim process: java, pid: 7",
            "objects": 1,
            "count": 2,
            "first": "2027-01-15T07:00:00Z",
            "last": "2027-01-15T07:50:00Z",
        }
    ]
}


def test_an_event_of_a_node():
    (item,) = answers.typed(object_events.ObjectEvents, EVENTS).items
    assert (item.kind, item.reason, item.count, item.objects) == ("Node", "SystemOOM", 2, 1)


def test_a_count_that_is_a_text_is_malformed():
    decoded = answers.changed(object_events.ObjectEvents, EVENTS, "items", 0, "count", value="x")
    assert decoded.malformed == ("items[0].count",)
