# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts put together to clusters, and who is a member of each control plane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..evidence import contract
from ..evidence.answers.cluster.endpoints import Endpoints
from ..evidence.answers.cluster.locks import LockObject, Locks
from ..evidence.answers.cluster.nodes import Node, Nodes
from ..evidence.answers.cluster.server import Server
from ..evidence.answers.node.etcd import Member
from ..parsers import pflag
from . import ages, control_plane, node_hosts
from .cluster import STALE_LOCK_SECONDS, Cluster, Host, UnlistedMember
from .control_plane import Process
from .moments import timestamp
from .natural_order import natural
from .result import UNPROVEN


def assemble(hosts: Iterable[Host], documents: Iterable[Mapping[str, Any]]) -> list[Cluster]:
    """Return the clusters of these hosts, each with the best cluster evidence found for it.

    Hosts of none come last, key None.
    """
    hosts, documents = list(hosts), list(documents)
    clusters, nowhere = _place(hosts, documents)
    ordered_clusters = [clusters[key] for key in sorted(clusters)]
    for cluster in ordered_clusters:
        cluster.hosts.sort(key=lambda host: natural(host.host))
        _find_members(cluster)
    if nowhere:
        ordered_clusters.append(Cluster(None, nowhere))
    node_hosts.settle(ordered_clusters)
    return ordered_clusters


def _place(
    hosts: list[Host], documents: list[Mapping[str, Any]]
) -> tuple[dict[str, Cluster], list[Host]]:
    """Return the clusters by key, and the hosts of none."""
    keys = {host.host: host.key for host in hosts}
    canonical = _canonical_keys(hosts, documents, keys)
    clusters = _of_hosts(hosts, canonical)
    if not canonical and any(map(_may_be_kubernetes, hosts)):
        clusters[UNPROVEN] = Cluster(UNPROVEN, [])
    for document in sorted(documents, key=lambda item: item.get("status") != "ok"):
        named = document.get("cluster_key") or keys.get(document["host"]) or ""
        key = canonical.get(named, UNPROVEN)
        if key != UNPROVEN or UNPROVEN in clusters:
            _take(clusters.setdefault(key, Cluster(key, [])), document)
    return clusters, _house([host for host in hosts if not host.key], clusters)


def _of_hosts(hosts: list[Host], canonical: Mapping[str, str]) -> dict[str, Cluster]:
    """Return the clusters of the hosts that know their own."""
    clusters: dict[str, Cluster] = {}
    for host in hosts:
        if host.key:
            key = canonical[host.key]
            clusters.setdefault(key, Cluster(key, [])).hosts.append(host)
    return clusters


def _take(cluster: Cluster, document: Mapping[str, Any]) -> None:
    """Give a cluster the evidence of its API, unless it has a good one."""
    if cluster.api_status == "ok":
        return
    cluster.api = document.get("collectors") or {}
    cluster.api_host = document["host"]
    cluster.api_status = document.get("status", "ok")
    cluster.api_reason = document.get("reason") or ""
    cluster.collected_at = document.get("collected_at") or ""


def _canonical_keys(
    hosts: list[Host], documents: list[Mapping[str, Any]], keys: Mapping[str, str | None]
) -> dict[str, str]:
    """Map each key to its cluster: two CA bundles with one kube-system uid are one cluster."""
    canonical = {host.key: host.key for host in hosts if host.key}
    by_uid: dict[str, str] = {}
    for document in documents:
        key = document.get("cluster_key") or keys.get(document["host"])
        uid = contract.answer(document, Server).kube_system_uid
        if not key:
            continue
        canonical.setdefault(key, key)
        other = first = canonical[key]
        if uid:
            first = by_uid.setdefault(uid, other)
        for name, value in canonical.items():
            if value == other:
                canonical[name] = first
    return canonical


def _house(homeless: list[Host], clusters: dict[str, Cluster]) -> list[Host]:
    """Place hosts without a proven cluster where the API or etcd names them.

    If none does, a host belongs to the only cluster there is. A host that answered and runs neither
    kubelet nor control plane is in no cluster. Those hosts are returned.
    """
    nowhere = []
    for host in homeless:
        named = [cluster for cluster in clusters.values() if host.names & _named(cluster)]
        if len(named) == 1:
            named[0].hosts.append(host)
        elif len(clusters) == 1 and _may_be_kubernetes(host):
            next(iter(clusters.values())).hosts.append(host)
        else:
            nowhere.append(host)
    return nowhere


