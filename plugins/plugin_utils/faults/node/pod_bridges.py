# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find one and the same address of the pods' network on two machines: a part of KM532.

Each machine has an address of its own there, on the bridge or the tunnel of its network plugin.
What each machine may have alike, such as the bridge of Docker, the address of a DNS cache or
addresses of Services, lies in no network of pods.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from ...models import pod_networks as model
from ...models.api_node import NodeView, and_others
from ...models.cluster import Cluster, Host
from ...models.host_network import IPVS
from ...models.pod_networks import IpNetwork
from ...models.result import EvidenceRef
from ..base import Detection
from . import wording

WEAVE = "weave"
# Bridges and tunnels that have the machine's own address of the pods' network.
BRIDGES = (WEAVE, "cni0", "cbr0", "kube-bridge", "flannel.1", "cilium_host", "antrea-gw0", "ovn0")
# The range of Weave without a setting; no Node tells of it.
RANGE_OF_WEAVE = ipaddress.ip_network("10.32.0.0/12")
MAX_HITS, SHOWN = 10, 3


def hits(cluster: Cluster, nodes: Sequence[NodeView]) -> Iterator[Detection]:
    """Yield the addresses of the pods' network that two machines have."""
    ranges = _ranges(cluster, nodes)
    by_address: dict[str, list[NodeView]] = {}
    for view in nodes:
        for address in _addresses(view, ranges):
            by_address.setdefault(address, []).append(view)
    twice = [subnet for _newer, _older, subnet in model.shared(nodes)]  # told of already
    pairs = [(address, _machines(views)) for address, views in sorted(by_address.items())]
    pairs = [pair for pair in pairs if len(pair[1]) > 1 and not _is_within(pair[0], twice)]
    for address, views in pairs[:MAX_HITS]:
        yield _hit(address, views)


def _ranges(cluster: Cluster, nodes: Sequence[NodeView]) -> list[IpNetwork]:
    """Return the networks of pods, as Nodes and controller managers tell."""
    subnets = {subnet for view in nodes for subnet in model.networks(view.pod_cidrs or ())}
    subnets.update(subnet for item in model.allocations(cluster) for subnet, _mask in item.ranges)
    return sorted(subnets, key=str)


def _addresses(view: NodeView, ranges: Sequence[IpNetwork]) -> Iterator[str]:
    """Yield the addresses of a machine that lie in the network of pods."""
    host = view.host
    # kube-proxy gives kube-ipvs0 of each machine the addresses of Services, of whatever range.
    if host is None or not _bridges(host) or host.network.has(IPVS):
        return
    if WEAVE in _bridges(host):
        ranges = [*ranges, RANGE_OF_WEAVE]
    for address in host.identity.addresses or ():
        if address not in view.internal and _is_within(address, ranges):
            yield address


def _bridges(host: Host) -> list[str]:
    return [name for name in BRIDGES if host.network.has(name)]


def _is_within(address: str, ranges: Sequence[IpNetwork]) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(parsed in subnet for subnet in ranges)


def _machines(views: Sequence[NodeView]) -> list[NodeView]:
    """Return the Nodes of different machines: the inventory may have one of them twice."""
    machines: dict[frozenset[str], NodeView] = {}
    for view in views:
        if view.host is not None:
            machines.setdefault(view.host.identity.addresses or frozenset(), view)
    return list(machines.values())


def _hit(address: str, views: Sequence[NodeView]) -> Detection:
    names = and_others([view.name for view in views], SHOWN)
    bridges = _common(views)
    place = ""
    if bridges:
        place = f" on {' or '.join(bridges)}"
    newest, newest_clause = max(views, key=lambda view: str(view.created or "")), ""
    if len({view.created for view in views}) == len(views):
        newest_clause = f" ({newest.name} is the newest Node of them)"
    advice = (
        "drain it, stop its kubelet, remove the interface and the files of the former cluster (ip"
        " link delete NAME; rm -r /var/lib/cni, and the folder of the plugin's own data), and boot"
        " it, so that the plugin gives it an address of its own"
    )
    if WEAVE in bridges:
        advice = (
            "drain it, take its peer out of Weave (weave reset, or on another node weave rmpeer"
            " NAME and kubectl -n kube-system edit configmap weave-net), remove the bridge and"
            " Weave's data there (ip link delete weave; rm -r /var/lib/weave), and boot it, so that"
            " Weave gives it a range of its own"
        )
    return Detection(
        f"{names} have one and the same address {address} of the network of pods{place}: each"
        " machine has to have its own, and what is sent to pods of one of them is lost or comes to"
        " the other. One of them may have kept the interface of a cluster that it was in before,"
        " or is a copy of the other",
        tuple(
            EvidenceRef(
                "file", wording.host_name(view), path="/proc/net/fib_trie", text=f"{address} LOCAL"
            )
            for view in views[:SHOWN]
        ),
        "ip -4 -brief address on both shows it. Where one came from another"
        f" cluster{newest_clause}, {advice}",
        host=wording.host_name(newest),
        node=newest.name,
        component=address,
        severity="critical",
    )


def _common(views: Sequence[NodeView]) -> list[str]:
    """Return the bridges that all of these machines have."""
    hosts = [view.host for view in views if view.host is not None]
    return [name for name in BRIDGES if all(host.network.has(name) for host in hosts)]
