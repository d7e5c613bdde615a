# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes that lead nowhere within networks that are reached."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    network,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import dead_ends

TUNNEL = network.Route("10.244.0.0/21", "flannel.1")


def found(*routes):
    return [(row.kind, row.to, row.within) for row in dead_ends.find(routes)]


@pytest.mark.parametrize(("kind", "shown"), [("blackhole", "blackhole"), ("", "blackhole")])
def test_a_part_of_a_network_is_thrown_away(kind, shown):
    route = network.Route("10.244.1.0/24", "*", kind)
    assert found(TUNNEL, route) == [(shown, "10.244.1.0/24", "10.244.0.0/21")]


def test_the_smallest_network_counts():
    wide = network.Route("10.244.0.0/16", "eth0")
    route = network.Route("10.244.1.0/24", "*", "unreachable")
    assert found(wide, TUNNEL, route) == [("unreachable", "10.244.1.0/24", "10.244.0.0/21")]


@pytest.mark.parametrize("to", ["10.244.0.0/21", "10.244.0.0/16", "0.0.0.0/0", "10.0.0.0/24", "x"])
def test_no_part_of_a_network(to):
    default = network.Route("0.0.0.0/0", "eth0")
    assert found(default, TUNNEL, network.Route(to, "*", "blackhole")) == []


def test_a_network_to_which_another_route_leads_too_is_no_dead_end():
    own = network.Route("10.244.1.0/24", "cni0")
    assert found(TUNNEL, own, network.Route("10.244.1.0/24", "*", "blackhole")) == []


def test_no_routes_are_known():
    assert list(dead_ends.find(None)) == []
