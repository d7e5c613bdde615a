# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods and workloads that look meant for CPU pinning."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    pinnable,
)
from tests.unit.support import answers

PINNABLE = answers.recorded("v1.36.3-pinning-init", "m1.cluster", "pinnable")


def test_a_workload_whose_init_container_has_no_limits():
    workload = answers.typed(pinnable.Pinnable, PINNABLE).items[0]
    assert (workload.kind, workload.api_version, workload.name) == (
        "Deployment",
        "apps/v1",
        "meant",
    )
    assert (workload.owner, workload.manager, workload.pod_level) == (None, None, None)
    assert (workload.expected, workload.node, workload.alike) == (False, None, None)
    work, prepare = workload.containers
    assert (work.kind, work.cpu_request, work.cpu_limit) == ("app", None, "1")
    assert (prepare.kind, prepare.cpu_limit, prepare.memory_limit) == ("init", None, None)
    assert work.injected is None


def test_a_pod_of_that_workload():
    pod = answers.typed(pinnable.Pinnable, PINNABLE).items[1]
    assert (pod.kind, pod.node, pod.phase, pod.qos) == ("Pod", "w1", "Running", "Burstable")
    assert (pod.owner.kind, pod.owner.api_version, pod.owner.name) == (
        "Deployment",
        "apps/v1",
        "meant",
    )
    assert pod.alike == 1
    assert (pod.namespace, pod.uid) == (
        "lab-jobs-a1eb3e",
        "c7890284-4962-4b77-bb47-c262f9b516b2",
    )
    assert [container.injected for container in pod.containers] == [False, False]


def test_resources_of_the_whole_pod_and_the_tool_that_manages_it():
    item = {
        "pod_level": {"cpu_request": "2", "cpu_limit": "2", "memory_limit": "1Gi"},
        "manager": {"tool": "Helm", "name": "release-1"},
        "resources": "2f5c",
    }
    (item,) = answers.typed(pinnable.Pinnable, {"items": [item]}).items
    assert (item.pod_level.cpu_request, item.pod_level.cpu_limit) == ("2", "2")
    assert (item.pod_level.memory_request, item.pod_level.memory_limit) == (None, "1Gi")
    assert (item.manager.tool, item.manager.name, item.resources) == ("Helm", "release-1", "2f5c")


def test_a_quantity_is_a_text_as_the_manifest_has_it():
    place = ("items", 1, "containers", 0)
    decoded = answers.changed(pinnable.Pinnable, PINNABLE, *place, "cpu_limit", value=1)
    assert decoded.malformed == ("items[1].containers[0].cpu_limit",)
    container = decoded.answer.items[1].containers[0]
    assert (container.cpu_limit, container.cpu_request) == (None, "1")
