# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses are replaced one to one, neighbours stay neighbours."""

from __future__ import annotations

import ipaddress
import random

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.bundle.anonymize import (
    addresses as anonymize_addresses,
)

ADDRESSES = st.lists(st.ip_addresses(v=4).map(str), min_size=1, max_size=40, unique=True)


@given(ADDRESSES, st.integers())
def test_addresses_one_to_one_neighbours_and_order(addresses, seed):
    change = anonymize_addresses.Addresses(addresses, random.Random(seed))
    new = {one: change.ipv4(one) for one in addresses}
    assert len(set(new.values())) == len(new)
    assert sorted(addresses, key=lambda one: new[one]) == sorted(addresses) or _mixed(addresses)
    for one in addresses:
        old, made = ipaddress.ip_address(one), ipaddress.ip_address(new[one])
        for kind in ("is_loopback", "is_multicast", "is_link_local", "is_unspecified"):
            assert getattr(old, kind) == getattr(made, kind)
        for other in addresses:
            for length in (1, 2, 3):
                assert (one.split(".")[:length] == other.split(".")[:length]) == (
                    new[one].split(".")[:length] == new[other].split(".")[:length]
                )


def _mixed(addresses):
    """Octets that stay (of special ranges) may change places with those that do not."""
    return any(
        one.split(".")[0] in ("0", "10", "100", "127", "169", "172", "192", "198", "203")
        or int(one.split(".")[0]) > 223
        for one in addresses
    )


@given(
    st.lists(st.integers(1, 254), min_size=1, max_size=60, unique=True),
    st.sampled_from(["10.0.0", "192.168.3", "172.20.0", "100.64.9", "84.7.0"]),
    st.integers(),
)
def test_hosts_named_by_addresses_of_one_network_keep_their_order(numbers, network, seed):
    addresses = [f"{network}.{number}" for number in numbers]
    change = anonymize_addresses.Addresses(addresses, random.Random(seed))
    assert [change.ipv4(one) for one in sorted(addresses)] == sorted(
        change.ipv4(one) for one in addresses
    )
    assert not set(addresses) & {change.ipv4(one) for one in addresses}
