# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster of one master whose kubelets are all disabled loses its power.

Nothing comes up, the API server neither, until we bring it back.

The cluster is one of its own, and taken away at the end.
"""

from __future__ import annotations

import pytest

from tests.lab.cluster import bringup
from tests.lab.cluster.clusters import Cluster
from tests.lab.support.repairing import CONSENT, RELEASES, codes, ended, own, possible
from tests.lab.tests.test_node_back import ENABLE, START

ALLOW = ("-e", "kubemend_allow=api_down")
NODES = ("m1", "w1")


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request):
    possible(request.param)
    with own(Cluster(request.param, 1, 1, "short", name=f"{request.param}-power")) as found:
        yield found


def units(cluster):
    return {
        (node, word): (
            cluster.exec(node, ["systemctl", word, "kubelet"], check=False).stdout.decode().strip()
        )
        for node in NODES
        for word in ("is-enabled", "is-active")
    }


BACK = {
    (node, word): said
    for node in NODES
    for word, said in (("is-enabled", "enabled"), ("is-active", "active"))
}
GONE = {
    (node, word): said
    for node in NODES
    for word, said in (("is-enabled", "disabled"), ("is-active", "inactive"))
}


def power_cut(cluster):
    for node in NODES:
        bringup.start_again(cluster.node(node))


def test_all_kubelets_are_brought_back_and_the_api_with_them(cluster, play):
    for node in NODES:
        cluster.exec(node, ["systemctl", "disable", "kubelet"])
    power_cut(cluster)
    assert units(cluster) == GONE
    done, report = play(*CONSENT, name="node_unreachable")
    assert done.returncode == 2, done.stdout[-4000:]
    assert units(cluster) == GONE, done.stdout[-4000:]
    assert report["plan"], report["plan"]
    assert all("kubemend_allow=api_down" in step["blocked_by"] for step in report["plan"]), report[
        "plan"
    ]

    done, report = play("--check", "--diff", *CONSENT, *ALLOW, name="node_unreachable")
    assert sorted((step["host"], step["remedy"]) for step in report["plan"]) == sorted(
        (node, remedy) for node in NODES for remedy in (ENABLE, START)
    )
    assert all(step["allowed"] for step in report["plan"]), done.stdout[-4000:]
    assert units(cluster) == GONE, done.stdout[-4000:]

    done, report = play(*CONSENT, *ALLOW, name="node_unreachable")
    assert ended(report) == ["done"] * 4, done.stdout[-4000:]
    assert units(cluster) == BACK, done.stdout[-4000:]
    cluster.wait_healthy()
    done, report = play(*CONSENT, name="node_unreachable")
    assert (done.returncode, report["plan"], codes(report)) == (0, [], set()), done.stdout[-4000:]
    power_cut(cluster)
    cluster.wait(lambda: units(cluster) == BACK, 120, "the kubelets to start by themselves")
    cluster.wait_healthy()
