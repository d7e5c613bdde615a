# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cgroup drivers that differ, both ways, and a kubelet that refuses cgroup v1.

The machine has cgroup v2 where the release can use it, which the lab's containers may not have.
"""

from __future__ import annotations

import json

import pytest

from tests.lab.cluster import paths, vm_image
from tests.lab.incidents.cgroup_driver import ABOVE, ASKS_SINCE, CONFIG
from tests.lab.support import jobs, machines, pinning
from tests.lab.support.repairing import OLD, RELEASES
from tests.lab.support.report import findings

DEEP = ("-e", "kubemend_deep=true")
CODES = ("KM515", "KM516", "KM524")
# The kubelet's driver, and whether the runtime has systemd's.
PAIRS = {"systemd above cgroupfs": ("systemd", False), "cgroupfs above systemd": ("cgroupfs", True)}


@pytest.fixture
def namespace(cluster):
    name = jobs.new_namespace()
    jobs.create_namespace(cluster, name)
    yield name
    jobs.remove(cluster, name)


def pod(cluster, namespace: str, node: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "late"},
        "spec": jobs.pod_spec(cluster, nodeName=node),
    }
    cluster.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(body))


def phase(cluster, namespace: str) -> str:
    path = "jsonpath={.status.phase}"
    return cluster.kubectl("-n", namespace, "get", "pod", "late", "-o", path).stdout.decode()


def configure(cluster, node: str, kubelet: str, is_systemd: bool) -> None:
    text = cluster.read(node, CONFIG).decode()
    if is_systemd:
        above = ABOVE[3 if text.startswith("version = 3") else 2]
        cluster.write(node, CONFIG, f"{text.rstrip()}\n{above}\n")
    pinning.configure(cluster, node, {"cgroupDriver": kubelet})
    cluster.exec(node, ["systemctl", "restart", "containerd", "kubelet"])
    machines.wait_ready(cluster, node)


def on(report: dict, node: str) -> set[str]:
    found = {finding["code"] for finding in findings(report) if finding["host"] == node}
    return found & set(CODES)


@pytest.mark.parametrize("pair", PAIRS)
def test_drivers_that_differ(cluster, play, node, namespace, pair):
    """A kubelet that asks its runtime takes the runtime's driver, and nothing is wrong."""
    configure(cluster, node, *PAIRS[pair])
    pod(cluster, namespace, node)
    asks = paths.version_tuple(cluster.k8s) >= ASKS_SINCE
    if asks:
        cluster.wait(lambda: phase(cluster, namespace) == "Running", 180, "the pod to run")

    done, report = play(*DEEP, name="audit")
    assert done.returncode == 0, done.stdout[-4000:]
    expected = set() if asks else {"KM516"}
    # Refused is what is no slice; a runtime with cgroupfs takes any path.
    assert on(report, node) - {"KM524"} == expected, report["findings"]
    if asks:
        assert "KM524" not in on(report, node), report["findings"]


@pytest.mark.skipif(RELEASES == [OLD], reason="the release takes cgroup v1")
def test_a_kubelet_refuses_the_cgroup_v1_of_its_next_boot(cluster, play, node):
    if paths.version_tuple(cluster.k8s) < (1, 35):
        pytest.skip("the release takes cgroup v1")
    pinning.configure(cluster, node, {"failCgroupV1": None})
    cluster.exec(node, "sync")
    cluster.machine(node).cut_power()
    cluster.power_on(node, vm_image.CGROUP_V1)
    machines.wait_not_ready(cluster, node)

    _done, report = play(name="node_unreachable")
    assert "KM515" in on(report, node), report["findings"]

    cluster.cut_power(node)  # and boot as the lab does, with cgroup v2
    machines.wait_ready(cluster, node)
    done, report = play(name="node_unreachable")
    assert (done.returncode, on(report, node)) == (0, set()), done.stdout[-4000:]
