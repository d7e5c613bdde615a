# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of kube-router's network policies that nothing keeps up to date, by KM534."""

from __future__ import annotations

from typing import Any

import pytest

PLACE = "/etc/rancher/k3s/config.yaml:3"
DOUBLED = {"chain": "KUBE-ROUTER-INPUT", "rule": "-d 10.96.0.0/12 -j RETURN", "count": 3}


def chains(world: Any, host: str = "w1", off: str = "", router: bool = False, **more: Any) -> None:
    row = {"backend": "nft", "linked": ["INPUT", "FORWARD"], "pods": 4, "policies": 2}
    row |= {"rules": 9, "doubled": [], **more}
    answer = {"router": router, "off": off, "backends": [row]}
    record = world.documents[host]["collectors"]["network"]
    if record.get("data") is None:
        record.update(status="ok", data={})
    record["data"]["policy_chains"] = answer


def found(world: Any) -> list[Any]:
    rows = world.judge(faults={"KM534"}).findings
    return [row for row in rows if row.component == "network policy"]


def test_chains_of_a_controller_that_is_switched_off(world):
    chains(world, off=PLACE)
    (hit,) = found(world)
    assert (hit.host, hit.severity) == ("w1", "warning")
    for word in ("disable-network-policy", PLACE, "KUBE-ROUTER-*", "INPUT, FORWARD"):
        assert word in hit.summary
    assert "iptables-nft-save" in hit.remedy


def test_servers_say_it_for_their_agents(world):
    chains(world, "m1", off=PLACE, linked=[])
    chains(world)
    (hit,) = found(world)
    assert (hit.host, PLACE in hit.summary) == ("w1", True)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"off": PLACE, "linked": []},  # nothing leads to them
        {"off": PLACE, "router": True},  # kube-router itself makes them
    ],
)
def test_chains_that_do_their_work(world, more):
    chains(world, **more)
    assert found(world) == []


def test_rules_that_are_there_several_times(world):
    chains(world, router=True, doubled=[DOUBLED])
    (hit,) = found(world)
    assert "KUBE-ROUTER-INPUT of iptables (nft) has the same rules up to 3 times" in hit.summary
    assert DOUBLED["rule"] in hit.evidence[0].text


def test_without_the_field_nothing_is_told(world):
    chains(world)
    world.data("w1", "network")["policy_chains"] = None
    assert found(world) == []


def test_kube_router_on_another_node_may_be_what_makes_them(world):
    chains(world, "m1", router=True, linked=[])
    chains(world, off=PLACE)
    assert found(world) == []


def test_of_many_rules_and_chains_the_first_are_shown(world):
    rows = [{**DOUBLED, "rule": f"-d 10.96.0.{number} -j RETURN"} for number in range(5)]
    chains(world, router=True, doubled=rows)
    (hit,) = found(world)
    assert len(hit.evidence) == 3
    chains(world, off=PLACE, linked=["INPUT", "FORWARD", "OUTPUT", "OTHER"])
    (hit,) = found(world)
    assert "INPUT, FORWARD, OUTPUT, with" in hit.summary


def test_nodes_without_the_field_beside_one_that_has_it(world):
    chains(world, "m1", off="")
    chains(world, off=PLACE)
    world.data("m1", "network")["policy_chains"]["off"] = None
    (hit,) = [row for row in found(world) if row.host == "w1"]
    assert PLACE in hit.summary
