# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node drained as an operator asks for it.

Budgets that block and free, that cross, that never free; finalizers, bare pods, other people's
cordons, a dead kubelet; killed half-way. No healthy node stays cordoned that was not before, none
without a record.
"""

from __future__ import annotations

import json

import pytest

from tests.lab.support import draining, interrupt, jobs, pinning
from tests.lab.support.draining import HELD, drain, free, node
from tests.lab.support.repairing import CONSENT, codes
from tests.lab.support.static_pod import processes
from tests.lab.tests.test_capture import FULL

ON_MASTERS = {"nodeSelector": None, "tolerations": jobs.MASTERS_TOLERATED}


@pytest.fixture
def pods(cluster):
    made = draining.Pods(cluster)
    yield made
    made.remove()
    assert draining.proxies(cluster) == b""


def journal(cluster):
    return cluster.exec("m1", "find /var/lib/kubemend -type f | sort | xargs -r sha256sum").stdout


def test_a_budget_that_blocks_for_a_while(cluster, pods, tmp_path):
    """Check mode names it and touches nothing; the drain waits for it; drained again is unchanged.

    Uncordoned is as before.
    """
    pods.create(
        pods.controller("ReplicaSet", "web", replicas=2),
        pods.controller("Deployment", "other", replicas=1),
        pods.controller("DaemonSet", "agent"),
        pods.budget("both", "web", 2),
    )
    there = pods.wait_running(4)
    pods.wait_counted("both")
    agent = next(name for name in there if name.startswith("agent"))
    before = node(cluster), journal(cluster)
    said = drain(cluster, tmp_path, "--check")
    assert said["changed"], said
    assert f"PodDisruptionBudget {pods.namespace}/both does not let it go" in said["reason"], said
    assert "3 pods would be evicted from w1; 2 of them could not go now" in said["reason"], said
    assert f"{pods.namespace}/{agent}" in said["reason"], said
    assert (node(cluster), journal(cluster)) == before
    assert pods.on_w1() == there

    # whoever is made again may run on a master: one at a time, as the budget will have it
    pods.patch("replicaset", "web", template={"spec": ON_MASTERS})
    with draining.started(cluster, tmp_path, reason="kernel update") as controller:
        cluster.wait(
            lambda: "w1: 3 pods left" in controller.output and len(pods.on_w1()) == 3,
            60,
            "the drain to be blocked, and to say how far it is",
        )
        mark = node(cluster)["mark"]
        assert node(cluster)["cordoned"]
        assert mark["reason"] == "kernel update"
        assert {name for name in there if "other" not in name} == set(pods.on_w1())
        pods.patch("pdb", "both", minAvailable=1)
        said = draining.ended(controller)
    assert said["changed"], said
    assert "w1 is drained: 3 pods evicted" in said["reason"], said
    assert f"{pods.namespace}/{agent}" in said["reason"], said
    assert set(pods.on_w1()) == {agent}
    assert said["run_id"] == mark["run"]
    pods.wait_running(3)

    again = drain(cluster, tmp_path)
    assert not again["changed"], again
    assert "0 pods evicted" in again["reason"], again
    assert node(cluster)["mark"] == mark, again
    assert drain(cluster, tmp_path, state="uncordoned")["changed"]
    assert free(cluster)
    assert not drain(cluster, tmp_path, state="uncordoned")["changed"]
    assert node(cluster) == before[0]


def test_a_budget_that_never_frees(cluster, pods, tmp_path):
    pods.create(
        pods.controller("Deployment", "web", replicas=2),
        pods.controller("Deployment", "other", replicas=1),
        pods.budget("both", "web", 2),
    )
    there = pods.wait_running(3)
    pods.wait_counted("both")
    said = drain(cluster, tmp_path, drain_timeout=15)
    assert said["failed"], said
    assert "w1 is not drained within 15 s: 2 pods left" in said["msg"], said
    assert f"1 pod evicted ({pods.namespace}/other-" in said["msg"], said
    numbers = (
        f"PodDisruptionBudget {pods.namespace}/both does not let it go (disruptionsAllowed 0: 2 of"
        " 2 expected pods are healthy, 2 must be)"
    )
    assert said["msg"].count(numbers) == 2, said
    assert "it takes pods again" in said["msg"], said
    assert free(cluster), said
    back = pods.wait_running(3)
    assert {name for name in there if name.startswith("web")} <= set(back)
    said = drain(cluster, tmp_path, drain_timeout=5, allow=["keep_cordon"])
    assert "it stays cordoned" in said["msg"], said
    assert node(cluster)["cordoned"], said
    assert node(cluster)["mark"]["run"] == said["run_id"], said


def test_two_budgets_that_cross(cluster, pods, tmp_path):
    pods.create(
        pods.controller("Deployment", "web", replicas=1),
        pods.controller("Deployment", "other", replicas=1),
        pods.budget("one", "web", 0),
        pods.budget("two", "web", 0),
    )
    there = pods.wait_running(2)
    pods.wait_counted("one", "two", whole=False)
    said = drain(cluster, tmp_path)
    assert not said["changed"], said
    assert f"2 PodDisruptionBudgets ({pods.namespace}/one, {pods.namespace}/two)" in said["msg"], (
        said
    )
    assert pods.on_w1() == there
    assert free(cluster)


def test_a_finalizer_holds_the_pod_of_a_job(cluster, pods, tmp_path):
    pods.create(pods.job("work"))
    (name,) = pods.wait_running(1)
    said = drain(cluster, tmp_path, drain_timeout=240)
    assert (
        f"these have ended and finalizers hold their objects: {pods.namespace}/{name} ({HELD})"
        in said["reason"]
    ), said
    assert said["changed"]
    assert "1 pod evicted" in said["reason"]
    held = next(pod for pod in pods.all() if pod["metadata"]["name"] == name)
    assert HELD in held["metadata"]["finalizers"]
    assert held["metadata"]["deletionTimestamp"]
    said = drain(cluster, tmp_path)
    assert not said["changed"], said
    assert HELD in said["reason"], said


def test_bare_pods_and_a_cordon_of_somebody_else(cluster, pods, tmp_path):
    pods.create(pods.bare("alone"))
    there = pods.wait_running(1)
    said = drain(cluster, tmp_path)
    assert f"no controller owns them: {pods.namespace}/alone" in said["msg"], said
    assert " allow: [drain_bare_pods]" in said["msg"], said
    assert free(cluster)
    assert pods.on_w1() == there
    cluster.kubectl("cordon", "w1")
    said = drain(cluster, tmp_path, allow=["drain_bare_pods"])
    assert "another client cordoned it" in said["msg"], said
    assert pods.on_w1() == there, said
    assert node(cluster)["mark"] is None, said
    said = drain(cluster, tmp_path, allow=["drain_bare_pods", "fenced"])
    assert "the cordon is another client's and stays theirs" in said["reason"], said
    assert pods.on_w1() == {}, said
    said = drain(cluster, tmp_path, state="uncordoned")
    assert not said["changed"], said
    assert "is not of this tool and stays" in said["reason"], said
    assert node(cluster)["cordoned"], said
    assert node(cluster)["mark"] is None, said


def test_killed_half_way(cluster, pods, play, tmp_path):
    pods.create(
        pods.controller("Deployment", "web", replicas=2),
        pods.controller("Deployment", "other", replicas=1),
        pods.budget("both", "web", 2),
    )
    pods.wait_running(3)
    pods.wait_counted("both")
    with draining.started(cluster, tmp_path) as controller:
        cluster.wait(lambda: "w1: 2 pods left" in controller.output, 60, "the drain to be blocked")
        found = draining.awaited(cluster)
        cluster.exec("m1", ["kill", "-9", "--", f"-{found['pid']}"])
        said = draining.ended(controller)
    assert said["run_id"] == found["run_id"] == node(cluster)["mark"]["run"], said
    assert "interrupted; the next run finishes or undoes it" in said["msg"], said
    assert node(cluster)["cordoned"]
    _done, report = play(name="audit")
    assert ("KM902", "m1") in codes(report), codes(report)
    done, report = play(*CONSENT)
    assert (done.returncode, [step["remedy"] for step in report["plan"]], codes(report)) == (
        0,
        ["recover"],
        set(),
    ), done.stdout[-3000:]
    assert free(cluster)
    assert interrupt.left_over(cluster) == []
    pods.wait_running(3)


def test_a_cordon_whose_run_is_gone(cluster, pods, play):
    """As a repair leaves it, whose journal went with its master.

    What an audit sees, and who takes it away.
    """
    cluster.kubectl("cordon", "w1")
    mark = {"run": "20260101T000000Z-abcdef", "reason": "drain", "at": "2026-01-01T00:00:00Z"}
    cluster.kubectl("annotate", "node", "w1", f"{draining.MARK}={json.dumps(mark)}")
    done, report = play("-e", "kubemend_max_risk=1")
    assert (done.returncode, [(step["code"], step["remedy"]) for step in report["plan"]]) == (
        0,
        [("KM903", "uncordon")],
    ), done.stdout[-3000:]
    assert codes(report) == set()
    assert free(cluster)


def test_the_controller_is_gone_and_the_drain_goes_on(cluster, pods, tmp_path):
    pods.create(pods.controller("Deployment", "web", replicas=1), pods.budget("one", "web", 1))
    pods.wait_running(1)
    pods.wait_counted("one")
    with draining.started(cluster, tmp_path) as controller:
        cluster.wait(lambda: node(cluster)["mark"], 60, "the drain to begin")
        controller.kill()
    pods.kubectl("delete", "pdb", "one")

    def ended():
        left = pods.on_w1(), interrupt.left_over(cluster)
        if left != ({}, []):
            raise ValueError(f"left: {left}")
        return True

    cluster.wait(ended, 30, "the drain to end")
    assert not drain(cluster, tmp_path)["changed"]
    assert node(cluster)["mark"]


def test_a_kubelet_that_is_silent(cluster, pods, tmp_path):
    pods.create(pods.controller("Deployment", "web", replicas=1))
    there = pods.wait_running(1)
    pinning.stop(cluster, "w1")
    try:
        cluster.wait(lambda: draining.ready(cluster) == "Unknown", 90, "w1 to be silent")
        said = drain(cluster, tmp_path)
        assert (
            "its kubelet does not post its status (Ready is Unknown, NodeStatusUnknown)"
            in said["msg"]
        ), said
        assert not said["changed"], said
        assert pods.on_w1() == there
        assert free(cluster)
    finally:
        pinning.start(cluster, "w1")


@pytest.mark.skipif(not FULL, reason="a minute: one that is silent before is tried always")
def test_a_kubelet_that_falls_silent_meanwhile(cluster, pods, play, tmp_path):
    """No run comes back for the cordon.

    An audit names it until the node is well, and then it goes.
    """
    pods.create(pods.controller("Deployment", "web", replicas=1), pods.budget("one", "web", 1))
    pods.wait_running(1)
    pods.wait_counted("one")
    with draining.started(cluster, tmp_path) as controller:
        cluster.wait(lambda: "w1: 1 pod left" in controller.output, 60, "the drain to be blocked")
        pinning.stop(cluster, "w1")
        try:
            said = draining.ended(controller)
            assert "because its kubelet does not post its status" in said["msg"], said
            assert "it stays cordoned until its kubelet is back" in said["msg"], said
            assert node(cluster)["mark"]["run"] == said["run_id"]
            _done, report = play(name="audit")
            assert ("KM903", "w1") in codes(report), codes(report)
        finally:
            cluster.exec("w1", ["systemctl", "start", "kubelet"])
    cluster.wait(lambda: draining.ready(cluster) == "True", 90, "w1 to be back")
    done, report = play("-e", "kubemend_max_risk=1")
    assert (done.returncode, [step["remedy"] for step in report["plan"]]) == (
        0,
        ["uncordon"],
    ), done.stdout[-3000:]
    assert free(cluster)
    assert codes(report) == set()


@pytest.mark.skipif(not FULL, reason="a minute: only in the whole matrix")
def test_the_api_server_starts_again_meanwhile(cluster, pods, tmp_path):
    """That through which the drain goes.

    Nothing is lost but time, and no answer is taken for another.
    """
    pods.create(pods.controller("Deployment", "web", replicas=2), pods.budget("both", "web", 2))
    pods.wait_running(2)
    pods.wait_counted("both")
    with draining.started(cluster, tmp_path) as controller:
        cluster.wait(lambda: "w1: 2 pods left" in controller.output, 60, "the drain to be blocked")
        ((pid, _argv),) = processes(cluster, "m1", "kube-apiserver")
        cluster.exec("m1", ["kill", "-9", str(pid)])
        pods.kubectl("delete", "pdb", "both", node="m2")
        said = draining.ended(controller)
    assert "w1 is drained: 2 pods evicted" in said["reason"], said
    assert not said["failed"], said
    cluster.wait(lambda: pods.on_w1() == {}, 60, "the API server to say so")
    assert node(cluster)["mark"]["run"] == said["run_id"]
    assert interrupt.left_over(cluster) == []