def _may_be_kubernetes(host: Host) -> bool:
    if node_hosts.is_node(host) is False:
        return False
    return (
        host.status != "ok"
        or host.statuses.get("kubelet") != "absent"
        or host.control_plane is not None
    )


def _named(cluster: Cluster) -> set[str]:
    names: set[str] = set()
    for node in cluster.typed(Nodes).items:
        names.update(node_hosts.names(node))
    for member in _etcd_members(cluster):
        names.update(etcd_names(member))
    return names


def _etcd_members(cluster: Cluster) -> Iterator[Member]:
    """Yield the members of etcd as each host knows them."""
    for host in cluster.hosts:
        yield from host.etcd.members


def etcd_names(member: Member) -> set[str]:
    """Return the names and addresses by which etcd knows a member."""
    names = {member.name}
    for url in (*member.peer_urls, *member.client_urls):
        names.add(url.split("://", 1)[-1].rsplit(":", 1)[0].strip("[]"))
    return names - {"", "127.0.0.1", "localhost", "::1"}


def _find_members(cluster: Cluster) -> None:
    """Find the members of the control plane: by inventory, components, the API or etcd."""
    nodes = cluster.typed(Nodes).items
    hosts_by_name = _known_hosts(cluster, nodes)
    members = {host.host: host for host in filter(_is_member, cluster.hosts)}
    strangers: dict[str, UnlistedMember] = {}
    named: set[str] = set()
    for aliases, source in _witnesses(cluster, nodes):
        host = _first_known(aliases, hosts_by_name)
        if host is not None:
            members[host.host] = host
            named.update(hosts_by_name[alias].host for alias in aliases if alias in hosts_by_name)
        elif strangers.keys().isdisjoint(aliases):
            strangers.update(dict.fromkeys(aliases, UnlistedMember(aliases[0], source)))
    cluster.members = [members[name] for name in sorted(members, key=natural)]
    cluster.strangers = list({stranger.name: stranger for stranger in strangers.values()}.values())
    # Silent hosts that nothing names: where the inventory calls a host otherwise than its cluster
    # does, a stranger may be one.
    cluster.unplaced = [
        host for host in cluster.hosts if _is_silent(host) and host.host not in named
    ]


def _is_silent(host: Host) -> bool:
    """Tell whether a host that may be a control plane node did not answer."""
    return host.status != "ok" and "node" not in host.groups


def _known_hosts(cluster: Cluster, nodes: Iterable[Node]) -> dict[str, Host]:
    """Map every name and address of a host to it, also those of its Node."""
    hosts_by_name = {name: host for host in cluster.hosts for name in host.names}
    for node in nodes:
        aliases = node_hosts.names(node)
        host = _first_known(aliases, hosts_by_name)
        if host is not None:
            hosts_by_name.update(dict.fromkeys(aliases, host))
    return hosts_by_name


def _first_known(aliases: Iterable[str], hosts_by_name: Mapping[str, Host]) -> Host | None:
    return next((hosts_by_name[alias] for alias in aliases if alias in hosts_by_name), None)


def _is_member(host: Host) -> bool:
    if "control_plane" in host.groups:
        return True
    plane = host.control_plane
    if plane is None:
        return False
    if any(use.component != "etcd" for use in plane.files):
        return True
    components = {process.component for process in plane.processes if process.ours}
    return bool(components - {"etcd", "cloud-controller-manager"})


def _witnesses(cluster: Cluster, nodes: Iterable[Node]) -> Iterator[tuple[list[str], str]]:
    """Yield every member that anything names, as (its names and addresses, what names it)."""
    for node in nodes:
        if node.control_plane:
            yield node_hosts.names(node), f"Node {node.name} carries the control-plane role"
    yield from _endpoint_witnesses(cluster)
    yield from _etcd_witnesses(cluster)
    yield from _lock_witnesses(cluster)


