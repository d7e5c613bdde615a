# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Incident B in its own shape.

Three masters are of one zone, a pod is scheduled, then a worker of another zone joins, then a
DaemonSet comes.

The tests have clusters of their own, which are removed at the end. The older version loses a
master, which is named, captured of the scheduler that lost it, and found again by its restart, all
in one run. The newer one loses no node.
"""

from __future__ import annotations

import contextlib
import re
import stat
from pathlib import Path

import pytest

from tests.lab.cluster.clusters import Cluster
from tests.lab.incidents.scheduler_forgets_node import SETTLED
from tests.lab.support import interrupt, jobs, playbook, zones
from tests.lab.support.repairing import (
    CAPTURE,
    CONSENT,
    NEW,
    RELEASES,
    own,
    possible,
    state,
    untouched,
)
from tests.lab.support.report import findings
from tests.lab.support.static_pod import SCHEDULER, lock_holder, processes

CODES = {"KM201", "KM202"}


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request):
    possible(request.param)
    # Timers with patience: whoever loses its lead on a busy machine would cure what is to be shown.
    found = Cluster(
        request.param,
        3,
        0,
        "steady",
        name=f"{request.param}-zones",
        labels=zones.labels(request.param, "200002"),
    )
    with own(found):
        yield found


@contextlib.contextmanager
def incident_b(cluster):
    """Do what its operators did, in their order."""
    namespace = jobs.new_namespace()
    jobs.create_namespace(cluster, namespace)
    # the masters joined one by one: what leads now knows them all at once, as at the incident
    zones.another_leads(cluster)
    zones.one_round(cluster, namespace)
    worker = cluster.add_node("worker", zones.labels(cluster.k8s, "200004"))
    zones.daemon_set(cluster, namespace)
    yield namespace, worker.name


def captured(report, leads, pid, lost, everybody):
    """Require that the capture is of the process that lost the node, before another took its place.

    Its level was raised and put back, its cache is whole, and its list lacks that node.
    """
    (found,) = report["scheduler_captures"]
    assert (found["host"], found["pid"], found["dump"]) == (
        leads,
        pid,
        {"taken": True, "whole": True, "reason": ""},
    ), found
    assert found["level"] == {
        "former": 2,
        "level": 4,
        "raised": True,
        "restored": True,
        "reason": "",
    }
    assert [found["nodes"][name] for name in ("api", "cached", "counted", "reasons")] == [
        4,
        4,
        4,
        3,
    ]
    assert (found["verdict"], found["targets"]) == ("snapshot_short", [lost]), found
    files = {name: Path(path) for name, path in found["files"].items()}
    assert {"dump", "lines"} <= set(files)
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.values()} == {0o600}
    dump = files["dump"].read_text(encoding="utf-8")
    assert [name for name in everybody if f"Node name: {name}\n" not in dump] == []


# In the words of v1.18: what its log says at level 2 of each node that its cache takes up.
ADDED = re.compile(r'Added node "([^"]+)" in group "([^"]+)" to NodeTree')


def replayed(cluster, finding, leads, lost, worker):
    """Require that KM202 reports the order in the log of that very scheduler.

    The log is read once more here, and the list reckoned by hand.
    """
    (proof,) = [one for one in finding["evidence"] if one["kind"] == "log"]
    assert proof["host"] == leads, proof
    assert proof["path"].startswith("/var/log/pods/kube-system_kube-scheduler-"), proof
    joined = ADDED.findall(cluster.read(leads, proof["path"]).decode("utf-8", "replace"))
    # the masters in the order in which it learned of them, and at last the worker
    assert len(joined) == 4, joined
    assert joined[-1][0] == worker, joined
    assert [group.rpartition(":")[2] for _name, group in joined] == ["200002"] * 3 + ["200004"], (
        joined
    )
    # As at the incident: [worker, first, worker, second], so that the third is not in it.
    assert joined[2][0] == lost, joined
    assert (
        proof["text"]
        == f"its log tells in which order nodes joined; replayed, its list lacks {lost} and holds"
        f" {worker} twice"
    ), proof
    assert "replay" not in finding["summary"], finding["summary"]  # nobody else is lost


def test_a_node_is_lost_and_found_again_or_never_lost(cluster, play, tmp_path):
    with incident_b(cluster) as (namespace, worker):
        everybody = sorted(["m1", "m2", "m3", worker])
        if cluster.k8s == NEW:
            cluster.wait(
                lambda: zones.running(cluster, namespace) == everybody, 300, "a pod on every node"
            )
            done, report = play(*CONSENT, *CAPTURE, name="pods_stay_pending")
            assert (done.returncode, report["exit_reason"], findings(report), report["plan"]) == (
                0,
                "ok",
                [],
                [],
            ), done.stdout[-3000:]
            assert "scheduler_captures" not in report, report["notices"]
            assert any("because no pod waits there" in note for note in report["notices"]), report[
                "notices"
            ]
            assert {one["verdict"] for one in report["verdicts"] if one["code"] in CODES} == {
                "clear"
            }
            return
        lost = zones.wait_lost(cluster, namespace, SETTLED)
        leads, before = lock_holder(cluster, SCHEDULER), state(cluster)
        pod = zones.of_daemon_set(cluster, namespace)[lost]["metadata"]["name"]
        done, report = play(name="pods_stay_pending")
        found = {one["code"]: one for one in findings(report)}
        assert (done.returncode, set(found)) == (0, CODES), done.stdout[-4000:]
        assert (found["KM202"]["node"], found["KM202"]["host"], lost in ("m1", "m2", "m3")) == (
            lost,
            lost,
            True,
        )
        assert f"{namespace}/{pod} stays Pending for it" in found["KM202"]["summary"]
        assert "3 nodes of 4" in found["KM202"]["summary"]
        assert "v1.18.8" in found["KM202"]["remedy"]
        assert "returns when nodes join unevenly" in found["KM202"]["remedy"]
        assert "kubemend_faults=KM202 -e kubemend_max_risk=2" in found["KM202"]["command"]
        replayed(cluster, found["KM202"], leads, lost, worker)
        assert [(step["host"], step["risk"], step["allowed"]) for step in report["plan"]] == [
            (leads, 2, False)
        ], report["plan"]

        done, planned = play("--check", "--diff", *CONSENT, name="pods_stay_pending")
        assert [(step["remedy"], step["host"], step["allowed"]) for step in planned["plan"]] == [
            ("restart_leader", leads, True)
        ], done.stdout[-4000:]
        assert f"{namespace}/{pod} gets its node {lost}\n" in planned["plan"][0]["diff"]
        untouched(cluster, before)

        done, report = play(*CONSENT, *CAPTURE, name="pods_stay_pending")
        assert (
            done.returncode,
            report["exit_reason"],
            [step["state"] for step in report["steps"]],
        ) == (0, "ok", ["done"]), done.stdout[-4000:]
        captured(report, leads, before[leads][1][0][0][0], lost, everybody)
        assert report["plan"] == planned["plan"]
        assert f"the pod {namespace}/{pod} is placed" in report["steps"][0]["reason"]
        assert {one["code"] for one in findings(report)} == {"KM201"}
        assert "it returns when nodes join unevenly again" in report["plan"][0]["note"]
        cluster.wait(
            lambda: zones.running(cluster, namespace) == everybody, 240, "a pod on every node"
        )
        assert processes(cluster, leads, SCHEDULER) != before[leads][1][0]
        assert interrupt.left_over(cluster) == []
        untouched(cluster, before, *[name for name in before if name != leads], journal=False)
        first = report["run_id"]

        done, report = play(*CONSENT, name="pods_stay_pending")
        assert (
            done.returncode,
            report["plan"],
            report["steps"],
            [one["code"] for one in findings(report)],
        ) == (0, [], [], ["KM201"]), done.stdout[-3000:]
        done = playbook.run(
            "revert",
            cluster.inventory,
            "-e",
            f"kubemend_run_id={first}",
            report=str(tmp_path / "revert"),
        )
        assert done.returncode == 0, done.stdout[-3000:]
        assert f"{leads} log level of kube-scheduler: was as before already" in done.stdout, (
            done.stdout[-3000:]
        )
        # a restart leaves nothing
        assert f"kubemend: run {first}: 1 already" in done.stdout, done.stdout[-3000:]
