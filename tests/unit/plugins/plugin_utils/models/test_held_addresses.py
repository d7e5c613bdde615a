# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which addresses a host has at links of its own."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import held_addresses
from tests.unit.support.network_evidence import interface

NODES = {"to": "192.0.2.0/24", "dev": "eth0"}


def extract(own: list[str] | None, **network: Any) -> held_addresses.HeldAddresses:
    answers = {"system": {"addresses": own}, "network": network}
    records = {name: {"status": "ok", "data": data} for name, data in answers.items()}
    return held_addresses.extract({"host": "w1", "collectors": records})


def test_without_an_answer():
    assert held_addresses.extract({"host": "w1", "collectors": {}}) == held_addresses.NONE
    assert extract(None).own == {}


def test_addresses_that_each_machine_may_have_are_left_out():
    addresses = ["192.0.2.11", "127.0.0.1", "169.254.20.10", "fe80::1", "0.0.0.0", "x", "fd00::A"]
    found = extract(addresses, rp_filter=0)
    assert found.own == {"192.0.2.11": "", "fd00::a": ""}
    assert not found.is_exact


@pytest.mark.parametrize(
    "dev",
    ["lo", "docker0", "cni0", "virbr0", "br-0123456789ab", "kube-ipvs0", "kube-dummy-if"]
    + ["flannel.1", "nodelocaldns", "cilium_host", "dummy0", "vxlan.calico"],
)
def test_links_of_pods_services_and_anycast(dev):
    rows = [{"address": "192.0.2.11", "dev": "eth0"}, {"address": "192.0.2.100", "dev": dev}]
    assert extract(["192.0.2.11", "192.0.2.100"], addresses=rows).own == {"192.0.2.11": "eth0"}


@pytest.mark.parametrize("dev", ["eth0", "bond0.20", "br-ex", "mgmt-br", "vip-4b6f8081", "wg0", ""])
def test_links_of_the_machine(dev):
    rows = [{"address": "192.0.2.100", "dev": dev}]
    found = extract(["192.0.2.100"], addresses=rows)
    assert found.own == {"192.0.2.100": dev}
    assert found.is_exact


def test_a_local_route_of_a_cloud_is_no_address():
    rows = [{"address": "192.0.2.11", "dev": "eth0"}]
    assert "192.0.2.100" not in extract(["192.0.2.11", "192.0.2.100"], addresses=rows).own


@pytest.mark.parametrize(
    ("route", "networks"),
    [
        (NODES, ("192.0.2.0/24",)),
        (NODES | {"dev": "docker0"}, ()),
        (NODES | {"kind": "blackhole"}, ()),
        (NODES | {"to": "0.0.0.0/0"}, ()),
        (NODES | {"to": "192.0.2.11/32"}, ()),
        (NODES | {"to": "198.51.100.0/24"}, ()),  # without an address of the host
        (NODES | {"to": "x"}, ()),
    ],
)
def test_networks_of_the_host(route, networks):
    assert extract(["192.0.2.11", "fd00::1"], routes=[route]).networks == networks


@pytest.mark.parametrize(
    ("links", "vip_link"),
    [
        ([("vip-4b6f8081", "macvlan")], "vip-4b6f8081"),
        ([("vip-4b6f8081", "")], ""),
        ([("macvtap0", "macvlan")], ""),
        ([("vip-1", "macvlan"), ("vip-2", "macvlan")], ""),  # which one is not known
    ],
)
def test_the_macvlan_of_kube_vip(links, vip_link):
    rows = [interface(name, kind=kind) for name, kind in links]
    assert extract(["192.0.2.11"], interfaces=rows).vip_link == vip_link


@pytest.mark.parametrize(("name", "has"), [("kube-ipvs0", True), ("kube-bridge", False)])
def test_interfaces_of_services(name, has):
    assert extract([], interfaces=[interface(name)]).has_services is has


def test_no_more_networks_than_a_few():
    addresses = [f"10.0.{number}.1" for number in range(20)]
    routes = [{"to": f"10.0.{number}.0/24", "dev": "eth0"} for number in range(20)]
    found = extract(addresses, routes=routes)
    assert len(found.networks) == held_addresses.MAX_NETWORKS


@pytest.mark.parametrize(
    ("to", "count"), [("192.0.2.10/30", 0), ("192.0.2.8/30", 1), ("192.0.2.10/31", 0)]
)
def test_a_network_of_two_machines_is_none_of_nodes(to, count):
    assert len(extract(["192.0.2.11"], routes=[NODES | {"to": to}]).networks) == count
