# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What events of Nodes report, KM563."""

from __future__ import annotations

import pytest

from tests.unit.support.object_events import report
from tests.unit.support.waiting_pods import judged

OOM = "System OOM encountered, victim process: agent, pid: 7"
FULL = "Failed to garbage collect required amount of images. Attempted to free 4783028633 bytes"


def test_a_healthy_cluster_and_missing_evidence(world):
    verdicts, found = judged(world, "KM563")
    assert (set(verdicts), found) == ({"clear"}, [])
    for status in ("denied", "timeout", "error"):
        world.api["collectors"]["object_events"] = {"status": status, "data": None}
        assert "unknown" in judged(world, "KM563")[0]
    del world.api["collectors"]["object_events"]
    assert judged(world, "KM563")[1] == []


def test_a_list_that_was_cut(world):
    world.api["collectors"]["object_events"]["truncated"] = True
    assert "unknown" in judged(world, "KM563")[0]
    report(world, "Node", "SystemOOM", OOM)
    assert "present" in judged(world, "KM563")[0]


def test_a_node_without_memory(world):
    report(world, "Node", "SystemOOM", OOM, count=3)
    (found,) = judged(world, "KM563")[1]
    assert (found.severity, found.host, found.node) == ("warning", "w1", "w1")
    assert found.component == "memory"
    assert OOM in found.summary
    assert found.evidence[0].object == "Node w1"


@pytest.mark.parametrize(
    ("reason", "message", "count", "is_present"),
    [
        ("OOMKilling", "Memory cgroup out of memory: Killed process 7 (java)", 9, False),
        ("OOMKilling", "Out of memory: Killed process 7 (java)", 1, True),
        (
            "ImageGCFailed",
            "failed to get image stats: Unable to find data in memory cache",
            9,
            False,
        ),
        ("ImageGCFailed", FULL, 1, False),
        ("ImageGCFailed", FULL, 2, True),
        ("Rebooted", "Node w1 has been rebooted, boot id: 7", 1, False),
        ("SomeWarning", "of a kubelet of another release", 99, False),
    ],
)
def test_what_is_usual(world, reason, message, count, is_present):
    report(world, "Node", reason, message, count=count)
    assert bool(judged(world, "KM563")[1]) == is_present


@pytest.mark.parametrize(
    ("count", "component", "first", "is_present"),
    [
        (5, "node-controller", "2027-01-15T07:48:00Z", True),
        (5, "node-controller", None, True),
        (4, "node-controller", "2027-01-15T07:48:00Z", False),
        # one outage, which an older controller tells again and again
        (6, "node-controller", "2027-01-15T07:56:55Z", False),
        # each start of a kubelet
        (9, "kubelet", "2027-01-15T07:10:00Z", False),
    ],
)
def test_a_node_that_changes_between_ready_and_not_ready(
    world, count, component, first, is_present
):
    text = "Node w1 status is now: NodeNotReady"
    report(world, "Node", "NodeNotReady", text, count=count, component=component, first=first)
    assert bool(judged(world, "KM563")[1]) == is_present


def test_what_is_older_than_an_hour(world):
    report(world, "Node", "SystemOOM", OOM, last="2027-01-15T06:58:00Z")
    assert judged(world, "KM563")[1] == []


def test_a_detector_of_problems(world):
    report(world, "Node", "TaskHung", "task dockerd:7 blocked", component="kernel-monitor")
    (found,) = judged(world, "KM563")[1]
    assert (found.severity, found.component) == ("info", "detector")


def test_a_node_that_is_down_told_of_its_memory_before(world):
    report(world, "Node", "SystemOOM", OOM)
    world.documents["w1"] |= {"status": "unreachable", "reason": "timed out", "collectors": {}}
    for item in world.data("api", "nodes")["items"]:
        if item["name"] == "w1":
            item["ready"] = "Unknown"
    (found,) = judged(world, "KM512")[1]
    assert OOM in found.summary


def test_what_a_node_says_is_bounded(world):
    report(world, "Node", "SystemOOM", "\x1b" + "x" * 9000, count=7)
    (found,) = judged(world, "KM563")[1]
    assert "\x1b" not in found.summary
    assert len(found.summary) < 900
