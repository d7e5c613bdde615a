# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of a node beside its network plugin."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    network,
)
from tests.unit.support import answers, network_evidence


def test_resolvers_interfaces_and_tables(world):
    raw = network_evidence.network(world, networkd=network_evidence.service())
    answer = answers.typed(network.Network, raw)
    assert answer.resolvers[0].nameservers == ("192.0.2.53",)
    assert (answer.interfaces[0].name, answer.interfaces[0].rp_filters) == ("eth0", (0,))
    assert answer.conntrack.max == 131072
    assert answer.networkd.active is True


def test_what_is_not_known_is_none(world):
    raw = network_evidence.network(world)
    for path in (("routes",), ("conntrack", "max"), ("iptables", "tables"), ("rp_filter",)):
        assert answers.changed(network.Network, raw, *path, value=None).malformed == ()


def test_a_value_of_another_type_is_refused(world):
    raw = network_evidence.network(world)
    decoded = answers.changed(network.Network, raw, "interfaces", 0, "mtu", value="1500")
    assert decoded.malformed == ("interfaces[0].mtu",)
