# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: which hosts are Kubernetes nodes, and which Nodes of the API are no host of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils.cluster import Cluster, Host
from ansible_collections.kubemend.remediation.plugins.plugin_utils.model import Coverage

NO_HOST, LIMIT = "no_host", "limit"  # why a Node was not audited
OSTREE = "/run/ostree-booted"  # of the system, whatever runs on it


def is_node(host: Host) -> bool | None:
    """Whether a host shows any trace of Kubernetes; None where its evidence does not say."""
    if host.status != "ok":
        return None
    if host.traces is not None and not host.traces and not host.kubelet_unit:
        return False  # also beside the processes of a cluster in a container, as kind's
    if host.traces or host.kubelet_unit or host.statuses.get("kubelet") == "ok" or host.control_plane is not None:
        return True
    if any(path != OSTREE for path in host.installer):
        return True
    return None


def not_nodes(cluster: Cluster) -> list[Host]:
    """Hosts of no proven cluster that are proven to be no node. A host that an API or etcd names is in a cluster."""
    return [host for host in cluster.hosts if is_node(host) is False] if cluster.key is None else []


def settle(clusters: Iterable[Cluster]) -> None:
    """Note in each cluster which host of the run each Node of its API is."""
    found = list(clusters)
    for cluster in found:
        # A host whose kubelet trusts another CA is in a cluster of its own, which no API proves.
        others = [host for other in found if other is not cluster and other.api_status != "ok" for host in other.hosts]
        known = {name: host for host in (*others, *cluster.hosts) for name in host.names}
        for item in cluster.rows("nodes", "items"):
            name, aliases = _called(item)
            if name:
                cluster.node_hosts[name] = next((known[alias] for alias in aliases if alias in known), None)
                if item.get("control_plane"):
                    cluster.control_plane_nodes.add(name)


def _called(item: Mapping[str, Any]) -> tuple[str, list[str]]:
    """(name, name and addresses) of a Node."""
    name = item.get("name")
    addresses = item.get("addresses")
    rows = addresses if isinstance(addresses, (list, tuple)) else ()
    aliases = [name, *(row.get("address") for row in rows if isinstance(row, Mapping))]
    return (name if isinstance(name, str) else ""), [alias for alias in aliases if isinstance(alias, str) and alias]


def unhosted(cluster: Cluster) -> list[str]:
    """Nodes of the API that no host of the run is."""
    return [name for name, host in cluster.node_hosts.items() if host is None]


def undecided(cluster: Cluster) -> list[Host]:
    """Hosts that may be a Node under another name: the API names none like them, and they did not say who they are."""
    named = {host.host for host in cluster.node_hosts.values() if host is not None}
    return [host for host in cluster.hosts if host.host not in named and (host.status != "ok" or host.statuses.get("system") != "ok")]


def coverage(cluster: Cluster, key: str | None) -> Coverage:
    """How many Nodes the API lists, how many of them were audited, and why others were not."""
    left: dict[str, str] = {}
    for name, host in cluster.node_hosts.items():
        if host is None:
            left[name] = NO_HOST
    for host in cluster.hosts:
        if host.status != "ok":
            left[host.host] = _why(host)
    hosts = [host for host in cluster.node_hosts.values() if host is not None] if cluster.node_hosts else cluster.hosts
    audited = {host.host for host in hosts if host.status == "ok"}
    return Coverage(key, len(cluster.node_hosts) if cluster.answer("nodes") else None, len(audited), tuple(sorted(left.items())))


def placed(one: Coverage, outside: Mapping[str, Mapping[str, Any]]) -> Coverage:
    """The same, where a Node is a host of the inventory that the run leaves out. outside: {host: {reason, address}}."""
    known = {str(alias): str(row["reason"]) for host, row in outside.items() for alias in (row.get("address"), host)}
    return replace(one, left=tuple((name, known.get(name, reason) if reason == NO_HOST else reason) for name, reason in one.left))


def _why(host: Host) -> str:
    return LIMIT if host.status == "not_asked" else host.status