def _endpoint_witnesses(cluster: Cluster) -> Iterator[tuple[list[str], str]]:
    """Yield the API servers of the service kubernetes that no host of the cluster advertises."""
    planes = [host.control_plane for host in cluster.hosts if host.control_plane]
    advertised = {
        pflag.string_flag(process.argv, "advertise-address")
        for plane in planes
        for process in plane.processes_of("kube-apiserver")
    }
    for address in cluster.typed(Endpoints).addresses:
        ip = address.rsplit(":", 1)[0].strip("[]")
        if ip not in advertised:
            yield [ip], f"endpoint {address} of the service default/kubernetes"


def _etcd_witnesses(cluster: Cluster) -> Iterator[tuple[list[str], str]]:
    """Yield the live members of a stacked etcd: an external etcd's hosts run no scheduler."""
    members = {member.id: member for member in _etcd_members(cluster)}
    listed = [_own_name_first(member) for member in members.values()]
    if not _is_stacked(cluster, listed):
        return
    for names in listed:
        if names:
            yield names, f"member {names[0]} of etcd"


def _own_name_first(member: Member) -> list[str]:
    return sorted(etcd_names(member), key=lambda name: name != member.name)


def _is_stacked(cluster: Cluster, listed: Iterable[list[str]]) -> bool:
    """Tell whether a member of etcd is a host of the control plane."""
    member_names: set[str] = set()
    for host in cluster.hosts:
        if _is_member(host):
            member_names |= host.names
    return any(member_names.intersection(names) for names in listed)


def lost(cluster: Cluster) -> list[str]:
    """Return what redundancy of the control plane is lost already, in words.

    What only its own evidence can prove of a host that answers.
    """
    etcd: set[str] = set()
    for member in _etcd_members(cluster):
        etcd |= etcd_names(member)
    return [text for host in cluster.members for text in _lost_of(host, bool(etcd & host.names))]


def _lost_of(host: Host, stacked: bool) -> list[str]:
    """Return what of the control plane does not run on a member."""
    if host.status == "not_asked":
        return []
    if host.status != "ok":
        return [f"{host.host} does not answer"]
    if host.statuses.get("instances") != "ok" or host.is_k3s:  # it runs them within its own process
        return []
    running: set[str] = set()
    if host.control_plane:
        running = {process.component for process in host.control_plane.processes}
    components = ["kube-apiserver"]
    if stacked:
        components = ["etcd", "kube-apiserver"]
    return [f"{name} of {host.host} does not run" for name in components if name not in running]


def unseen(cluster: Cluster) -> list[str]:
    """Return control plane nodes that this run did not read, so that their state is unknown.

    --limit leaves them out, or no inventory has them.
    """
    return sorted(
        {str(stranger.name) for stranger in cluster.strangers}
        | {host.host for host in cluster.members if host.status == "not_asked"}
    )


def beside(cluster: Cluster, name: str) -> list[str]:
    """Return the other hosts whose API server runs."""
    return [
        host.host
        for host in cluster.members
        if host.host != name
        and host.control_plane
        and host.control_plane.processes_of("kube-apiserver")
    ]


def _lock_witnesses(cluster: Cluster) -> Iterator[tuple[list[str], str]]:
    """Yield the hosts that hold a lock now.

    An instance in an ordinary pod signs with its pod's name, which is no host.
    """
    podded = _in_ordinary_pods(cluster)
    components = set(control_plane.ELECTED) - podded
    locks = [lock for server in cluster.typed(Locks).servers for lock in server.objects]
    for lock in locks:
        if lock.name in components and lock.holder and not _is_stale(cluster, lock):
            yield (
                [lock.holder.rsplit("_", 1)[0]],
                f"holder of the {lock.kind} kube-system/{lock.name}",
            )


def _in_ordinary_pods(cluster: Cluster) -> set[str]:
    """Return the components of the cluster that run in ordinary pods."""
    planes = [host.control_plane for host in cluster.hosts if host.control_plane]
    processes = [process for plane in planes for process in plane.processes]
    return {process.component for process in processes if _is_in_ordinary_pod(process)}


def _is_in_ordinary_pod(process: Process) -> bool:
    return bool(process.ours and process.pod_uid and not process.static)


def _is_stale(cluster: Cluster, lock: LockObject) -> bool:
    """Tell whether a lock was not renewed for so long that it has no holder."""
    renewed = timestamp(lock.renew_time)
    if renewed is None:
        return False
    age = ages.age(cluster, renewed)
    return age is not None and age > STALE_LOCK_SECONDS
