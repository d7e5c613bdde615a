# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts are nodes, and which Nodes are no host of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..evidence.answers.cluster.nodes import Node, Nodes
from ..evidence.document import NOT_NAMED
from .cluster import Cluster, Host
from .result import Coverage

NO_HOST, LIMIT, PATTERN = "no_host", "limit", "pattern"  # why a Node was not audited
OSTREE = "/run/ostree-booted"  # of the system, whatever runs on it


def is_node(host: Host) -> bool | None:
    """Tell whether a host shows any trace of Kubernetes; None where its evidence does not say."""
    if host.status != "ok":
        return None
    if host.traces == () and not host.kubelet_unit:
        return False  # also beside the processes of a cluster in a container, as kind's
    runs = host.statuses.get("kubelet") == "ok" or host.control_plane is not None
    installed = host.kubelet_unit or any(path != OSTREE for path in host.installer)
    if host.traces or runs or installed:
        return True
    return None


def not_nodes(cluster: Cluster) -> list[Host]:
    """Return the machines that are no node: in no cluster, as no API and no etcd names them."""
    if cluster.key is not None:
        return []
    return [host for host in cluster.hosts if is_node(host) is False]


def settle(clusters: Iterable[Cluster]) -> None:
    """Note in each cluster which host of the run each Node of its API is."""
    all_clusters = list(clusters)
    for cluster in all_clusters:
        hosts_by_name = _by_name(cluster, all_clusters)
        for node in cluster.typed(Nodes).items:
            if not node.name:
                continue
            cluster.node_hosts[node.name] = next(
                filter(None, map(hosts_by_name.get, names(node))), None
            )
            if node.control_plane:
                cluster.control_plane_nodes.add(node.name)


def _by_name(cluster: Cluster, clusters: Iterable[Cluster]) -> dict[str, Host]:
    """Map names and addresses to the hosts that may be Nodes of a cluster.

    A host whose kubelet trusts another CA is in a cluster of its own, which no API proves.
    """
    silent = [other for other in clusters if other is not cluster and other.api_status != "ok"]
    other_hosts = [host for other in silent for host in other.hosts]
    return {name: host for host in (*other_hosts, *cluster.hosts) for name in host.names}


def names(node: Node) -> list[str]:
    """Return a Node's name and addresses."""
    aliases = (node.name, *(address.address for address in node.addresses))
    return [name for name in aliases if name]


def unhosted(cluster: Cluster) -> list[str]:
    """Return the Nodes of the API that no host of the run is."""
    return [name for name, host in cluster.node_hosts.items() if host is None]


def undecided(cluster: Cluster) -> list[Host]:
    """Return hosts that may be a Node under another name: they did not say who they are."""
    named = {host.host for host in cluster.node_hosts.values() if host is not None}
    mute = [
        candidate
        for candidate in cluster.hosts
        if candidate.missing("system", absent_is_answer=False)
    ]
    return [host for host in mute if host.host not in named]


def coverage(cluster: Cluster, key: str | None) -> Coverage:
    """Count the Nodes of the API and those that were audited, and say why others were not."""
    reasons = dict.fromkeys(unhosted(cluster), NO_HOST)
    reasons.update((host.host, _why(host)) for host in cluster.hosts if host.status != "ok")
    matched = [host for host in cluster.node_hosts.values() if host is not None]
    if cluster.node_hosts:
        hosts = matched
    else:
        hosts = cluster.hosts
    audited = {host.host for host in hosts if host.status == "ok"}
    if cluster.answered(Nodes):
        nodes = len(cluster.node_hosts)
    else:
        nodes = None
    return Coverage(key, nodes, len(audited), tuple(sorted(reasons.items())))


def placed(counts: Coverage, outside: Mapping[str, Mapping[str, Any]]) -> Coverage:
    """Name Nodes that the inventory has outside the run.

    outside: {host: {reason, address}}
    """
    reasons: dict[str, str] = {}
    for host, row in outside.items():
        reasons.update(dict.fromkeys((str(row.get("address")), host), str(row["reason"])))
    rows = [(name, reasons.get(name, reason)) for name, reason in counts.left if reason == NO_HOST]
    rows += [(name, reason) for name, reason in counts.left if reason != NO_HOST]
    return replace(counts, left=tuple(sorted(rows)))


def _why(host: Host) -> str:
    if host.status != "not_asked":
        return host.status
    if host.reason == NOT_NAMED:
        return PATTERN
    return LIMIT
