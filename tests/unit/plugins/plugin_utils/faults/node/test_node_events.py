# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What events of Nodes report, KM563."""

from __future__ import annotations

import pytest

from tests.unit.support.object_events import report
from tests.unit.support.waiting_pods import judged

OOM = "System OOM encountered, victim process: agent, pid: 7"
CLOCK = 1800000000.0  # 2027-01-15T08:00:00Z
BEFORE = "2027-01-15T07:30:00Z"
FULL = "Failed to garbage collect required amount of images. Attempted to free 4783028633 bytes"


def test_a_healthy_cluster_and_missing_evidence(world):
    verdicts, found = judged(world, "KM563")
    assert (set(verdicts), found) == ({"clear"}, [])
    for status in ("denied", "timeout", "error"):
        world.api["collectors"]["object_events"] = {"status": status, "data": None}
        assert "unknown" in judged(world, "KM563")[0]
    del world.api["collectors"]["object_events"]
    assert judged(world, "KM563")[1] == []


def kernel(world, *kills, since=CLOCK - 3600, cut=False):
    """Let the kernel of w1 have killed (program, seconds ago, scope)."""
    clock = world.data("w1", "system")["clock"]
    rows = [
        {"pid": 7 + number, "program": program, "at": clock - ago, "scope": scope}
        for number, (program, ago, scope) in enumerate(kills)
    ]
    world.data("w1", "kernel_log").update(kills=rows, since=clock - (CLOCK - since), cut=cut)


@pytest.mark.parametrize("starts", [1, 9])
def test_each_start_of_a_kubelet_reports_the_same_kill_again(world, starts):
    kernel(world, ("agent", 1200, "machine"))
    report(world, "Node", "SystemOOM", OOM, count=starts, texts=1)
    (found,) = judged(world, "KM563")[1]
    assert "once" in found.summary
    assert "2027-01-15T07:40:00Z" in found.summary
    assert "07:58" not in found.summary + found.evidence[0].text


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


@pytest.mark.parametrize(
    ("kills", "more"),
    [
        ([("agent", 4000, "machine")], {}),
        # a limit of a pod, which the kubelet took for the machine
        ([("agent", 60, "cgroup")], {}),
        ([("other", 60, "machine")], {}),
        ([], {}),
        # the log begins at a boot, but it has the kill
        ([("agent", 4000, "machine")], {"since": CLOCK - 600}),
    ],
)
def test_what_the_kernel_does_not_confirm_is_no_finding(world, kills, more):
    kernel(world, *kills, **more)
    report(world, "Node", "SystemOOM", OOM, count=3, texts=1)
    verdicts, found = judged(world, "KM563")
    assert ("present" in verdicts, found) == (False, [])


def test_a_log_that_begins_within_the_hour(world):
    kernel(world, since=CLOCK - 600)
    report(world, "Node", "SystemOOM", OOM, count=3, texts=1)
    (found,) = judged(world, "KM563")[1]
    assert "before 2027-01-15T07:50:00Z" in found.summary
    assert "3 times" not in found.summary


@pytest.mark.parametrize("status", ["absent", "denied", "timeout"])
def test_without_the_log_of_the_kernel_neither_count_nor_time_is_that_of_events(world, status):
    world.documents["w1"]["collectors"]["kernel_log"] = {"status": status, "data": None}
    report(world, "Node", "SystemOOM", OOM, count=9, texts=2)
    (found,) = judged(world, "KM563")[1]
    shown = found.summary + found.evidence[0].text
    assert f"2 times (SystemOOM), first at {BEFORE} or before" in shown
    assert ("9 times" in shown, "07:58" in shown) == (False, False)


def test_a_log_that_was_cut_confirms_what_it_has(world):
    report(world, "Node", "SystemOOM", OOM, count=9, texts=1)
    kernel(world, cut=True)
    (found,) = judged(world, "KM563")[1]
    assert f"{BEFORE} or before" in found.summary
    kernel(world, ("agent", 1200, "machine"), cut=True)
    (found,) = judged(world, "KM563")[1]
    assert "2027-01-15T07:40:00Z" in found.summary


def test_names_of_programs_that_differ_by_numbers_are_one_row(world):
    kernel(world, ("agent-2", 1200, "machine"), ("agent-3", 600, ""))
    report(world, "Node", "SystemOOM", OOM.replace("agent", "agent-3"), count=9, texts=2)
    (found,) = judged(world, "KM563")[1]
    assert "2 times" in found.summary
    assert "2027-01-15T07:50:00Z" in found.summary
