# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scheduler that has lost a node dumps its cache, which has it.

Its level is raised and put back, the process is the same before and after, and files are kept.

The tests have clusters of their own whose leaders are slow to lose their lead. A leader that loses
it on a busy machine would cure what is to be shown.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import stat
from pathlib import Path

import pytest

from tests.lab.cluster.clusters import Cluster
from tests.lab.support import interrupt, jobs
from tests.lab.support.repairing import CAPTURE, CONSENT, NEW, OLD, own, possible
from tests.lab.support.static_pod import PORTS, SCHEDULER, away, lock_holder, processes

pytestmark = pytest.mark.skipif(
    os.environ.get("KUBEMEND_TEST_FULL") != "1",
    reason="every scheduler starts again several times: only in the whole matrix",
)

ZONED, NAME, NOWHERE = "zoned", "everywhere", "nowhere"
# Without room the Node would have a reason of its own, and a message that may speak of the very
# node that a pod waits for names none that is lost.
ROOM = {"cpu": "4", "memory": "4Gi", "pods": "10"}


@pytest.fixture(scope="module", params=[OLD, NEW])
def cluster(request):
    possible(request.param)
    with own(Cluster(request.param, 3, 1, "steady", name=f"{request.param}-capture")) as found:
        yield found


def create(cluster, namespace, item):
    cluster.kubectl(
        "-n", namespace, "create", "--validate=false", "-f", "-", input=json.dumps(item)
    )


def pods(cluster, namespace):
    return json.loads(cluster.kubectl("-n", namespace, "get", "pods", "-o", "json").stdout)["items"]


def refused(one):
    return any(
        condition["type"] == "PodScheduled" and condition["status"] == "False"
        for condition in one["status"].get("conditions") or ()
    )


def anew(cluster):
    """Start every scheduler again.

    A scheduler of v1.18.4 keeps each node that a pod ever named until it starts again. All of them
    start at once, so that none of the former ones leads.
    """
    before = running(cluster)
    for name, found in before.items():
        # The kubelet's start forgets its back-off: every time it would wait longer.
        cluster.exec(
            name,
            f"systemctl restart kubelet; kill {' '.join(str(pid) for pid, _argv in found)}",
            check=False,
        )
    for name, found in before.items():
        cluster.wait(
            lambda name=name, found=found: [
                one for one in processes(cluster, name, SCHEDULER) if one not in found
            ],
            180,
            f"another {SCHEDULER} on {name}",
        )
    cluster.wait_healthy()


@pytest.fixture
def lost(cluster):
    """Let a new leader list its nodes; then add a Node of another zone and a DaemonSet."""
    namespace, everywhere = jobs.new_namespace(), {"tolerations": [{"operator": "Exists"}]}
    jobs.create_namespace(cluster, namespace)
    try:
        if cluster.k8s == OLD:
            # whoever leads now has no list yet, and none of them a node in its cache that tests
            # before this one named
            anew(cluster)
        create(
            cluster,
            namespace,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "first"},
                "spec": jobs.pod_spec(cluster, **everywhere),
            },
        )
        cluster.wait(
            lambda: pods(cluster, namespace)[0]["spec"].get("nodeName"),
            240,
            "the first pod to be scheduled",
        )
        zone = {
            "failure-domain.beta.kubernetes.io/zone": "z2",
            "topology.kubernetes.io/zone": "z2",
            "kubernetes.io/hostname": ZONED,
        }
        create(
            cluster,
            namespace,
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": ZONED, "labels": zone},
                "status": {"capacity": ROOM, "allocatable": ROOM},
            },
        )
        create(
            cluster,
            namespace,
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": NAME},
                "spec": {
                    "selector": {"matchLabels": {"app": NAME}},
                    "template": {
                        "metadata": {"labels": {"app": NAME}},
                        "spec": {**jobs.pod_spec(cluster, **everywhere), "restartPolicy": "Always"},
                    },
                },
            },
        )
        create(
            cluster,
            namespace,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": NOWHERE},
                "spec": jobs.pod_spec(
                    # a newer scheduler refuses nobody else
                    cluster,
                    nodeSelector={"lab/nowhere": "true"},
                    **everywhere,
                ),
            },
        )
        count = 2 if cluster.k8s == OLD else 1  # the old one has lost a node

        def waiting():
            found = [
                one
                for one in pods(cluster, namespace)
                if one["metadata"]["name"].startswith((NAME, NOWHERE))
            ]
            if (
                len(found) != 6
                or sum(map(refused, found)) != count
                or sum("nodeName" in one["spec"] for one in found) != 6 - count
            ):
                raise ValueError(f"{len(found)} pods, {sum(map(refused, found))} of them refused")
            return True

        cluster.wait(waiting, 240, f"{count} pods to stay Pending")
        yield
    finally:
        cluster.kubectl("delete", "node", ZONED, "--ignore-not-found")
        cluster.kubectl(
            "-n",
            namespace,
            "delete",
            "pods",
            f"--field-selector=spec.nodeName={ZONED}",
            "--grace-period=0",
            "--force",
            check=False,
        )
        jobs.remove(cluster, namespace)


