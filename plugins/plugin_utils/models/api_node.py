# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes as the API lists them, each with its host of the inventory. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..evidence import memoize
from ..evidence.answers.cluster.nodes import Condition, Cordon, Node, Nodes, Taint, Vtep
from ..evidence.document import one_line
from . import ages, node_hosts
from .cluster import Cluster, Host
from .moments import timestamp

SHOWN = 5
ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


@dataclass(frozen=True)
class NodeView:
    """A Node of the API.

    told: whether its evidence has taints at all, which an older release did not collect
    leased: when its kubelet renewed its lease, by its own clock
    runtime: its container runtime and that one's version
    kubelet: the version of its kubelet
    capacity: the CPUs (in thousandths) and bytes of memory that its kubelet counted
    pod_cidrs: the networks of its pods, None where an older release collected
    plugin_addresses: where its network plugin is reached, by annotation
    vtep: the end of flannel's tunnel, by its annotation
    """

    name: str
    host: Host | None
    ready: str | None
    control_plane: bool
    zone: str | None
    told: bool
    taints: tuple[Taint, ...]
    conditions: tuple[Condition, ...]
    leased: datetime | None
    cordoned: bool
    ours: Cordon | None
    internal: tuple[str, ...] = ()
    created: datetime | None = None
    lease_seconds: float | None = None
    runtime: str = ""
    machine_id: str | None = None
    boot_id: str | None = None
    kubelet: str = ""
    capacity: Mapping[str, int] | None = None
    pod_cidrs: tuple[str, ...] | None = None
    plugin_addresses: Mapping[str, str] | None = None
    vtep: Vtep | None = None

    def condition(self, kind: str) -> Condition | None:
        """Ready, or another that is not False."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


@memoize.last
def views(cluster: Cluster) -> tuple[NodeView, ...]:
    """Return every Node of the API's list."""
    return tuple(_views(cluster))


def _views(cluster: Cluster) -> Iterator[NodeView]:
    hosts = cluster.hosts_by_node()
    for node in cluster.typed(Nodes).items:
        labels = node.labels or {}
        yield NodeView(
            one_line(node.name, 253),
            _host(hosts, node),
            node.ready,
            bool(node.control_plane),
            next((labels[name] for name in ZONES if labels.get(name)), None),
            node.taints is not None,
            node.taints or (),
            node.conditions or (),
            timestamp(node.lease),
            node.unschedulable is True,
            node.cordon,
            _internal(node),
            timestamp(node.created),
            ages.seconds_of(node.lease_duration_s),
            one_line(node.runtime_version or "", 80).replace("://", " "),
            node.machine_id,
            node.boot_id,
            one_line(node.kubelet_version or "", 60),
            node.capacity,
            node.pod_cidrs,
            node.plugin_addresses,
            node.vtep,
        )


def _host(hosts: Mapping[str, Host], node: Node) -> Host | None:
    """Return the host that has the name of a Node, or else one of its addresses."""
    return next(filter(None, map(hosts.get, node_hosts.names(node))), None)


def _internal(node: Node) -> tuple[str, ...]:
    addresses = [entry.address for entry in node.addresses if entry.type == "InternalIP"]
    return tuple(address for address in addresses if address)


def and_others(names: Sequence[str], shown: int = SHOWN) -> str:
    """Return the first few of them, and how many more there are."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")
