# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What flannel wrote into Nodes and is not so: a part of KM532."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support.api_nodes import node

ADDRESS = "flannel.alpha.coreos.com/public-ip"
OLD, NEW = "e6:7c:02:8e:e8:7e", "ee:8d:cf:69:b3:7c"


def judged(world: Any) -> list[Any]:
    return list(world.judge(faults={"KM532"}).findings)


def tunnel(world: Any, told: str | None, present: str | None, name: str = "flannel.1") -> None:
    """Let the Node of w1 tell of one MAC address, and its interface have another."""
    if told is not None:
        node(world, "w1")["vtep"] = {"vni": 1, "mac": told}
    row = {"name": name, "count": 1, "kind": "vxlan", "mtu": 1450, "mac": present}
    answer = {"status": "ok", "data": {"interfaces": [row]}}
    world.documents["w1"]["collectors"]["network"] = answer


def test_a_tunnel_whose_address_was_changed(world):
    tunnel(world, OLD, NEW)
    (found,) = judged(world)
    assert (found.code, found.severity, found.node, found.host) == ("KM532", "critical", "w1", "w1")
    assert OLD in found.summary
    assert NEW in found.summary
    assert "MACAddressPolicy" in found.remedy
    assert {proof.kind for proof in found.evidence} == {"api", "file"}


@pytest.mark.parametrize(
    ("told", "present", "name"),
    [
        (OLD, OLD, "flannel.1"),
        (OLD, OLD.upper(), "flannel.1"),
        (OLD, None, "flannel.1"),  # an older release collected
        (OLD, "", "flannel.1"),
        (None, NEW, "flannel.1"),
        (OLD, NEW, "flannel.4096"),  # of a former backend
        (OLD, NEW, "vxlan.calico"),
    ],
)
def test_a_tunnel_that_is_as_its_node_tells(world, told, present, name):
    tunnel(world, told, present, name)
    assert judged(world) == []


def test_nodes_that_flannel_reaches_by_one_address(world):
    for name in ("m1", "w1"):
        node(world, name)["plugin_addresses"] = {ADDRESS: "10.0.2.15"}
    node(world, "m2")["plugin_addresses"] = {ADDRESS: "10.0.0.2"}
    (found,) = judged(world)
    assert found.severity == "critical"
    for words in ("10.0.2.15", "m1", "w1"):
        assert words in found.summary
    assert "m2" not in found.summary
    assert "--iface" in found.remedy


def test_nodes_with_addresses_of_their_own(world):
    for number, name in enumerate(("m1", "m2", "m3", "w1")):
        node(world, name)["plugin_addresses"] = {ADDRESS: f"10.0.0.{number + 1}"}
    assert judged(world) == []


def test_the_former_node_of_a_machine_that_was_renamed(world):
    for name in ("m1", "w1"):
        node(world, name)["plugin_addresses"] = {ADDRESS: "10.0.0.2"}
    node(world, "w1")["ready"] = "Unknown"
    assert judged(world) == []
