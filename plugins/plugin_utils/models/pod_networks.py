# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The networks of pods: those that Nodes have, and the range that they are taken from. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..parsers import pflag
from .api_node import NodeView
from .cluster import Cluster, Host
from .control_plane import Process

MANAGER, API_SERVER = "kube-controller-manager", "kube-apiserver"
RANGE_ALLOCATOR = "RangeAllocator"
MASKS = {4: 24, 6: 64}  # of a Node's share, where no flag says another one
MOST_BITS = 16  # of the IPv6 allocator: it gives no more than 2^16 shares of a range

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Allocation:
    """What a controller manager gives to Nodes.

    ranges: of --cluster-cidr, with the bits of a Node's share
    """

    host: str
    pid: int
    ranges: tuple[tuple[IpNetwork, int], ...]

    def rooms(self) -> Iterator[tuple[IpNetwork, int, int]]:
        """Yield each range, the bits of a share, and how many Nodes it has room for."""
        for network, mask in self.ranges:
            bits = min(mask - network.prefixlen, MOST_BITS)
            rooms = 2**bits if bits >= 0 else 0
            yield network, mask, rooms


def network(text: str) -> IpNetwork | None:
    """Return a network, None for what is none."""
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return None


def networks(texts: Iterable[str]) -> list[IpNetwork]:
    """Return the networks in a list of texts."""
    return [subnet for text in texts if (subnet := network(text)) is not None]


def allocations(cluster: Cluster) -> list[Allocation]:
    """Return what each controller manager that runs gives to Nodes."""
    return [
        Allocation(host.host, process.pid, tuple(_ranges(process.argv)))
        for host, process in _processes(cluster, MANAGER)
        if _allocates(process.argv)
    ]


def _processes(cluster: Cluster, component: str) -> Iterator[tuple[Host, Process]]:
    """Yield the processes of a component, with their hosts."""
    for host in cluster.hosts:
        if host.control_plane is not None:
            for process in host.control_plane.processes_of(component):
                yield host, process


def _allocates(argv: Sequence[str]) -> bool:
    """Tell whether a controller manager gives Nodes shares of its own range."""
    use = pflag.bool_flag(argv, "allocate-node-cidrs")
    kind = pflag.string_flag(argv, "cidr-allocator-type") or RANGE_ALLOCATOR
    return use is not None and use.value is True and kind == RANGE_ALLOCATOR


def _ranges(argv: Sequence[str]) -> Iterator[tuple[IpNetwork, int]]:
    for subnet in networks((pflag.string_flag(argv, "cluster-cidr") or "").split(",")):
        texts = (
            pflag.string_flag(argv, f"node-cidr-mask-size-ipv{subnet.version}"),
            pflag.string_flag(argv, "node-cidr-mask-size"),
        )
        values = [int(text) for text in texts if text and text.isdecimal() and len(text) < 4]
        # 0 stands for the default
        mask = next(filter(None, values), MASKS[subnet.version])
        if mask <= subnet.max_prefixlen:
            yield subnet, mask


def service_ranges(cluster: Cluster) -> list[tuple[str, IpNetwork]]:
    """Return (host, range) of the Services, as API servers that run have it."""
    return [
        (host.host, subnet)
        for host, process in _processes(cluster, API_SERVER)
        for subnet in networks(
            (pflag.string_flag(process.argv, "service-cluster-ip-range") or "").split(",")
        )
    ]


def shared(views: Sequence[NodeView]) -> Iterator[tuple[NodeView, NodeView, IpNetwork]]:
    """Yield pairs of Nodes whose networks overlap, the newer one first, with the smaller one."""
    rows = [
        (subnet, place)
        for place, view in enumerate(views)
        for subnet in set(networks(view.pod_cidrs or ()))
    ]
    wide: tuple[IpNetwork, int] | None = None  # the one of those before that reaches farthest
    for subnet, place in sorted(rows, key=lambda row: _order(row[0])):
        if wide is None or wide[0].version != subnet.version or not wide[0].overlaps(subnet):
            wide = subnet, place
        elif wide[1] != place:
            newer, older = sorted((views[wide[1]], views[place]), key=_age, reverse=True)
            yield newer, older, subnet


def _order(subnet: IpNetwork) -> tuple[int, int, int]:
    return subnet.version, int(subnet.network_address), subnet.prefixlen


def _age(view: NodeView) -> tuple[float, str]:
    """Return what orders Nodes by their age: the oldest first."""
    created = 0.0
    if view.created is not None:
        created = view.created.timestamp()
    return created, view.name
