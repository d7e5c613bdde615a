# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Nodes of a cluster."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    nodes,
)
from tests.unit.support import answers

NODES = answers.recorded("v1.36.3-etcd-no-space", "m1.cluster", "nodes")


def node(case, name):
    """Return the typed Node of a recorded case."""
    found = answers.typed(nodes.Nodes, answers.recorded(case, "m1.cluster", "nodes")).items
    return next(item for item in found if item.name == name)


def test_a_node_whose_kubelet_stopped_reporting():
    gone = node("v1.36.3-etcd-no-space", "m1")
    assert (gone.ready, gone.unschedulable, gone.control_plane) == ("Unknown", False, True)
    assert (gone.lease, gone.lease_duration_s) == ("2026-11-25T13:38:39.418333Z", 12)
    assert [(taint.key, taint.effect, taint.added) for taint in gone.taints[1:]] == [
        ("node.kubernetes.io/unreachable", "NoSchedule", "2026-11-25T13:39:08Z"),
        ("node.kubernetes.io/unreachable", "NoExecute", "2026-11-25T13:39:18Z"),
    ]
    assert {(item.status, item.reason) for item in gone.conditions} == {
        ("Unknown", "NodeStatusUnknown")
    }


def test_how_a_node_is_recognised():
    m2 = node("v1.36.3-etcd-no-space", "m2")
    assert m2.machine_id == m2.system_uuid == "5a973f52a189474ca3148cb4a885ab7f"
    assert m2.boot_id == "55f94250-81ae-4697-89ad-06d424175351"
    assert [(item.type, item.address) for item in m2.addresses] == [
        ("InternalIP", "10.89.0.12"),
        ("Hostname", "m2"),
    ]
    assert m2.labels["kubernetes.io/hostname"] == "m2"
    assert m2.kubelet_version == "v1.36.3"
    assert (m2.uid, m2.created) == (
        "bc4d0d84-f616-49a5-85d0-96c584d36c3f",
        "2026-11-25T13:22:33Z",
    )


def test_the_clock_of_the_api_server_is_that_of_the_whole_list():
    clock = answers.typed(nodes.Nodes, NODES).clock
    assert clock.date == "Wed, 25 Nov 2026 13:41:09 GMT"
    assert clock.asked_at < clock.read_at


def test_a_node_without_a_pod_network_has_the_kubelets_message():
    (ready,) = node("v1.36.3-cni-gone", "w1").conditions
    assert (ready.type, ready.status, ready.reason) == ("Ready", "False", "KubeletNotReady")
    assert "cni plugin not initialized" in ready.message
    assert ready.since == "2026-11-23T02:19:02Z"


def test_devices_are_capacity_and_allocatable():
    assert node("v1.36.3-gpu-unhealthy", "w1").devices == {"nvidia.com/gpu": (2, 1)}


def test_devices_of_one_number_are_dropped():
    decoded = answers.changed(nodes.Nodes, NODES, "items", 0, "devices", value={"gpu": [2]})
    assert decoded.malformed == ("items[0].devices.gpu",)
    assert decoded.answer.items[0].devices == {}


def test_a_cordon_of_kubemend():
    cordon = {"run": "20261121T112659Z-71414d", "reason": "KM204", "at": None, "held": True}
    decoded = answers.changed(nodes.Nodes, NODES, "items", 3, "cordon", value=cordon)
    assert decoded.malformed == ()
    item = decoded.answer.items[3].cordon
    assert (item.run, item.reason, item.held) == ("20261121T112659Z-71414d", "KM204", True)


def test_taints_of_another_type_are_unknown_and_not_none_at_all():
    decoded = answers.changed(nodes.Nodes, NODES, "items", 0, "taints", value={})
    assert decoded.malformed == ("items[0].taints",)
    assert decoded.answer.items[0].taints is None
    assert len(decoded.answer.items[0].conditions) == 4


def test_ready_is_the_status_of_a_condition_and_no_boolean():
    decoded = answers.changed(nodes.Nodes, NODES, "items", 1, "ready", value=True)
    assert decoded.malformed == ("items[1].ready",)
    assert decoded.answer.items[1].ready is None