def running(cluster):
    return {node.name: processes(cluster, node, SCHEDULER) for node in cluster.of_role("master")}


def test_the_leading_scheduler_dumps_its_cache(cluster, lost, play):
    done, report = play(*CAPTURE, "-e", "kubemend_max_risk=1", "--check", name="pods_stay_pending")
    assert done.returncode == 0
    assert "scheduler_captures" not in report
    assert any(
        "nothing is captured (check mode)" in note and " 2 -> 4" in note
        for note in report["notices"]
    ), report["notices"]
    before, leader = running(cluster), lock_holder(cluster, SCHEDULER)
    done, report = play(*CAPTURE, "-e", "kubemend_max_risk=1", name="pods_stay_pending")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "scheduler_captures" in report, report["notices"]
    (found,) = report["scheduler_captures"]
    assert (found["host"], found["dump"], found["level"]) == (
        leader,
        {"taken": True, "whole": True, "reason": ""},
        {"former": 2, "level": 4, "raised": True, "restored": True, "reason": ""},
    )
    assert [found["nodes"][name] for name in ("api", "cached", "counted")] == [5, 5, 5]
    old = cluster.k8s == OLD
    assert (found["nodes"]["reasons"], found["verdict"]) == (
        (4, "snapshot_short") if old else (5, "nothing_missing")
    ), found
    assert len(found["targets"]) == (1 if old else 0)
    assert ZONED not in found["targets"]
    files = {name: Path(path) for name, path in found["files"].items()}
    assert {"dump", "lines"} <= set(files)
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.values()} == {0o600}
    assert all(
        f"Node name: {name}" in files["dump"].read_text(encoding="utf-8")
        for name in ("m1", "m2", "m3", "w1", ZONED)
    )
    assert f"kube-scheduler of {leader}" in done.stdout
    assert running(cluster) == before
    assert lock_holder(cluster, SCHEDULER) == leader
    assert interrupt.left_over(cluster) == []
    if old:
        nobody_to_take_over(cluster, play, leader)


def settled(cluster):
    """Return whether the pods have waited so long that their message is the scheduler's last."""
    found = json.loads(
        cluster.kubectl(
            "get", "pods", "-A", "--field-selector=status.phase=Pending", "-o", "json"
        ).stdout
    )["items"]
    since = [
        condition["lastTransitionTime"]
        for one in found
        for condition in one["status"].get("conditions") or ()
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    ]
    now = datetime.datetime.now(datetime.timezone.utc)
    return bool(since) and all(
        (now - datetime.datetime.fromisoformat(one.replace("Z", "+00:00"))).total_seconds() > 65
        for one in since
    )


