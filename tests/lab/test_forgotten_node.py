# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Incident B in its own shape: three masters of one zone, a pod is scheduled, then a worker of another zone joins, then a DaemonSet comes.

On clusters of their own, taken away at the end: the older version loses a master, which is named, and found again; the newer one loses nobody.
"""

from __future__ import annotations

import contextlib
import os

import pytest

from tests.lab import jobs, playbook, zones
from tests.lab.cluster import Cluster
from tests.lab.incidents.scheduler_forgets_node import SETTLED
from tests.lab.repairing import CONSENT, NEW, OLD, own, possible, state, untouched
from tests.lab.staticpod import SCHEDULER, lock_holder, processes

CODES = {"KM201", "KM202"}


@pytest.fixture(scope="module", params=[OLD, NEW] if os.environ.get("KUBEMEND_TEST_FULL") == "1" else [OLD])
def cluster(request):
    possible(request.param)
    # The components' own timers: whoever loses its lead on a busy machine would cure what is to be shown.
    found = Cluster(request.param, 3, 0, "default", name=f"{request.param}-zones", labels=zones.labels(request.param, "200002"))
    with own(found):
        yield found


@contextlib.contextmanager
def incident_b(cluster):
    """What its operators did, in their order."""
    namespace = jobs.new_namespace()
    jobs.create_namespace(cluster, namespace)
    zones.another_leads(cluster)  # the masters joined one by one: what leads now knows them all at once, as at the incident
    zones.one_round(cluster, namespace)
    worker = cluster.add_node("worker", zones.labels(cluster.k8s, "200004"))
    zones.daemon_set(cluster, namespace)
    yield namespace, worker.name


def test_a_node_is_lost_and_found_again_or_never_lost(cluster, play, tmp_path):
    with incident_b(cluster) as (namespace, worker):
        everybody = sorted(["m1", "m2", "m3", worker])
        if cluster.k8s == NEW:
            cluster.wait(lambda: zones.running(cluster, namespace) == everybody, 120, "a pod on every node")
            done, report = play(*CONSENT, name="pods_stay_pending")
            assert (done.returncode, report["exit_reason"], report["findings"], report["plan"]) == (0, "ok", [], []), done.stdout[-3000:]
            assert {one["verdict"] for one in report["verdicts"] if one["code"] in CODES} == {"clear"}
            return
        lost = zones.wait_lost(cluster, namespace, SETTLED)
        leads, before = lock_holder(cluster, SCHEDULER), state(cluster)
        pod = zones.of_daemon_set(cluster, namespace)[lost]["metadata"]["name"]
        done, report = play(name="pods_stay_pending")
        found = {one["code"]: one for one in report["findings"]}
        assert (done.returncode, set(found)) == (0, CODES), done.stdout[-4000:]
        assert (found["KM202"]["node"], found["KM202"]["host"], lost in ("m1", "m2", "m3")) == (lost, lost, True)
        assert f"{namespace}/{pod} stays Pending for it" in found["KM202"]["summary"] and "3 nodes of 4" in found["KM202"]["summary"]
        assert "v1.18.8" in found["KM202"]["remedy"] and "returns when nodes join unevenly" in found["KM202"]["remedy"]
        assert "kubemend_faults=KM202 -e kubemend_max_risk=2" in found["KM202"]["command"]
        assert [(step["host"], step["risk"], step["allowed"]) for step in report["plan"]] == [(leads, 2, False)], report["plan"]

        done, planned = play("--check", "--diff", *CONSENT, name="pods_stay_pending")
        assert [(step["remedy"], step["host"], step["allowed"]) for step in planned["plan"]] == [("restart_leader", leads, True)], done.stdout[-4000:]
        assert f"{namespace}/{pod} gets its node {lost}\n" in planned["plan"][0]["diff"]
        untouched(cluster, before)

        done, report = play(*CONSENT, name="pods_stay_pending")
        assert (done.returncode, report["exit_reason"], [step["state"] for step in report["steps"]]) == (0, "ok", ["done"]), done.stdout[-4000:]
        assert report["plan"] == planned["plan"] and f"the pod {namespace}/{pod} is placed" in report["steps"][0]["reason"]
        assert {one["code"] for one in report["findings"]} == {"KM201"} and "it returns when nodes join unevenly again" in report["plan"][0]["note"]
        cluster.wait(lambda: zones.running(cluster, namespace) == everybody, 60, "a pod on every node")
        assert processes(cluster, leads, SCHEDULER) != before[leads][1][0]
        untouched(cluster, before, *[name for name in before if name != leads], journal=False)
        first = report["run_id"]

        done, report = play(*CONSENT, name="pods_stay_pending")
        assert (done.returncode, report["plan"], report["steps"], [one["code"] for one in report["findings"]]) == (0, [], [], ["KM201"]), done.stdout[-3000:]
        done = playbook.run("revert", cluster.inventory, "-e", f"kubemend_run_id={first}", report=str(tmp_path / "revert"))
        assert f"there is nothing to revert of run {first}: it changed no file on {leads}" in done.stdout, done.stdout[-3000:]
