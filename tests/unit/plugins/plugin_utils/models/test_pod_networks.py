# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks of pods: ranges, shares, and overlaps of them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import pod_networks
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.pod_networks import (
    Allocation,
)


@pytest.mark.parametrize(
    ("text", "mask", "rooms"),
    [
        ("10.244.0.0/16", 24, 256),
        ("198.51.100.0/24", 24, 1),
        ("198.51.100.0/25", 24, 0),
        ("2001:db8::/48", 64, 65536),
        ("2001:db8::/32", 64, 65536),  # more than the allocator has bits for
    ],
)
def test_shares_of_a_range(text, mask, rooms):
    found = pod_networks.network(text)
    allocation = Allocation("m1", 1, ((found, mask),))
    assert list(allocation.rooms()) == [(found, mask, rooms)]


@pytest.mark.parametrize("text", ["", "x", "10.0.0.0/99", "10.0.0.0/8,10.1.0.0/16"])
def test_what_is_no_network(text):
    assert pod_networks.network(text) is None


class View:
    created = None

    def __init__(self, name, *cidrs):
        self.name, self.pod_cidrs = name, cidrs


@pytest.mark.parametrize(
    ("rows", "pairs"),
    [
        ([("a", "10.1.0.0/24"), ("b", "10.1.1.0/24")], []),
        ([("a", "10.1.0.0/24"), ("b", "10.1.0.0/24")], [("b", "a")]),
        ([("a", "10.1.0.0/16"), ("b", "10.1.4.0/24"), ("c", "10.1.5.0/24")], [("b", "a")] * 2),
        ([("a", "10.1.0.0/24", "2001:db8::/64"), ("b", "10.1.1.0/24", "2001:db8:0:1::/64")], []),
        ([("a", "10.1.0.0/24", "10.1.0.0/24")], []),
        ([("a", "x"), ("b", "x")], []),
        ([("a",), ("b",)], []),
    ],
)
def test_nodes_with_one_network(rows, pairs):
    nodes = [View(*row) for row in rows]
    found = [(one.name, other.name) for one, other, _network in pod_networks.shared(nodes)]
    assert len(found) == len(pairs)
    assert {name for pair in found for name in pair} >= {name for pair in pairs for name in pair}
