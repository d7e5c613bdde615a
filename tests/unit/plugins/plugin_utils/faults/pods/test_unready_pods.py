# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's own pods that fail their probes, KM561."""

from __future__ import annotations

import pytest

from tests.unit.support.saying_pods import say
from tests.unit.support.waiting_pods import judged

BGP = (
    "Readiness probe failed: calico/node is not ready: BIRD is not ready: BGP not established with"
    " 192.0.2.11,192.0.2.12"
)
REFUSED = (
    'Readiness probe failed: Get "http://10.0.0.9:8181/ready": dial tcp 10.0.0.9:8181: connect:'
    " connection refused"
)


def fail(world, message=BGP, pod="calico-node-bcdfg", container="calico-node", **changed):
    """Let a pod of w1 have failed its probe from 07:30 to 07:58."""
    row = {"namespace": "kube-system", "pod": pod, "container": container, "node": "w1"}
    row |= {"message": message, "count": 30}
    row |= {"first": "2027-01-15T07:30:00Z", "last": "2027-01-15T07:58:00Z"}
    world.data("api", "pod_start")["unhealthy"].append(row | changed)


def test_a_healthy_cluster_and_missing_evidence(world):
    assert judged(world, "KM561") == (["clear"], [])
    world.data("api", "pod_start")["unhealthy"] = None
    assert judged(world, "KM561") == (["not judged"], [])
    world.api["collectors"]["pod_start"] = {"status": "denied", "data": None}
    assert judged(world, "KM561") == (["unknown"], [])
    world.leave_kubernetes()
    assert set(judged(world, "KM561")[0]) <= {"not_applicable"}


def test_an_agent_without_its_peers(world):
    fail(world)
    verdicts, (found,) = judged(world, "KM561")
    assert verdicts == ["present"]
    assert (found.host, found.node, found.severity) == ("w1", "w1", "warning")
    assert found.summary.startswith("kube-system/calico-node on w1 fails its probes, 30 times")
    assert "no session of BGP is established with 192.0.2.11,192.0.2.12" in found.summary
    assert "IP_AUTODETECTION_METHOD" in found.remedy
    assert "kubectl -n kube-system logs calico-node-bcdfg -c calico-node" in found.remedy
    assert BGP in found.evidence[0].text


def test_probes_that_were_not_all_read(world):
    """The rows that were read are judged all the same, and what waits is known."""
    data = world.data("api", "pod_start")
    data["unhealthy_cut"] = True
    (row,) = world.judge(faults=frozenset(("KM561",)), deep=True).verdicts
    assert (row.verdict, [item.status for item in row.missing]) == ("unknown", ["timeout"])
    assert "--field-selector reason=Unhealthy" in row.note
    assert judged(world, "KM600") == (["clear"], [])
    fail(world)
    verdicts, (found,) = judged(world, "KM561")
    assert (verdicts, found.node) == (["present"], "w1")


def test_a_server_that_does_not_listen(world):
    fail(world, REFUSED, pod="coredns-7c4d5b6f8d-bcdfg", container="coredns")
    (found,) = judged(world, "KM561")[1]
    assert "nothing listens" in found.summary
    assert "names are not resolved" in found.summary


@pytest.mark.parametrize(
    "changed",
    [
        {"last": "2027-01-15T07:50:00Z"},  # it has ended
        {"first": "2027-01-15T07:55:00Z"},  # young
        {"count": 3},
        {"first": None},
        {"pod": "kube-apiserver-w1", "container": "kube-apiserver"},
    ],
)
def test_what_is_no_finding(world, changed):
    fail(world, **changed)
    assert judged(world, "KM561") == (["clear"], [])


def test_pods_of_one_cause_are_one_finding(world):
    fail(world)
    fail(world, BGP.replace("192.0.2.11", "192.0.2.101"), pod="calico-node-hjklm", node="m1")
    (found,) = judged(world, "KM561")[1]
    assert found.host is None
    assert len(found.evidence) == 2


def test_what_such_a_pod_says_is_its_cause(world):
    fail(world)
    say(world)
    (found,) = judged(world, "KM561")[1]
    assert "KM560" in found.because


def test_the_cause_of_a_known_message_is_told(world):
    fail(world, "Startup probe failed: Couldn't autodetect an IPv4 address")
    (found,) = judged(world, "KM561")[1]
    assert "Known cause: calico-node finds no interface" in found.summary
    assert found.remedy.startswith("see ip -br address of the node")


def test_the_agent_of_istio_whose_plugin_cilium_leaves_out(world):
    files = [{"name": "05-cilium.conflist", "plugins": ["cilium-cni"], "mtime": 1799999999.0}]
    data = {"folder": "/etc/cni/net.d", "files": files, "programs": ["cilium-cni", "istio-cni"]}
    world.documents["w1"]["collectors"]["cni"] = {"status": "ok", "data": data}
    message = "Readiness probe failed: HTTP probe failed with statuscode: 503"
    fail(world, message, "istio-cni-node-n5kbp", "install-cni", namespace="istio-system")
    (found,) = judged(world, "KM561")[1]
    assert "cni.exclusive" in found.summary
    assert "/etc/cni/net.d/05-cilium.conflist" in [ref.path for ref in found.evidence]
    assert found.remedy.startswith("let Cilium leave other files alone")
