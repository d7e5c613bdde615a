# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What evidence holds of the cluster's Nodes and their leases."""

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    nodes as cluster_nodes,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from tests.unit.support.fake_client import ItemClient


def test_taints():
    found = cluster_nodes.taints_of(
        {
            "spec": {
                "taints": [
                    {"key": "caf", "value": "log", "effect": "NoExecute"},
                    None,
                    "x",
                    {
                        "key": "node.kubernetes.io/unreachable",
                        "effect": "NoExecute",
                        "timeAdded": "2027-01-15T08:00:00Z",
                    },
                ]
            }
        }
    )
    assert found == [
        {"key": "caf", "value": "log", "effect": "NoExecute"},
        {
            "key": "node.kubernetes.io/unreachable",
            "effect": "NoExecute",
            "added": "2027-01-15T08:00:00Z",
        },
    ]
    assert cluster_nodes.taints_of({}) == []
    assert cluster_nodes.taints_of({"spec": {"taints": "x"}}) == []
    assert (
        len(cluster_nodes.taints_of({"spec": {"taints": [{"key": "k"}] * 99}}))
        == cluster_nodes.MAX_TAINTS
    )


def test_of_the_conditions_what_is_not_well_and_ready():
    def condition(kind, status):
        return {
            "type": kind,
            "status": status,
            "reason": "R" * 200,
            "lastTransitionTime": "2027-01-15T08:00:00Z",
            "message": "m" * 9000,
        }

    given = [
        condition("MemoryPressure", "False"),
        condition("DiskPressure", "True"),
        condition("PIDPressure", "Unknown"),
        condition("Ready", "True"),
        condition("KernelDeadlock", "True"),
    ]
    found = cluster_nodes.conditions_of({"status": {"conditions": given}})
    assert [(one["type"], one["status"]) for one in found] == [
        ("DiskPressure", "True"),
        ("PIDPressure", "Unknown"),
        ("Ready", "True"),
    ]
    assert all(len(one["reason"]) == 80 and one["since"] == "2027-01-15T08:00:00Z" for one in found)
    assert len(json.dumps(found)) < 700
    assert cluster_nodes.conditions_of({}) == []
    assert not any("message" in one for one in found)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            {"type": "Ready", "status": "False", "message": "m" * 9000},
            "m" * cluster_nodes.MAX_MESSAGE,
        ),
        ({"type": "Ready", "status": "False"}, ""),
        ({"type": "Ready", "status": "False", "message": None}, ""),
        ({"type": "Ready", "status": "Unknown", "message": "stopped posting"}, None),
        ({"type": "DiskPressure", "status": "True", "message": "m"}, None),
    ],
)
def test_the_message_of_a_node_that_says_that_it_is_not_ready(given, kept):
    (found,) = cluster_nodes.conditions_of({"status": {"conditions": [given]}})
    assert found.get("message") == kept


def test_leases_come_by_one_list_or_not_at_all():
    nodes = [{"name": "w1"}, {"name": "w2"}]
    answers = ItemClient(
        {"metadata": {"name": "w1"}, "spec": {"renewTime": "2027-01-15T08:00:00.000000Z"}},
        {"metadata": {"name": "gone"}, "spec": {}},
    )
    cluster_nodes.leased(answers, nodes)
    assert nodes == [
        {"name": "w1", "lease": "2027-01-15T08:00:00.000000Z", "lease_duration_s": None},
        {"name": "w2"},
    ]
    assert answers.asked == [(cluster_nodes.LEASES, None)]
    nodes = [{"name": "w1"}]
    cluster_nodes.leased(
        ItemClient(
            {"metadata": {"name": "w1"}, "spec": {"renewTime": "x"}}, ApiError("denied", "no", 403)
        ),
        nodes,
    )
    assert nodes == [{"name": "w1"}]
    answers = ItemClient()
    cluster_nodes.leased(
        answers, [{"name": str(number)} for number in range(cluster_nodes.MAX_LEASED + 1)]
    )
    assert not answers.asked


@pytest.mark.parametrize(
    ("capacity", "kept"),
    [
        (
            {"cpu": "8", "memory": "32861564Ki", "pods": "110", "hugepages-1Gi": "0"},
            {"cpu": 8000, "memory": 32861564 * 1024},
        ),
        ({"cpu": "many", "memory": "16Gi"}, {"memory": 16 * 1024**3}),
        ({}, {}),
        (None, {}),
    ],
)
def test_what_a_kubelet_counted_of_its_machine(capacity, kept):
    node = cluster_nodes.node_of({"metadata": {"name": "w1"}, "status": {"capacity": capacity}})
    assert node["capacity"] == kept


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd00::/64"]}, 2),
        ({"podCIDR": "10.1.0.0/24"}, 1),  # before 1.16
        ({}, 0),
    ],
)
def test_networks_of_a_node(spec, kept):
    node = cluster_nodes.node_of({"metadata": {"name": "w1"}, "spec": spec})
    assert len(node["pod_cidrs"]) == kept


def test_addresses_of_network_plugins_alone_are_kept():
    annotations = {"projectcalico.org/IPv4Address": "192.0.2.1/24", "secret": "hunter2"}
    node = cluster_nodes.node_of({"metadata": {"name": "w1", "annotations": annotations}})
    assert node["plugin_addresses"] == {"projectcalico.org/IPv4Address": "192.0.2.1/24"}


@pytest.mark.parametrize(
    ("text", "vtep"),
    [
        # flannel-io/flannel#1795
        ('{"VNI":1,"VtepMAC":"e6:7c:02:8e:e8:7e"}', {"vni": 1, "mac": "e6:7c:02:8e:e8:7e"}),
        ('{"VNI":4096,"VtepMAC":"E6:7C:02:8E:E8:7E"}', {"vni": 4096, "mac": "E6:7C:02:8E:E8:7E"}),
        ('{"PublicKey":"x"}', None),  # of the backend wireguard
        ('{"VNI":true,"VtepMAC":"e6:7c:02:8e:e8:7e"}', None),
        ('{"VNI":1,"VtepMAC":"e6:7c"}', None),
        ('{"VNI":16777216,"VtepMAC":"e6:7c:02:8e:e8:7e"}', None),
        ("null", None),
        ("[1]", None),
        ("no json", None),
        (7, None),
        (None, None),
    ],
)
def test_the_end_of_a_tunnel(text, vtep):
    annotations = {"flannel.alpha.coreos.com/backend-data": text}
    node = cluster_nodes.node_of({"metadata": {"name": "w1", "annotations": annotations}})
    assert node["vtep"] == vtep
