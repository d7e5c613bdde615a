# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of kube-system that run and repeat an error, or fail their probes (KM560, KM561).

The lab has no CoreDNS and no metrics server: a shell prints what they print. The logs are those of
the real containerd, and the events those of the real kubelet. A pod of a user beside them says and
fails the same, and is no finding.

The cluster is one of its own, and taken away at the end.
"""

from __future__ import annotations

import json

import pytest

from tests.lab.cluster.clusters import Cluster
from tests.lab.support import jobs
from tests.lab.support.repairing import RELEASES, UNDRAWN, codes, own, possible
from tests.lab.support.report import findings

pytestmark = UNDRAWN
SYSTEM, OF_USER = "kube-system", "lab-user"
LINE = (
    "[ERROR] plugin/errors: 2 app$n.example.org. A: read udp"
    " 10.244.1.7:4$n->192.0.2.53:53: i/o timeout"
)
SAYS = f'n=100; while true; do n=$((n+1)); echo "{LINE}"; sleep 3; done'
# So long a pod must say or fail it; both are asked for at the same time.
SECONDS = 660


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request):
    possible(request.param)
    with own(Cluster(request.param, 1, 1, "short", name=f"{request.param}-system")) as found:
        yield found


def deployment(cluster, namespace: str, name: str, **more) -> dict:
    """Return a Deployment of one container of that name, which runs on the worker."""
    labels = {"lab": name}
    work = {
        "name": name,
        "image": cluster.state["pause"],
        "imagePullPolicy": "Never",
        "command": ["/bin/sh", "-c", SAYS],
        **more,
    }
    spec = {"terminationGracePeriodSeconds": 1, "containers": [work]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def pods(cluster) -> list[dict]:
    """Return the four Deployments: two of the cluster's own, and the same two of a user."""
    probe = {"httpGet": {"port": 4443, "path": "/readyz"}, "periodSeconds": 5}
    quiet = {"command": ["/bin/sleep", "100000"], "readinessProbe": probe}
    return [
        deployment(cluster, namespace, name, **more)
        for namespace in (SYSTEM, OF_USER)
        for name, more in (("coredns", {}), ("metrics-server", quiet))
    ]


def items(cluster) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": pods(cluster)})


def told(report) -> dict[str, dict]:
    return {one["code"]: one for one in findings(report) if one["code"] in ("KM560", "KM561")}


def test_what_the_cluster_s_own_pods_suffer_from_is_named_and_that_of_users_is_not(cluster, play):
    done, report = play(name="audit")
    assert codes(report) == set(), done.stdout[-4000:]

    jobs.create_namespace(cluster, OF_USER)
    cluster.kubectl("apply", "-f", "-", input=items(cluster))

    def both():
        _done, seen = play(name="audit")
        found = told(seen)
        if len(found) < 2:
            raise ValueError(f"only {sorted(found)}")
        return seen

    report = cluster.wait(both, SECONDS, "both faults to be told", every=20)
    assert {code for code, _host in codes(report)} == {"KM560", "KM561"}, findings(report)
    found = told(report)
    assert (found["KM560"]["node"], found["KM560"]["component"]) == ("w1", "coredns")
    assert "192.0.2.53:53" in found["KM560"]["summary"]
    assert (found["KM561"]["node"], found["KM561"]["component"]) == ("w1", "metrics-server")
    assert "4443" in found["KM561"]["summary"]
    assert not any(OF_USER in one["summary"] for one in found.values())
    assert report["plan"] == []

    cluster.kubectl("delete", "-f", "-", input=items(cluster))
    cluster.wait(lambda: _gone(cluster), 120, "the pods to end")
    done, report = play(name="audit")
    assert told(report) == {}, done.stdout[-4000:]


def _gone(cluster) -> bool:
    left = cluster.kubectl("-n", SYSTEM, "get", "pods", "-l", "lab", "-o", "name").stdout
    return not left.strip()
