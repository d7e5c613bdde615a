# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scheduler that has lost a node dumps its cache, which has it: level raised and put back, the same process before and after, files kept."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import pytest

from tests.lab import interrupt, jobs
from tests.lab.repairing import OLD
from tests.lab.staticpod import SCHEDULER, lock_holder, processes, restart

pytestmark = pytest.mark.skipif(os.environ.get("KUBEMEND_TEST_FULL") != "1", reason="every scheduler starts again several times: only in the whole matrix")

ZONED, NAME = "zoned", "everywhere"
CAPTURE = ("-e", "kubemend_capture=true", "-e", "kubemend_capture_seconds=8")


def create(cluster, namespace, item):
    cluster.kubectl("-n", namespace, "create", "--validate=false", "-f", "-", input=json.dumps(item))


def pods(cluster, namespace):
    return json.loads(cluster.kubectl("-n", namespace, "get", "pods", "-o", "json").stdout)["items"]


def refused(one):
    return any(condition["type"] == "PodScheduled" and condition["status"] == "False" for condition in one["status"].get("conditions") or ())


def anew(cluster):
    """Every scheduler starts again: until then it keeps each node that a pod ever named."""
    for node in cluster.of_role("master"):
        restart(cluster, node.name, SCHEDULER)
    cluster.wait_healthy()


@pytest.fixture
def lost(cluster):
    """A new leader makes its list of nodes for a first pod, a Node of another zone joins, and a DaemonSet wants a pod on each."""
    namespace, everywhere = jobs.new_namespace(), {"tolerations": [{"operator": "Exists"}]}
    jobs.create_namespace(cluster, namespace)
    try:
        anew(cluster)  # whoever leads now has no list yet, and none of them a node in its cache that tests before this one named
        create(cluster, namespace, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "first"}, "spec": jobs.pod_spec(cluster, **everywhere)})
        cluster.wait(lambda: pods(cluster, namespace)[0]["spec"].get("nodeName"), 90, "the first pod to be scheduled")
        zone = {"failure-domain.beta.kubernetes.io/zone": "z2", "topology.kubernetes.io/zone": "z2", "kubernetes.io/hostname": ZONED}
        create(cluster, namespace, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": ZONED, "labels": zone}})
        create(cluster, namespace, {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": NAME}, "spec": {
            "selector": {"matchLabels": {"app": NAME}}, "template": {"metadata": {"labels": {"app": NAME}}, "spec": {
                **jobs.pod_spec(cluster, **everywhere), "restartPolicy": "Always"}}}})
        count = 2 if cluster.k8s == OLD else 1  # the Node without a kubelet has no room for one, and the old scheduler has lost another

        def waiting():
            found = [one for one in pods(cluster, namespace) if one["metadata"]["name"].startswith(NAME)]
            if len(found) != 5 or sum(map(refused, found)) != count or sum("nodeName" in one["spec"] for one in found) != 5 - count:
                raise ValueError(f"{len(found)} pods, {sum(map(refused, found))} of them refused")
            return True

        cluster.wait(waiting, 90, f"{count} pods of the DaemonSet to stay Pending")
        yield
    finally:
        cluster.kubectl("delete", "node", ZONED, "--ignore-not-found")
        jobs.remove(cluster, namespace)


def running(cluster):
    return {node.name: processes(cluster, node, SCHEDULER) for node in cluster.of_role("master")}


def test_the_leading_scheduler_dumps_its_cache(cluster, lost, play):
    done, report = play(*CAPTURE, "-e", "kubemend_max_risk=1", "--check", name="pods_stay_pending")
    assert done.returncode == 0 and "scheduler_captures" not in report
    assert any("nothing is captured (check mode)" in note and " 0 -> 4" in note for note in report["notices"]), report["notices"]
    before, leader = running(cluster), lock_holder(cluster, SCHEDULER)
    done, report = play(*CAPTURE, "-e", "kubemend_max_risk=1", name="pods_stay_pending")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "scheduler_captures" in report, report["notices"]
    found, = report["scheduler_captures"]
    assert (found["host"], found["dump"], found["level"]) == (
        leader, {"taken": True, "whole": True, "reason": ""}, {"former": 0, "level": 4, "raised": True, "restored": True, "reason": ""})
    assert [found["nodes"][name] for name in ("api", "cached", "counted")] == [5, 5, 5]
    old = cluster.k8s == OLD
    assert (found["nodes"]["reasons"], found["verdict"]) == ((4, "snapshot_short") if old else (5, "nothing_missing")), found
    assert len(found["targets"]) == (1 if old else 0) and ZONED not in found["targets"]
    files = {name: Path(path) for name, path in found["files"].items()}
    assert {"dump", "lines"} <= set(files) and {stat.S_IMODE(path.stat().st_mode) for path in files.values()} == {0o600}
    assert all(f"Node name: {name}" in files["dump"].read_text(encoding="utf-8") for name in ("m1", "m2", "m3", "w1", ZONED))
    assert f"kube-scheduler of {leader}" in done.stdout
    assert running(cluster) == before and lock_holder(cluster, SCHEDULER) == leader
    assert interrupt.left_over(cluster) == []


def test_no_signal_where_the_dump_would_end_it(cluster, lost, play):
    """A pod names a Node that is not there, as after a Node's end: the dump of v1.18.4 would end the scheduler by a nil pointer."""
    namespace = jobs.new_namespace()
    jobs.create_namespace(cluster, namespace)
    try:
        create(cluster, namespace, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ghost"},
                                    "spec": jobs.pod_spec(cluster, nodeName="lab-no-such-node")})
        time.sleep(5)  # the metric is of each second
        before = running(cluster)
        done, report = play(*CAPTURE, "-e", "kubemend_max_risk=1", name="pods_stay_pending")
        assert done.returncode == 0, done.stdout[-3000:]
        found, = report["scheduler_captures"]
        assert found["dump"]["taken"] is False and "nothing was sent: its cache has 6 nodes and the API has 5" in found["dump"]["reason"]
        assert running(cluster) == before and interrupt.left_over(cluster) == []
    finally:
        jobs.remove(cluster, namespace)
        anew(cluster)
