# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks that Nodes have for their pods: KM532. Tables."""

from __future__ import annotations

import pytest

from tests.unit.support.api_nodes import node

NAMES = ("m1", "m2", "m3", "w1")
FLAGS = ("--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/16")
CALICO = "projectcalico.org/IPv4Address"


@pytest.fixture
def given(world):
    """Return a world whose controller managers gave each Node a network."""
    for number, name in enumerate(NAMES):
        node(world, name).update(
            pod_cidrs=[f"10.244.{number}.0/24"],
            created="2027-01-14T08:00:00Z",
            addresses=[{"type": "InternalIP", "address": f"10.0.0.{number + 1}"}],
        )
    allocate(world, *FLAGS)
    return world


def allocate(world, *flags):
    for name in ("m1", "m2", "m3"):
        world.run(name, "kube-controller-manager", "--leader-elect=true", *flags, elect=True)


def judged(world):
    result = world.judge(faults={"KM532"})
    verdicts = [item.verdict for item in result.verdicts]
    return (verdicts or ["not judged"])[0], list(result.findings)


def test_each_node_has_its_own(given):
    assert judged(given) == ("clear", [])


def test_two_nodes_with_one_network(given):
    node(given, "w1").update(pod_cidrs=["10.244.1.0/24"], created="2027-01-15T07:00:00Z")
    verdict, (found,) = judged(given)
    assert (verdict, found.severity, found.node) == ("present", "critical", "w1")
    assert "m2" in found.summary
    assert "127792" in found.remedy


def test_a_plugin_with_networks_of_its_own_suffers_less(given):
    node(given, "w1")["pod_cidrs"] = ["10.244.1.0/24"]
    given.data("w1", "kubelet")["cni"] = {
        "folder": "/etc/cni/net.d",
        "files": [{"name": "10-calico.conflist", "size": 300}],
        "error": None,
    }
    _verdict, (found,) = judged(given)
    assert found.severity == "warning"


@pytest.mark.parametrize(
    ("flags", "verdict"),
    [
        (("--cluster-cidr=198.51.100.0/24",), "present"),
        (("--cluster-cidr=198.51.100.0/24", "--node-cidr-mask-size=26"), "clear"),
        (("--cluster-cidr=198.51.100.0/24", "--node-cidr-mask-size-ipv4=25"), "present"),
        (("--cluster-cidr=198.51.100.0/22",), "clear"),
        (("--cluster-cidr=198.51.100.0/22,2001:db8::/63",), "present"),
        (("--cluster-cidr=198.51.100.0/22,2001:db8::/48",), "clear"),
        (("--cluster-cidr=x",), "clear"),
    ],
)
def test_a_range_with_room_for_fewer_nodes(given, flags, verdict):
    for number, name in enumerate(NAMES):
        node(given, name)["pod_cidrs"] = [f"203.0.113.{16 * number}/28"]
    allocate(given, FLAGS[0], *flags)
    assert judged(given)[0] == verdict


@pytest.mark.parametrize(
    "flags", [("--allocate-node-cidrs=false",), (FLAGS[0], "--cidr-allocator-type=CloudAllocator")]
)
def test_a_range_that_nobody_gives_from(given, flags):
    allocate(given, *flags, "--cluster-cidr=198.51.100.0/24")
    assert judged(given) == ("clear", [])


def test_the_small_range_names_the_nodes_without(given):
    allocate(given, FLAGS[0], "--cluster-cidr=198.51.100.0/24")
    node(given, "w1")["pod_cidrs"] = []
    _verdict, (found,) = judged(given)
    assert "w1" in found.summary
    assert (found.component, found.severity) == ("kube-controller-manager", "warning")


def test_a_node_without_a_network(given):
    node(given, "w1")["pod_cidrs"] = []
    _verdict, (found,) = judged(given)
    assert (found.node, found.severity, found.component) == ("w1", "warning", "podCIDR")


def test_a_node_that_joined_a_moment_ago(given):
    node(given, "w1").update(pod_cidrs=[], created="2027-01-15T07:59:30Z")
    assert judged(given) == ("clear", [])


def test_a_cluster_that_gives_none(given):
    allocate(given)
    for name in NAMES:
        node(given, name)["pod_cidrs"] = []
    assert judged(given) == ("clear", [])


def test_older_evidence_is_not_judged(given):
    for name in NAMES:
        del node(given, name)["pod_cidrs"]
    assert judged(given) == ("not judged", [])


def test_networks_that_machines_have(given):
    node(given, "w1")["addresses"] = [{"type": "InternalIP", "address": "10.244.9.5"}]
    _verdict, (found,) = judged(given)
    assert (found.component, found.node) == ("InternalIP", "w1")


def test_networks_that_services_have(given):
    for item in given.data("m1", "instances")["processes"]:
        if item["component"] == "kube-apiserver":
            item["argv"].append("--service-cluster-ip-range=10.244.0.0/20")
    _verdict, (found,) = judged(given)
    assert (found.component, found.host) == ("kube-apiserver", "m1")


@pytest.mark.parametrize(
    ("addresses", "severity"),
    [
        (["10.0.0.1/24", "10.0.0.2/24", "10.0.0.3/24", "10.0.0.4/24"], None),
        (["192.0.2.1/24", "192.0.2.2/24", "192.0.2.3/24", "192.0.2.4/24"], "info"),
        (["10.0.0.1/24", "10.0.0.2/24", "10.0.0.3/24", "192.0.2.4/24"], "warning"),
        (["", "", "", ""], None),
    ],
)
def test_addresses_that_calico_found(given, addresses, severity):
    for name, address in zip(NAMES, addresses, strict=True):
        node(given, name)["plugin_addresses"] = {CALICO: address}
    _verdict, found = judged(given)
    assert [item.severity for item in found] == [severity] * bool(severity)


def test_the_api_that_does_not_answer_is_unknown(given):
    given.api["collectors"]["nodes"] = {"status": "timeout", "data": None}
    assert judged(given)[0] == "unknown"
