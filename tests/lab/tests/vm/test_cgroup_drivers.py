# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubelet and runtime with different cgroup drivers, on a kernel with cgroup v2."""

from __future__ import annotations

import json

import pytest

from tests.lab.incidents import cgroup_driver
from tests.lab.support import jobs, machines
from tests.lab.support.repairing import OLD, RELEASES
from tests.lab.support.report import findings

DEEP = ("-e", "kubemend_deep=true")
KUBELET = "/var/lib/kubelet/config.yaml"
UNLIMITED = "KM410"  # of this runtime, and no part of the test
pytestmark = pytest.mark.skipif(RELEASES == [OLD], reason="its machine has cgroup v1")


def on(report: dict, node: str) -> set[str]:
    return {found["code"] for found in findings(report) if found["host"] == node} - {UNLIMITED}


def test_a_runtime_with_systemd_refuses_a_kubelet_with_cgroupfs(cluster, play, node):
    cgroup_driver.INCIDENT.break_(cluster, node)
    cgroup_driver.INCIDENT.symptom(cluster, node)
    try:
        done, report = play(*DEEP, name="audit")
        assert done.returncode == 0, done.stdout[-4000:]
        assert on(report, node) == {"KM516", "KM524"}, report["findings"]
    finally:
        cgroup_driver.INCIDENT.undo(cluster, node)


def start_pod(cluster, namespace: str, node: str) -> None:
    """Create a pod on that node, and wait until it runs."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "late"},
        "spec": jobs.pod_spec(cluster, nodeName=node),
    }
    cluster.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(pod))
    phase = ("-n", namespace, "get", "pod", "late", "-o", "jsonpath={.status.phase}")
    cluster.wait(
        lambda: cluster.kubectl(*phase).stdout.strip() == b"Running", 180, f"a pod of {node}"
    )


def test_a_kubelet_that_asks_its_runtime_takes_its_driver(cluster, play, node):
    """Its configuration says another one, and no pod is refused: there is nothing to find."""
    cluster.exec(node, f"sed -i 's/^cgroupDriver:.*/cgroupDriver: systemd/' {KUBELET}")
    cluster.exec(node, "systemctl restart kubelet")
    machines.wait_ready(cluster, node)
    namespace = jobs.new_namespace()
    jobs.create_namespace(cluster, namespace)
    try:
        start_pod(cluster, namespace, node)
        done, report = play(*DEEP, name="audit")
        assert done.returncode == 0, done.stdout[-4000:]
        assert on(report, node) == set(), report["findings"]
    finally:
        jobs.remove(cluster, namespace)
