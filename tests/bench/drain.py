# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time of a drain from the first eviction to the last pod gone, against `kubectl drain`.

Seen from outside, by a watch of those pods on the node from which both drain.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
from pathlib import Path

from tests.lab.cluster.clusters import Cluster
from tests.lab.support import draining

ROUNDS, PODS = 5, 20
# Prints the seconds between the first pod that is told to end and the last one that is gone.
WATCH = r"""
import json, subprocess, sys, time
path, wanted, first, gone = sys.argv[1], int(sys.argv[2]), None, set()
watch = subprocess.Popen(
    ["kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "get", "--raw", path],
    stdout=subprocess.PIPE,
)
for line in watch.stdout:
    event = json.loads(line)
    meta = event["object"]["metadata"]
    if meta.get("deletionTimestamp"):
        first = first or time.monotonic()
    if event["type"] == "DELETED":
        gone.add(meta["uid"])
    if len(gone) == wanted:
        print(time.monotonic() - first)
        break
watch.kill()
"""
DRAIN = "KUBECONFIG=/etc/kubernetes/admin.conf kubectl drain w1 --ignore-daemonsets --timeout=120s"


def main(k8s: str) -> None:
    if k8s not in Cluster.known():
        print(f"drain against kubectl: skipped, no lab cluster {k8s} is up (make lab-up K8S={k8s})")
        return
    cluster = Cluster.find(k8s)
    with cluster.locked(), tempfile.TemporaryDirectory(prefix="kubemend-bench-") as folder:
        pods = draining.Pods(cluster)
        try:
            pods.create(pods.controller("Deployment", "bench", replicas=PODS))
            theirs, ours = zip(
                *(_round(cluster, pods, Path(folder)) for dummy in range(ROUNDS)), strict=True
            )
        finally:
            cluster.kubectl("uncordon", "w1")
            draining.jobs.remove(cluster, pods.namespace)
    kubectl, drain = statistics.median(theirs), statistics.median(ours)
    print(
        f"first eviction to last of {PODS} pods gone ({k8s}; median of {ROUNDS}): kubectl drain"
        f" {kubectl:.1f} s, node_drain {drain:.1f} s = {drain / kubectl:.2f}x"
    )
    print(
        f"    kubectl {' '.join(f'{one:.1f}' for one in theirs)}; node_drain"
        f" {' '.join(f'{one:.1f}' for one in ours)}"
    )


def _round(cluster: Cluster, pods: draining.Pods, folder: Path) -> tuple[float, float]:
    """Return (kubectl's seconds, kubemend's)."""
    theirs = _timed(cluster, pods, lambda: cluster.exec("m1", DRAIN, timeout=150))
    cluster.kubectl("uncordon", "w1")
    ours = _timed(cluster, pods, lambda: draining.drain(cluster, folder))
    draining.drain(cluster, folder, state="uncordoned")
    return theirs, ours


def _timed(cluster: Cluster, pods: draining.Pods, drain) -> float:
    """Return the seconds that the watch saw during this drain."""
    pods.wait_running(PODS)
    listed = json.loads(pods.kubectl("get", "pods", "-o", "json").stdout)
    query = (
        f"/api/v1/namespaces/{pods.namespace}/pods?watch=1&fieldSelector=spec.nodeName%3Dw1"
        f"&resourceVersion={listed['metadata']['resourceVersion']}"
    )
    seen: list[float] = []
    watch = threading.Thread(
        target=lambda: seen.append(
            float(
                cluster.exec("m1", ["python3", "-c", WATCH, query, str(PODS)], timeout=200).stdout
            )
        )
    )
    watch.start()
    drain()
    watch.join(200)
    if not seen:
        raise SystemExit("the watch did not see every pod go")
    return seen[0]
