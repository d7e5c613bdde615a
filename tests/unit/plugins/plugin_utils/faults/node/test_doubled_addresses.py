# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses that two machines have: a part of KM530."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import engine
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node import (
    doubled_addresses,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    doubled_addresses as doubled_model,
)
from tests.unit.support import network_evidence
from tests.unit.support.api_nodes import node
from tests.unit.support.doubled_addresses import VIP, front, give, machines, tell


@pytest.fixture
def nodes(world: Any) -> Any:
    machines(world)
    give(world, "m2", "w1")
    return world


def found(world: Any) -> Any:
    result = world.judge(faults={"KM530"})
    (one,) = [row for row in result.findings if row.component in ("address", "kube-apiserver")]
    return one


def test_a_virtual_address_on_two_machines(nodes):
    one = found(nodes)
    assert (one.code, one.severity, one.host, one.component) == (
        "KM530",
        "warning",
        None,
        "address",
    )
    assert f"the address {VIP} is on m2, w1 at the same time" in one.summary
    assert "moved in between looks the same" in one.summary
    assert [proof.host for proof in one.evidence] == ["m2", "w1"]
    assert all("read at 2027-01-15T08:00:00Z" in proof.text for proof in one.evidence)
    for words in ("ip -br address on m2, w1", "virtual_router_id", "plndr", f"del {VIP}/LENGTH"):
        assert words in one.remedy


def test_the_interfaces_are_named_where_the_kernel_told(nodes):
    tell(nodes, "bond0", "m2", "w1")
    one = found(nodes)
    assert "m2 (bond0), w1 (bond0)" in one.summary
    assert f"has {VIP} at bond0" in one.evidence[0].text


def test_a_macvlan_of_kube_vip(nodes):
    for host in ("m2", "w1"):
        link = network_evidence.interface("vip-4b6f8081", kind="macvlan")
        nodes.data(host, "network")["interfaces"].append(link)
    one = found(nodes)
    assert "m2 (vip-4b6f8081)" in one.summary
    assert "ip link delete vip-4b6f8081" in one.remedy
    assert "keepalived" not in one.remedy


def test_the_address_of_the_api_on_a_machine_without_api_server(nodes):
    front(nodes)
    one = found(nodes)
    assert (one.severity, one.component) == ("critical", "kube-apiserver")
    assert f"{VIP}, the address of the API, is on m2, w1" in one.summary
    assert "no API server runs on w1" in one.summary


def test_flannel_that_took_it_for_the_nodes_own(nodes):
    annotation = {"flannel.alpha.coreos.com/public-ip": VIP}
    node(nodes, "m2")["plugin_addresses"] = annotation
    assert "flannel of m2 took it for the node's own address" in found(nodes).summary


def test_kube_vip_by_its_static_pod(nodes):
    text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: kube-vip\n  namespace: kube-system\n"
    text += "spec:\n  containers:\n  - name: kube-vip\n    image: example.org/kube-vip:v1\n"
    files = nodes.data("m1", "manifests")["files"]
    files.append(dict(files[0], name="kube-vip.yaml", text=text, path="/etc/x/kube-vip.yaml"))
    assert "keepalived" not in found(nodes).remedy


def test_no_more_addresses_than_a_few(nodes):
    for number in range(101, 115):
        give(nodes, "m2", "w1", address=f"192.0.2.{number}")
    result = nodes.judge(faults={"KM530"})
    rows = [row for row in result.findings if row.component == "address"]
    assert len(rows) == doubled_addresses.MAX_HITS


def test_an_address_of_a_node_is_none_of_the_macvlan_of_kube_vip(nodes):
    for host in ("m2", "w1"):
        link = network_evidence.interface("vip-4b6f8081", kind="macvlan")
        nodes.data(host, "network")["interfaces"].append(link)
    node(nodes, "m2")["addresses"] = [{"type": "InternalIP", "address": VIP}]
    one = found(nodes)
    assert f"{VIP}, the address of the node m2, is on m2, w1 at" in one.summary
    assert all("vip-" not in proof.text for proof in one.evidence)


def test_what_kubelets_are_told_of_such_an_address(nodes):
    (cluster,) = engine.evaluate_clusters([*nodes.documents.values(), nodes.api])[1]
    row = doubled_model.named(cluster, VIP)
    assert row is not None
    assert doubled_addresses.clause(row) == "m2, w1 have that address at the same time"
    front(nodes)
    (cluster,) = engine.evaluate_clusters([*nodes.documents.values(), nodes.api])[1]
    row = doubled_model.named(cluster, VIP)
    assert row is not None
    assert "no API server runs on w1" in doubled_addresses.clause(row)


@pytest.mark.parametrize(("address", "is_ipv4"), [(VIP, True), ("2001:db8::10", False)])
def test_arping_is_of_ipv4_alone(nodes, address, is_ipv4):
    (cluster,) = engine.evaluate_clusters(nodes.documents.values())[1]
    row = doubled_model.SharedAddress(address, tuple(cluster.hosts[:2]), is_api=True)
    assert ("arping" in doubled_addresses.advice(cluster, row)) is is_ipv4
