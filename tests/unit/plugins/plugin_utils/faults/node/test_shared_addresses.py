# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of Services for which each node answers ARP, for KM534."""

from __future__ import annotations

import pytest

from tests.unit.support import network_evidence
from tests.unit.support.network_evidence import interface


def shares(
    world, *hosts, arp=0, addresses=("192.0.2.200",), dev="eth0", ipvs=True, to="", other=None
):
    """Let hosts have these addresses beside their own of 192.0.2.0/24, with ipvs."""
    for number, host in enumerate(hosts, 11):
        data = network_evidence.network(world, host)
        data["arp_ignore"] = {dev: arp}
        data["routes"].append({"to": to or "192.0.2.0/24", "dev": "eth0"})
        if other is not None:
            data["routes"].append(other)
            data["arp_ignore"][other["dev"]] = 0
        data["interfaces"].append(interface("kube-ipvs0" if ipvs else "eth1"))
        own = f"192.0.2.{number}"
        world.data(host, "system")["addresses"] = [own, "10.96.0.1", "x", *addresses]


@pytest.mark.parametrize(
    ("hosts", "more", "is_present"),
    [
        (("m1", "w1"), {}, True),
        (("m1", "w1"), {"arp": 1}, False),
        # another program announces what is of no network of the nodes
        (("m1", "w1"), {"addresses": ("198.51.100.7",)}, False),
        (("m1", "w1"), {"addresses": ()}, False),
        (("w1",), {}, False),
        # a link of another network, and networks that are none
        (("m1", "w1"), {"dev": "eth2"}, False),
        (("m1", "w1"), {"to": "192.0.2.200/32"}, False),
        (("m1", "w1"), {"to": "x"}, False),
        (("m1", "w1"), {"ipvs": False}, False),
    ],
)
def test_each_node_answers_for_an_address_of_a_service(world, hosts, more, is_present):
    shares(world, *hosts, **more)
    found = world.judge(faults={"KM534"}).findings
    assert [item.component for item in found] == ["kube-ipvs0"] * is_present
    for item in found:
        assert "without strictARP on m1, w1" in item.summary
        assert "answers ARP for 192.0.2.200" in item.summary
        assert "kube_proxy_strict_arp" in item.remedy
        assert (item.host, item.severity) == (None, "warning")
        assert len(item.evidence) == 2


@pytest.mark.parametrize(
    ("address", "network", "dev"),
    [
        # the bridge of Docker or libvirt
        ("172.17.0.1", "172.17.0.0/16", "docker0"),
        # the node's cache of DNS, with the route that old network scripts add
        ("169.254.25.10", "169.254.0.0/16", "eth0"),
    ],
)
def test_a_network_of_each_node_alone_is_not_shared(world, address, network, dev):
    other = {"to": network, "dev": dev}
    shares(world, "m1", "w1", addresses=(address,), other=other)
    assert not world.judge(faults={"KM534"}).findings


@pytest.mark.parametrize(("cloud", "severity"), [("external", "info"), ("", "warning")])
def test_the_network_of_a_cloud_may_answer_itself(world, cloud, severity):
    shares(world, "m1", "w1")
    for host in ("m1", "w1"):
        argv = ["kubelet", *([f"--cloud-provider={cloud}"] if cloud else [])]
        world.data(host, "kubelet")["argv"] = argv
    (found,) = world.judge(faults={"KM534"}).findings
    assert found.severity == severity
