# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repairs that are interrupted, and two controllers at once.

One ordinary run later all is well, and nothing is left over.

Three points of a run by a fixed seed, KUBEMEND_TEST_FULL=1 all of them and both versions.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading

import pytest

from tests.lab.cluster import bringup, paths, podman
from tests.lab.support import incident, interrupt, zones
from tests.lab.support.repairing import CONSENT, broken, codes, state, untouched
from tests.lab.support.report import findings
from tests.lab.support.static_pod import (
    MANAGER,
    SCHEDULER,
    lock_holder,
    manifest,
    processes,
    set_flag,
    wait_election_off,
)

ON = "--leader-elect=true"
TASKS = (
    "Lock the cluster on each of its control-plane hosts",
    "Apply the plan, one step at a time",
    "Unlock the cluster",
    "Collect evidence of each host once more",
    "Collect evidence of the cluster's API#2",
    "Judge what the repair came to",
)
WRITTEN = "just after the write"
POINTS = [WRITTEN, *TASKS]
CHOSEN = (
    POINTS
    if os.environ.get("KUBEMEND_TEST_FULL") == "1"
    else [WRITTEN, *random.Random(4).sample(TASKS, 2)]
)
# seconds that a kubelet may wait before it starts a container again that ended several times
BACK_OFF = 330
# A controller that waits for a node's answer hears of the node's end by this alone.
KEEPALIVE = ("-e", "ansible_ssh_extra_args='-o ServerAliveInterval=3 -o ServerAliveCountMax=2'")


@pytest.fixture(scope="module")
def wrong(cluster):
    """Yield a master whose controller manager does not elect, for every test of this module.

    The incident is undone at the end.
    """
    with broken(cluster, "two-leaders-kcm-only", symptom=False):
        yield cluster


@pytest.fixture
def two_leaders(wrong):
    break_again(wrong, "m2")
    return wrong


def break_again(cluster, node):
    """Break it as at the beginning, without the kubelet's back-off for the times before."""
    text = cluster.read(node, manifest(MANAGER)).decode()
    cluster.exec(node, ["systemctl", "stop", "kubelet"])
    cluster.write(node, manifest(MANAGER), set_flag(text, "leader-elect", "false"))
    cluster.exec(node, ["systemctl", "start", "kubelet"])
    wait_election_off(cluster, node, MANAGER)


@pytest.mark.parametrize("program", ["goes on", "is killed too"])
def test_the_restart_of_a_leader_is_interrupted(cluster, play, tmp_path, program):
    """Between the end of the scheduler that lost a node and the proof of another.

    The controller goes, and with it what would prove it, or not.
    """
    lost = incident.by_name("scheduler-forgets-node")
    if not lost.applies(paths.version_tuple(cluster.k8s)):
        pytest.skip(f"the scheduler of {cluster.k8s} loses no node")
    with broken(cluster, lost.name, target=lost.target):
        leads, namespace = (
            lock_holder(cluster, SCHEDULER),
            lost.record(cluster, lost.target)["namespace"],
        )
        with interrupt.Controller(
            cluster, tmp_path / "killed", *CONSENT, name="pods_stay_pending"
        ) as controller:
            found = interrupt.wait_stopped(cluster, leads, SCHEDULER)
            controller.kill()
        step = f"step {found['step']}"
        if program == "goes on":
            cluster.wait(
                lambda: interrupt.proof(cluster, leads, found)["state"] == "proven",
                BACK_OFF + 90,
                f"{step} to be proven without its controller",
            )
        else:
            cluster.exec(leads, ["kill", "-9", "--", f"-{found['pid']}"])
            assert interrupt.proof(cluster, leads, found)["state"] == "awaited"
        cluster.wait(
            lambda: len(zones.running(cluster, namespace)) == len(cluster.nodes),
            90,
            "a pod on every node: the restart has cured it",
        )
        cluster.wait(
            lambda: len(processes(cluster, leads, SCHEDULER)) == 1,
            BACK_OFF,
            f"a scheduler on {leads}",
        )
        _done, report = play(name="pods_stay_pending")
        told = {one["code"]: one for one in findings(report)}
        if program == "goes on":
            assert (set(told), report["plan"]) == ({"KM201"}, [])
        else:
            assert set(told) == {"KM201", "KM902"}, told
            assert (
                told["KM902"]["host"],
                told["KM902"]["summary"],
            ) == (leads, f"a change of run {found['run_id']} was interrupted"), told
            assert f"{step} was never proven" in [one["text"] for one in told["KM902"]["evidence"]]
        done, report = play(*CONSENT, name="pods_stay_pending")
        assert (
            done.returncode,
            report["exit_reason"],
            {one["code"] for one in findings(report)},
        ) == (0, "ok", {"KM201"}), done.stdout[-4000:]
        if program != "goes on":
            assert [(one["remedy"], one["host"]) for one in report["plan"]] == [("recover", leads)]
            assert f"{step} of {found['run_id']}: done" in report["steps"][0]["reason"], report[
                "steps"
            ]
        # Nothing was left to do: whoever comes next to change something takes the lock of a process
        # that is gone.
        wait_clean(cluster, but=() if report["plan"] else ("/var/lib/kubemend/lock",))


def ordinary_run(cluster, folder, *arguments):
    with interrupt.Controller(cluster, folder, *CONSENT, *arguments) as controller:
        code, report = controller.wait()
        said = [item["summary"] for item in findings(report)]
        assert codes(report) == set(), said
        assert (code, report["exit_reason"]) == (0, "ok"), controller.output[-4000:]
    return report


