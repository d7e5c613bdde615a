# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes that lead nowhere, within a network to which another route leads. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..evidence.answers.node.network import Route
from ..evidence.document import one_line

BLACKHOLE = "blackhole"


@dataclass(frozen=True)
class DeadEnd:
    """A route that throws packets away, and the wider network that another route leads to."""

    kind: str
    to: str
    within: str


def find(routes: Sequence[Route] | None) -> Iterator[DeadEnd]:
    """Yield the dead ends of a host that another route, not the default one, would lead past."""
    networks = {_network(route.to) for route in routes or () if not route.is_dead_end}
    for route in routes or ():
        subnet = _network(route.to)
        if not route.is_dead_end or subnet is None or subnet in networks:
            continue
        wide = _wider(subnet, networks)
        if wide is not None:
            yield DeadEnd(one_line(route.kind or BLACKHOLE, 20), str(subnet), str(wide))


def _wider(
    subnet: ipaddress.IPv4Network, networks: set[ipaddress.IPv4Network | None]
) -> ipaddress.IPv4Network | None:
    """Return the smallest of these networks that a subnet is a part of."""
    for length in range(subnet.prefixlen - 1, 0, -1):
        wide = subnet.supernet(new_prefix=length)
        if wide in networks:
            return wide
    return None


def _network(text: str) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(text)
    except ValueError:
        return None
