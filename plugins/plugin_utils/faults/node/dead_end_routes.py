# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find routes of a node that throw away packets to pods of another: a part of KM532.

flannel adds a blackhole route for the network of its own node, and leaves it when the Node gets
another one. It is more specific than the route to a larger network that has these addresses later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...models import pod_networks as model
from ...models.api_node import NodeView
from ...models.cluster import Cluster
from ...models.dead_ends import BLACKHOLE, DeadEnd
from ...models.result import EvidenceRef
from ..base import Detection
from . import wording

# Calico's own blocks of addresses are parts of any Node's podCIDR, and have blackhole routes. With
# Canal a Node has annotations of both.
CALICO = "projectcalico.org/IPv4Address"
FLANNEL = "flannel.alpha.coreos.com/public-ip"
MAX_HITS = 10


def hits(cluster: Cluster, nodes: Sequence[NodeView]) -> Iterator[Detection]:
    """Yield the first routes of nodes that take the packets for pods of other nodes."""
    owners = {
        str(subnet): view for view in nodes for subnet in model.networks(view.pod_cidrs or ())
    }
    rows = [(view, route) for view in nodes for route in _routes(view)]
    hiding = [
        (view, route, owners[route.within])
        for view, route in rows
        if route.to not in owners and owners.get(route.within) not in (None, view)
    ]
    for view, route, owner in hiding[:MAX_HITS]:
        yield _hit(cluster, view, route, owner)


def _routes(view: NodeView) -> tuple[DeadEnd, ...]:
    """Return the dead ends of a node whose network plugin goes by the networks of Nodes."""
    plugins = view.plugin_addresses or {}
    if view.host is None or (CALICO in plugins and FLANNEL not in plugins):
        return ()
    return view.host.network.dead_ends


def _hit(cluster: Cluster, view: NodeView, route: DeadEnd, owner: NodeView) -> Detection:
    remedy = f"ip route del {route.kind} {route.to}"
    if route.kind != BLACKHOLE:
        remedy = f"ip route show {route.to} has its kind: ip route del KIND {route.to}"
    return Detection(
        f"{view.name} throws away packets to pods of {owner.name}: its {route.kind} route to"
        f" {route.to} is more specific than the route to the network of {owner.name},"
        f" {route.within}, which has these addresses now. flannel leaves such a route of a network"
        " that its node had before",
        (
            EvidenceRef(
                "file",
                wording.host_name(view),
                path="/proc/net/route",
                text=f"{route.kind} {route.to}",
            ),
            EvidenceRef(
                "api",
                cluster.api_host,
                object=f"Node {owner.name}",
                text=f"podCIDR {route.within}",
            ),
        ),
        f"on {view.name}: {remedy}. Where the network plugin adds it again, its own configuration"
        " still has the former network",
        host=wording.host_name(view),
        node=view.name,
        component=route.to,
    )
