# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes that throw away packets to pods of other nodes: a part of KM532."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support.api_nodes import node

OWN, OTHER = "10.244.16.0/21", "10.244.0.0/21"
FORMER = {"to": "10.244.0.0/24", "dev": "*", "kind": "blackhole"}
TUNNEL = {"to": OTHER, "dev": "flannel.1", "kind": ""}
CALICO = "projectcalico.org/IPv4Address"
FLANNEL = "flannel.alpha.coreos.com/public-ip"


def judged(world: Any) -> list[Any]:
    return list(world.judge(faults={"KM532"}).findings)


@pytest.fixture
def routed(world: Any) -> Any:
    """Return a world in which w1 has a route to the network of m1."""
    node(world, "w1")["pod_cidrs"] = [OWN]
    node(world, "m1")["pod_cidrs"] = [OTHER]
    for number, name in enumerate(("m2", "m3")):
        node(world, name)["pod_cidrs"] = [f"10.244.{32 + 8 * number}.0/21"]
    return world


def let(world: Any, *routes: dict[str, str]) -> None:
    """Let w1 have these routes."""
    answer = {"status": "ok", "data": {"routes": list(routes)}}
    world.documents["w1"]["collectors"]["network"] = answer


def test_a_blackhole_within_the_network_of_another_node(routed):
    let(routed, TUNNEL, FORMER)
    (found,) = judged(routed)
    assert (found.code, found.severity, found.node, found.host) == ("KM532", "warning", "w1", "w1")
    for words in ("m1", "blackhole", "10.244.0.0/24", OTHER):
        assert words in found.summary
    assert "ip route del blackhole 10.244.0.0/24" in found.remedy
    assert {proof.kind for proof in found.evidence} == {"api", "file"}


def test_a_route_of_an_older_release_of_the_collector(routed):
    let(routed, {"to": OTHER, "dev": "flannel.1"}, {"to": "10.244.0.0/24", "dev": "*"})
    (found,) = judged(routed)
    assert "blackhole" in found.summary


def test_an_unreachable_route_has_its_own_command(routed):
    let(routed, TUNNEL, {**FORMER, "kind": "unreachable"})
    (found,) = judged(routed)
    assert "unreachable route to 10.244.0.0/24" in found.summary
    assert "del blackhole" not in found.remedy


@pytest.mark.parametrize(
    "routes",
    [
        [TUNNEL],
        [FORMER],  # no route to the network as a whole: the plugin does not go by it
        [TUNNEL, {**FORMER, "to": OWN}],
        [TUNNEL, {**FORMER, "to": "10.244.16.0/24"}],  # a part of the own one
        [TUNNEL, {**FORMER, "to": OTHER}],
        [TUNNEL, {**FORMER, "to": "10.244.0.0/16"}],  # less specific
        [TUNNEL, {**FORMER, "to": "0.0.0.0/0", "kind": "unreachable"}],
        [TUNNEL, {**FORMER, "to": "10.245.0.0/24"}],
        [TUNNEL, {**FORMER, "to": "none"}],
        [TUNNEL, {"to": "10.244.0.0/24", "dev": "eth0", "kind": ""}],
    ],
)
def test_routes_that_take_nothing_of_others(routed, routes):
    let(routed, *routes)
    assert judged(routed) == []


def test_a_network_that_overlaps_with_the_own_one_is_told_as_that(routed):
    node(routed, "w1")["pod_cidrs"] = ["10.244.0.0/24"]
    let(routed, TUNNEL, FORMER)
    assert [found.severity for found in judged(routed)] == ["critical"]


@pytest.mark.parametrize(("annotations", "count"), [((CALICO,), 0), ((CALICO, FLANNEL), 1)])
def test_blocks_of_calico_are_parts_of_any_network(routed, annotations, count):
    node(routed, "w1")["plugin_addresses"] = dict.fromkeys(annotations, "10.0.0.100")
    let(routed, TUNNEL, {**FORMER, "to": "10.244.0.64/26"})
    found = [item for item in judged(routed) if "throws away" in item.summary]
    assert len(found) == count