def nobody_to_take_over(cluster, play, leader):
    """Require that the only remaining scheduler is not restarted: no pod would be placed."""
    cluster.wait(lambda: settled(cluster), 180, "the pods to have waited for a minute")
    with away(
        cluster, [node.name for node in cluster.of_role("master") if node.name != leader], SCHEDULER
    ):
        before = processes(cluster, leader, SCHEDULER)
        done, report = play(*CONSENT, name="pods_stay_pending")
        (step,) = report["plan"]
        assert (done.returncode, report["exit_reason"], report["steps"]) == (
            2,
            "refused",
            [],
        ), done.stdout[-3000:]
        assert (step["code"], step["host"], step["allowed"]) == ("KM202", leader, False), step
        assert step["blocked_by"].startswith("no other healthy kube-scheduler"), step
        assert "scheduler_pause" in step["blocked_by"], step
        assert processes(cluster, leader, SCHEDULER) == before


# The pod garbage collector takes a pod of a Node that is not there within a minute, and newer
# schedulers then forget that Node.
GHOSTS, FILE, SCRIPT, GONE = (
    "lab-ghosts",
    "/root/lab-ghost.json",
    "/root/lab-ghosts.sh",
    "lab-no-such-node",
)


@contextlib.contextmanager
def haunted(cluster, namespace):
    """Pods that name a Node that is not there, as after a Node's end.

    One more every ten seconds, however slow a run is.
    """
    item = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "ghost-NUMBER"},
        "spec": jobs.pod_spec(cluster, nodeName=GONE),
    }
    kubectl = (
        "kubectl --kubeconfig=/etc/kubernetes/admin.conf"
        f" --server=https://{cluster.node('m1').ip}:6443 -n {namespace}"
    )
    cluster.write("m1", FILE, json.dumps(item))
    cluster.write(
        "m1",
        SCRIPT,
        f"n=0; while n=$((n + 1)); do sed s/NUMBER/$n/ {FILE} | {kubectl} create --validate=false"
        " -f -; sleep 10; done\n",
    )
    try:
        cluster.exec("m1", ["systemd-run", f"--unit={GHOSTS}", "/bin/sh", SCRIPT])
        yield
    finally:
        cluster.exec(
            "m1",
            f"systemctl stop {GHOSTS} 2>/dev/null; systemctl reset-failed {GHOSTS} 2>/dev/null; rm"
            f" -f {FILE} {SCRIPT}",
            check=False,
        )
        # no kubelet ends them
        cluster.kubectl(
            "-n", namespace, "delete", "pods", "--all", "--grace-period=0", "--force", check=False
        )


def cached(cluster, node):
    """Return how many nodes the cache of that scheduler has, as it says itself."""
    # Since lately the API server's own client may not read it.
    said = cluster.exec(
        node,
        [
            "kubectl",
            "--kubeconfig=/etc/kubernetes/admin.conf",
            f"--server=https://127.0.0.1:{PORTS[SCHEDULER]}",
            "--insecure-skip-tls-verify=true",
            "get",
            "--raw",
            "/metrics",
        ],
    ).stdout.decode()
    found = re.search(r'scheduler_cache_size\{type="nodes"\} (\S+)', said)
    if found is None:
        raise ValueError(f"no such metric in {said[-500:]}")
    return int(float(found.group(1)))


def test_no_signal_where_the_dump_would_end_it(cluster, lost, play):
    """The dump of v1.18.4 would crash the scheduler over a node that is only named."""
    namespace = jobs.new_namespace()
    jobs.create_namespace(cluster, namespace)
    try:
        with haunted(cluster, namespace):
            leader = lock_holder(cluster, SCHEDULER)
            cluster.wait(
                lambda: cached(cluster, leader) == 6, 180, f"{GONE} in the cache of {leader}"
            )
            before = running(cluster)
            done, report = play(*CAPTURE, "-e", "kubemend_max_risk=1", name="pods_stay_pending")
            assert done.returncode == 0, done.stdout[-3000:]
            assert len(report.get("scheduler_captures", ())) == 1, report["notices"]
            (found,) = report["scheduler_captures"]
            assert found["host"] == leader, found
            assert found["dump"]["taken"] is False, found
            assert (
                "nothing was sent: its cache has 6 nodes and the API has 5"
                in found["dump"]["reason"]
            ), found
            assert running(cluster) == before
            assert lock_holder(cluster, SCHEDULER) == leader
        assert interrupt.left_over(cluster) == []
    finally:
        jobs.remove(cluster, namespace)