def wait_clean(cluster, but=()):
    """Wait until nothing is left over.

    That is at once, or when the killed run's own step has proven itself. The step goes on without
    its controller, and needs no help.
    """

    def clean():
        left = [line for line in interrupt.left_over(cluster) if not line.endswith(tuple(but))]
        if left:
            raise ValueError(f"left over: {left}")
        return True

    cluster.wait(clean, 90, "nothing to be left over")


@pytest.mark.parametrize("point", CHOSEN)
def test_the_controller_is_killed(two_leaders, tmp_path, point):
    cluster = two_leaders
    before = state(cluster)
    with interrupt.Controller(
        cluster, tmp_path / "killed", *CONSENT, at=None if point == WRITTEN else point
    ) as controller:
        if point == WRITTEN:
            interrupt.wait_written(cluster, "m2", manifest(MANAGER), ON)
        else:
            controller.wait_held()
        controller.kill()
    report = ordinary_run(cluster, tmp_path / "ordinary")
    assert ON in cluster.read("m2", manifest(MANAGER)).decode()
    # Nothing was left to do: whoever comes next to change something takes the lock of a process
    # that is gone.
    wait_clean(cluster, but=() if report["plan"] else ("/var/lib/kubemend/lock",))
    untouched(cluster, before, "m1", "m3", journal=False)


def test_the_node_stops_after_the_write(two_leaders, tmp_path):
    """The next master is not begun.

    Once the node is back, the next run finds the first done and does the second.
    """
    cluster = two_leaders
    with broken(cluster, "two-leaders-kcm-only", target="m3", symptom=False):
        wait_election_off(cluster, "m3", MANAGER)
        before = state(cluster)
        with interrupt.Controller(cluster, tmp_path / "lost", *CONSENT, *KEEPALIVE) as controller:
            interrupt.wait_written(cluster, "m2", manifest(MANAGER), ON)
            with stopped(cluster, "m2"):
                code, report = controller.wait()
                assert (code, report["exit_reason"]) == (2, "failed"), controller.output[-4000:]
                assert [step["state"] for step in report["steps"]] == ["failed", "refused"]
                assert "m2 was lost while the step was under way" in report["steps"][0]["reason"]
                untouched(cluster, before, "m3", journal=False)
        ordinary_run(cluster, tmp_path / "ordinary")
        wait_clean(cluster)


@contextlib.contextmanager
def stopped(cluster, name):
    node = cluster.node(name)
    podman.podman("kill", node.container, timeout=60)
    try:
        yield
    finally:
        podman.podman("start", node.container, timeout=60)
        bringup.wait_booted(node)
        cluster.wait_healthy()


def test_two_controllers(two_leaders, tmp_path):
    """The second names the first.

    If the first is gone, the second takes over at once. It takes over from another machine only
    when its operator says so.
    """
    cluster = two_leaders
    with interrupt.Controller(cluster, tmp_path / "first", *CONSENT, at=TASKS[1]) as first:
        first.wait_held()
        with interrupt.Controller(cluster, tmp_path / "second", *CONSENT) as second:
            code, report = second.wait()
            held_by = lock_of(cluster)
            assert code == 2, second.output[-4000:]
            assert f"run {held_by} holds the cluster" in second.output, second.output[-4000:]
            assert f"-e kubemend_take_lock={held_by}" in report["steps"][0]["reason"]
            assert report["run_id"] != held_by
            assert ON not in cluster.read("m2", manifest(MANAGER)).decode()
        first.kill()
    for node in cluster.of_role("master"):
        interrupt.rewrite(
            cluster,
            node.name,
            "/var/lib/kubemend/lock",
            "d['controller'].update(machine_id='f' * 32, boot_id='another')",
        )
    with interrupt.Controller(cluster, tmp_path / "third", *CONSENT) as third:
        code, report = third.wait()
        assert code == 2, third.output[-4000:]
        assert f"-e kubemend_take_lock={held_by}" in report["steps"][0]["reason"], third.output[
            -4000:
        ]
    ordinary_run(cluster, tmp_path / "told", "-e", f"kubemend_take_lock={held_by}")
    wait_clean(cluster)


def lock_of(cluster):
    held = [
        cluster.exec(
            node,
            "python3 -I -S -c 'import json;"
            ' print(json.load(open("/var/lib/kubemend/lock"))["run_id"])\'',
        )
        .stdout.decode()
        .strip()
        for node in cluster.of_role("master")
    ]
    assert len(set(held)) == 1, held
    return held[0]


def test_a_change_that_was_left_behind_is_found_and_ended(two_leaders, play, tmp_path):
    """Killed on the node between write and proof.

    KM902 says so, and remediate proves it or takes it back.
    """
    cluster, seen = two_leaders, []

    def kill():
        found = interrupt.wait_written(cluster, "m2", manifest(MANAGER), ON)
        cluster.exec("m2", ["kill", "-9", "--", f"-{found['pid']}"])
        seen.append(found["run_id"])

    watching = threading.Thread(target=kill)
    watching.start()
    with interrupt.Controller(cluster, tmp_path / "killed", *CONSENT) as controller:
        code, report = controller.wait()
        watching.join()
        assert (code, [step["state"] for step in report["steps"]]) == (
            2,
            ["failed"],
        ), controller.output[-4000:]
        assert seen == [report["run_id"]]
    _done, report = play(name="audit")
    assert ("KM902", "m2") in codes(report)
    report = ordinary_run(cluster, tmp_path / "ordinary")
    assert "recover" in {step["remedy"] for step in report["plan"]}
    wait_clean(cluster)
