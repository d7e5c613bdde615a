# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of a node that do not end, KM609, and that end again and again, KM611."""

from __future__ import annotations

import pytest

from tests.unit.support.waiting_pods import judged, wait


def ending(world, **more):
    row = {"node": "w1", "pods": 2, "since": "2027-01-15T07:00:00Z", "names": ["default/pod-0"]}
    world.data("api", "pod_states")["ending"] = [{**row, "finalizers": 0, **more}]


def states(world, elsewhere=2, **nodes):
    world.data("api", "pod_states")["nodes"] = [
        {"node": node, "states": counts, "elsewhere": elsewhere} for node, counts in nodes.items()
    ]


@pytest.mark.parametrize("code", ["KM609", "KM611"])
def test_nothing_to_say(world, code):
    assert judged(world, code) == (["clear"], [])
    world.api["collectors"]["pod_states"]["truncated"] = True
    assert judged(world, code) == (["unknown"], [])
    del world.api["collectors"]["pod_states"]
    assert judged(world, code) == (["not judged"], [])
    world.leave_kubernetes()
    assert set(judged(world, code)[0]) <= {"not_applicable"}


def test_pods_that_stay_long_after_their_grace_period(world):
    ending(world, pods=3, finalizers=1)
    wait(world, event=("FailedKillPod", "error killing pod: DeadlineExceeded"))
    verdicts, (finding,) = judged(world, "KM609")
    assert verdicts == ["present"]
    assert (finding.host, finding.node, finding.severity) == ("w1", "w1", "warning")
    assert finding.summary.startswith("2 pods do not end since 2027-01-15T07:00:00Z: default/pod-0")
    assert "1 of them have a finalizer" in finding.evidence[0].text
    assert "DeadlineExceeded" in finding.evidence[1].text


def test_what_the_runtime_repeats_of_them_is_why(world):
    ending(world, pods=3)
    text = "`crun kill x` failed: error opening file `/run/crun/x/status`: No such file or"
    line = f'time="x" level=error msg="Killing container x failed: {text} directory"'
    entry = {"line": line, "count": 60, "minutes": 10, "first": 1_799_999_400.0}
    entry["last"] = 1_799_999_999.0
    row = {"component": "crio", "source": "crio.service", "entries": [entry]}
    data = {"read_at": 1_800_000_000.0, "components": [row]}
    world.documents["w1"]["collectors"]["repeated_errors"] = {"status": "ok", "data": data}
    finding = judged(world, "KM609")[1][0]
    assert "crun does not know a container" in finding.summary
    assert finding.remedy.startswith("see which program made the containers")
    assert "ps -eo pid" in finding.remedy


@pytest.mark.parametrize(
    ("message", "is_denied"),
    [
        ("runc did not terminate successfully: unable to signal init: permission denied", True),
        ("unable to signal init: operation not permitted", True),
        ("unable to signal init: no such process", False),
    ],
)
def test_a_signal_that_is_denied_points_to_a_security_module(world, message, is_denied):
    ending(world)
    wait(world, event=("FailedKillPod", message))
    (finding,) = judged(world, "KM609")[1]
    assert ("AppArmor" in finding.summary) is is_denied
    assert ("apparmor_parser -R" in finding.remedy) is is_denied
    assert ("wchan" in finding.remedy) is not is_denied


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ({"finalizers": 2}, "clear"),
        ({"since": "2027-01-15T07:55:00Z"}, "clear"),
        ({"since": None}, "unknown"),
        ({"pods": 0, "since": None}, "clear"),
    ],
)
def test_what_does_not_count(world, row, verdict):
    ending(world, **row)
    assert judged(world, "KM609") == ([verdict], [])


def test_one_workload_that_fails_is_no_fault_of_its_node(world):
    states(world, 1, w1={"CrashLoopBackOff": 9}, m1={"Running": 9})
    assert judged(world, "KM611") == (["clear"], [])


@pytest.mark.parametrize(
    ("nodes", "verdict"),
    [
        ({"w1": {"CrashLoopBackOff": 3, "Running": 9}, "m1": {"Running": 9}}, "present"),
        ({"w1": {"CrashLoopBackOff": 2, "Error": 1}, "m1": {"CrashLoopBackOff": 2}}, "present"),
        ({"w1": {"CrashLoopBackOff": 3}, "m1": {"CrashLoopBackOff": 3}}, "clear"),
        ({"w1": {"CrashLoopBackOff": 3, "Running": 30}, "m1": {"Running": 9}}, "clear"),
        ({"w1": {"CrashLoopBackOff": 2}, "m1": {}}, "clear"),
    ],
)
def test_a_node_that_is_alone_with_its_crashes(world, nodes, verdict):
    states(world, **nodes)
    verdicts, findings = judged(world, "KM611")
    assert verdicts == [verdict]
    for finding in findings:
        assert (finding.host, finding.node) == ("w1", "w1")
        assert "crash again and again" in finding.summary
        assert "spec.nodeName=w1" in finding.remedy


def test_what_holds_the_network_namespace_of_such_pods_is_named(world):
    ending(world)
    busy = "unlinkat /var/run/netns/cni-49ddd103: device or resource busy"
    wait(world, event=("FailedKillPod", f"error killing pod: failed to remove netns: {busy}"))
    _verdicts, (finding,) = judged(world, "KM609")
    assert "Known cause: The network namespace /var/run/netns/cni-49ddd103" in finding.summary
    assert "grep -l cni-49ddd103 /proc" in finding.remedy
