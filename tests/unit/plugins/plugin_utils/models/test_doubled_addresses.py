# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which addresses more than one machine of a cluster has."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import engine
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import doubled_addresses
from tests.unit.support import network_evidence
from tests.unit.support.api_nodes import node
from tests.unit.support.doubled_addresses import front, give, machines, tell


@pytest.fixture
def nodes(world: Any) -> Any:
    machines(world)
    return world


def found(world: Any) -> list[Any]:
    result = world.judge(faults={"KM530"})
    return [row for row in result.findings if row.component in ("address", "kube-apiserver")]


def test_no_address_is_shared(nodes):
    assert found(nodes) == []
    give(nodes, "m2")
    front(nodes)
    assert found(nodes) == []


@pytest.mark.parametrize("hosts", [("m1", "m2"), ("m2", "w1"), ("m1", "m3", "w1")])
def test_an_address_of_the_network_of_nodes(nodes, hosts):
    give(nodes, *hosts)
    (one,) = found(nodes)
    assert (one.component, one.severity) == ("address", "warning")


def test_an_address_of_a_node_that_another_machine_has_too(nodes):
    nodes.data("w1", "system")["addresses"] = ["192.0.2.12"]
    (one,) = found(nodes)
    assert "192.0.2.12, the address of the node m2, is on m2, w1" in one.summary


def test_one_machine_that_the_inventory_has_twice(nodes):
    give(nodes, "m1", "m2")
    for name in ("m1", "m2"):
        nodes.data(name, "system").update(boot_id="1" * 36, machine_id="a" * 32)
    assert found(nodes) == []


@pytest.mark.parametrize("shared", ["boot_id", "machine_id"])
def test_containers_of_one_kernel_and_clones_are_several_machines(nodes, shared):
    give(nodes, "m1", "m2")
    for name, digit in (("m1", "1"), ("m2", "2")):
        ids = {"boot_id": digit * 36, "machine_id": digit * 32, shared: "a" * 32}
        nodes.data(name, "system").update(ids)
    assert len(found(nodes)) == 1


@pytest.mark.parametrize("value", [None, ""])
def test_machines_that_did_not_tell_who_they_are(nodes, value):
    give(nodes, "m1", "m2")
    for host in ("m1", "m2"):
        nodes.data(host, "system").update(boot_id=value, machine_id=value)
    assert found(nodes) == []


@pytest.mark.parametrize("hosts", [("m1", "m2", "m3"), ("m1", "m2", "m3", "w1")])
def test_what_all_of_a_kind_have_may_be_meant(nodes, hosts):
    """Direct routing and BGP give the address of a balancer to each server of it."""
    give(nodes, *hosts)
    front(nodes)
    assert found(nodes) == []
    tell(nodes, "lo", *hosts)
    assert found(nodes) == []
    tell(nodes, "eth0", *hosts)
    assert len(found(nodes)) == 1


@pytest.mark.parametrize("dev", ["lo", "docker0", "kube-ipvs0", "dummy0"])
def test_a_link_whose_addresses_are_not_the_nodes(nodes, dev):
    give(nodes, "m1", "m2")
    tell(nodes, dev, "m1", "m2")
    assert found(nodes) == []


def test_addresses_of_services(nodes):
    give(nodes, "m1", "w1")
    for host in ("m1", "w1"):
        row = network_evidence.interface("kube-ipvs0")
        nodes.data(host, "network")["interfaces"].append(row)
    assert found(nodes) == []
    row = network_evidence.interface("kube-ipvs0")
    nodes.data("m2", "network")["interfaces"].append(row)  # which has it not: it is no Service's
    assert len(found(nodes)) == 1


@pytest.mark.parametrize(
    ("address", "network", "dev"),
    [
        ("172.17.0.1", "172.17.0.0/16", "docker0"),
        ("10.0.2.15", "10.0.2.0/24", "eth1"),  # the NAT of VirtualBox
        ("192.168.50.1", "192.168.50.0/24", "eth2"),
    ],
)
def test_a_network_in_which_no_node_is_known(nodes, address, network, dev):
    for host in ("m1", "m2", "w1"):
        nodes.data(host, "network")["routes"].append({"to": network, "dev": dev})
    give(nodes, "m1", "w1", address=address)
    give(nodes, "m2", address=address.rsplit(".", 1)[0] + ".77")
    assert found(nodes) == []


def test_networks_of_several_sites(nodes):
    give(nodes, "m1", "w1")
    outer = {"type": "ExternalIP", "address": "203.0.113.4"}
    node(nodes, "w1")["addresses"].append(outer)
    assert found(nodes) == []


def test_a_cloud_may_add_local_routes(nodes):
    give(nodes, "m1", "m2")
    nodes.data("m1", "kubelet")["argv"] = ["kubelet", "--cloud-provider=external"]
    assert found(nodes) == []
    tell(nodes, "eth0", "m1", "m2")
    assert len(found(nodes)) == 1


@pytest.mark.parametrize("address", ["198.51.100.7", "fd00::7"])
def test_the_address_of_the_api_counts_in_any_network(nodes, address):
    give(nodes, "m2", "w1", address=address)
    assert found(nodes) == []
    front(nodes, address)
    (one,) = found(nodes)
    assert (one.component, one.severity) == ("kube-apiserver", "critical")


def test_a_name_of_the_api_in_kubeadms_record(nodes):
    give(nodes, "m1", "m2", address="198.51.100.7")
    text = "clusterName: kubernetes\ncontrolPlaneEndpoint: {}:6443\n"
    for place, hits in (("api.example.org", 0), ("198.51.100.7", 1)):
        data = {"text": text.format(place)}
        nodes.api["collectors"]["kubeadm_config"] = {"status": "ok", "data": data}
        assert len(found(nodes)) == hits


@pytest.mark.parametrize(
    ("unit", "severity"), [("k3s.service", "warning"), ("k3s-agent.service", "critical")]
)
def test_which_machine_of_k3s_has_an_api_server(nodes, unit, severity):
    give(nodes, "m2", "w1")
    front(nodes)
    nodes.data("w1", "kubelet")["unit"] |= {"name": unit, "start_words": []}
    (one,) = found(nodes)
    assert one.severity == severity


def test_a_machine_whose_processes_are_not_known(nodes):
    give(nodes, "m2", "w1")
    front(nodes)
    nodes.documents["w1"]["collectors"]["instances"] = {"status": "denied", "data": None}
    (one,) = found(nodes)
    assert one.severity == "warning"
    assert "no API server runs" not in one.summary


def test_a_host_that_did_not_answer(nodes):
    give(nodes, "m1", "m2")
    nodes.documents["m2"]["status"] = "unreachable"
    assert found(nodes) == []


def test_an_address_is_named(nodes):
    give(nodes, "m2", "w1", address="192.0.2.99")
    give(nodes, "m2", "w1", address="192.0.2.100")
    (cluster,) = engine.evaluate_clusters([*nodes.documents.values(), nodes.api])[1]
    assert [row.address for row in doubled_addresses.find(cluster)] == ["192.0.2.100", "192.0.2.99"]
    row = doubled_addresses.named(cluster, "192.0.2.99")
    assert row is not None
    assert (row.address, [host.host for host in row.holders]) == ("192.0.2.99", ["m2", "w1"])
    assert doubled_addresses.named(cluster, "192.0.2.12") is None


def test_the_outer_address_of_a_node_that_has_it_not_counts_not(nodes):
    give(nodes, "m1", "w1")
    outer = {"type": "ExternalIP", "address": "203.0.113.4"}
    node(nodes, "m2")["addresses"].append(outer)
    assert len(found(nodes)) == 1
