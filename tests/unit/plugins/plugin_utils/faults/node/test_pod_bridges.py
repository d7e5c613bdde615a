# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One and the same address of the pods' network on two machines: a part of KM532."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support.api_nodes import node
from tests.unit.support.network_evidence import interface, network

POD = "10.244.192.1"


@pytest.fixture
def given(world):
    """Return a world with a network of pods, and two machines with a bridge of Weave."""
    for name in ("m1", "m2", "m3"):
        flags = ("--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/16")
        world.run(name, "kube-controller-manager", "--leader-elect=true", *flags, elect=True)
    for number, name in enumerate(("m1", "m2", "m3", "w1")):
        node(world, name).update(pod_cidrs=[f"10.244.{number}.0/24"])
    bridges(world, "weave")
    return world


def bridges(world: Any, bridge: str) -> None:
    for name in ("m1", "w1"):
        network(world, name, interfaces=[interface("eth0"), interface(bridge)])


def share(world: Any, address: str) -> None:
    for name in ("m1", "w1"):
        world.data(name, "system")["addresses"].append(address)


def judged(world: Any) -> list[Any]:
    return list(world.judge(faults={"KM532"}).findings)


@pytest.mark.parametrize(
    ("bridge", "address", "words"),
    [
        ("weave", POD, "/var/lib/weave"),
        ("weave", "10.40.0.1", "/var/lib/weave"),  # of Weave's own range
        ("cni0", POD, "/var/lib/cni"),
        ("flannel.1", POD, "/var/lib/cni"),
    ],
)
def test_a_bridge_that_a_machine_kept_of_another_cluster(given, bridge, address, words):
    bridges(given, bridge)
    share(given, address)
    node(given, "w1")["created"] = "2027-01-15T07:00:00Z"
    node(given, "m1")["created"] = "2027-01-14T07:00:00Z"
    (found,) = judged(given)
    assert (found.severity, found.component, found.node) == ("critical", address, "w1")
    assert f"m1, w1 have one and the same address {address}" in found.summary
    assert bridge in found.summary
    assert words in found.remedy
    assert "w1 is the newest" in found.remedy
    assert {proof.host for proof in found.evidence} == {"m1", "w1"}


@pytest.mark.parametrize(
    ("bridge", "address"),
    [
        ("weave", "172.17.0.1"),  # the bridge of Docker
        ("weave", "169.254.20.10"),  # a cache of DNS
        ("weave", "192.0.2.50"),  # a virtual address
        ("cni0", "10.40.0.1"),  # Weave is not there
        ("docker0", POD),
    ],
)
def test_what_machines_may_have_alike(given, bridge, address):
    bridges(given, bridge)
    share(given, address)
    assert judged(given) == []


def test_a_machine_that_the_inventory_has_twice(given):
    share(given, POD)
    given.data("w1", "system")["addresses"] = given.data("m1", "system")["addresses"]
    assert judged(given) == []


def test_which_node_is_newer_may_not_be_known(given):
    share(given, POD)
    for name in ("m1", "w1"):
        node(given, name)["created"] = "2027-01-15T07:00:00Z"
    (found,) = judged(given)
    assert "newest" not in found.remedy


def test_two_nodes_with_one_network_are_told_once(given):
    share(given, "10.244.3.1")
    node(given, "m1")["pod_cidrs"] = ["10.244.3.0/24"]
    (found,) = judged(given)
    assert "podCIDR" in found.summary


def test_addresses_of_services_on_each_machine(given):
    rows = [interface("eth0"), interface("cni0"), interface("kube-ipvs0")]
    for name in ("m1", "w1"):
        network(given, name, interfaces=rows)
    share(given, POD)
    assert judged(given) == []
