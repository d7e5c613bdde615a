# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts put together to clusters, and who is a member of each control plane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..parsers import pflag as flags
from . import ages, control_plane, node_hosts
from .cluster import STALE_LOCK_SECONDS, Cluster, Host, Stranger, timestamp
from .result import UNPROVEN


def assemble(hosts: Iterable[Host], documents: Iterable[Mapping[str, Any]]) -> list[Cluster]:
    """Clusters of these hosts, each with the best cluster evidence found for it.

    Hosts of none come last, key None.
    """
    hosts, documents = list(hosts), list(documents)
    keys = {host.host: host.key for host in hosts}
    canonical = _canonical_keys(hosts, documents, keys)
    clusters: dict[str, Cluster] = {}
    homeless: list[Host] = []
    if not canonical and any(_may_be_kubernetes(host) for host in hosts):
        clusters[UNPROVEN] = Cluster(UNPROVEN, [])
    for host in hosts:
        if host.key:
            clusters.setdefault(canonical[host.key], Cluster(canonical[host.key], [])).hosts.append(
                host
            )
        else:
            homeless.append(host)
    for document in sorted(documents, key=lambda item: item.get("status") != "ok"):
        key = canonical.get(
            document.get("cluster_key") or keys.get(document["host"]) or "", UNPROVEN
        )
        if key == UNPROVEN and UNPROVEN not in clusters:
            continue
        cluster = clusters.setdefault(key, Cluster(key, []))
        if cluster.api_status != "ok":
            cluster.api = document.get("collectors") or {}
            cluster.api_host, cluster.api_status = document["host"], document.get("status", "ok")
            cluster.api_reason, cluster.collected_at = (
                document.get("reason") or "",
                document.get("collected_at") or "",
            )
    nowhere = _house(homeless, clusters)
    found = [clusters[key] for key in sorted(clusters)]
    for cluster in found:
        cluster.hosts.sort(key=lambda host: host.host)
        _find_members(cluster)
    found += [Cluster(None, nowhere)] if nowhere else []
    node_hosts.settle(found)
    return found


def _canonical_keys(
    hosts: list[Host], documents: list[Mapping[str, Any]], keys: Mapping[str, str | None]
) -> dict[str, str]:
    """Map each key to its cluster: two CA bundles with one kube-system uid are one cluster."""
    canonical = {host.key: host.key for host in hosts if host.key}
    by_uid: dict[str, str] = {}
    for document in documents:
        key = document.get("cluster_key") or keys.get(document["host"])
        uid = (control_plane.data(document, "server")).get("kube_system_uid")
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

    Else in the only cluster there is. A host that answered and runs neither kubelet nor control
    plane is in no cluster: returned.
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
    for item in (cluster.answer("nodes") or {}).get("items") or ():
        names.add(item.get("name"))
        names.update(address.get("address") for address in item.get("addresses") or ())
    for host in cluster.hosts:
        for member in host.etcd.get("members") or ():
            names.update(etcd_names(member))
    return names


def etcd_names(member: Mapping[str, Any]) -> set[str]:
    """Return the names and addresses by which etcd knows a member."""
    names = {member.get("name") or ""}
    for url in list(member.get("peer_urls") or ()) + list(member.get("client_urls") or ()):
        names.add(url.split("://", 1)[-1].rsplit(":", 1)[0].strip("[]"))
    return names - {"", "127.0.0.1", "localhost", "::1"}


def _find_members(cluster: Cluster) -> None:
    """Find the members of the control plane: by inventory, components, the API or etcd."""
    known = {name: host for host in cluster.hosts for name in host.names}
    nodes = (cluster.answer("nodes") or {}).get("items") or ()
    for item in nodes:
        host = known.get(item.get("name") or "") or next(
            (known[a["address"]] for a in item.get("addresses") or () if a.get("address") in known),
            None,
        )
        if host is not None:
            known[item["name"]] = host
            known.update(
                (a["address"], host) for a in item.get("addresses") or () if a.get("address")
            )
    members = {host.host: host for host in cluster.hosts if _is_member(host)}
    strangers: dict[str, Stranger] = {}
    witnesses = list(_witnesses(cluster, nodes))
    for aliases, source in witnesses:
        host = next((known[alias] for alias in aliases if alias in known), None)
        if host is not None:
            members[host.host] = host
        elif not any(alias in strangers for alias in aliases):
            strangers.update(dict.fromkeys(aliases, Stranger(aliases[0], source)))
    cluster.members = [members[name] for name in sorted(members)]
    cluster.strangers = list({stranger.name: stranger for stranger in strangers.values()}.values())
    # Silent hosts that nothing names: where the inventory calls a host otherwise than its cluster
    # does, a stranger may be one.
    cluster.unplaced = [
        host
        for host in cluster.hosts
        if host.status != "ok"
        and "node" not in host.groups
        and not any(host is known.get(alias) for aliases, _source in witnesses for alias in aliases)
    ]


def _is_member(host: Host) -> bool:
    plane = host.control_plane
    return "control_plane" in host.groups or (
        plane is not None
        and (
            any(use.component != "etcd" for use in plane.files)
            or any(
                item.ours and item.component not in ("etcd", "cloud-controller-manager")
                for item in plane.processes
            )
        )
    )


def _witnesses(
    cluster: Cluster, nodes: Iterable[Mapping[str, Any]]
) -> Iterable[tuple[list[str], str]]:
    """Yield every member that anything names, as (its names and addresses, what names it)."""
    for item in nodes:
        if item.get("control_plane"):
            addresses = [a["address"] for a in item.get("addresses") or () if a.get("address")]
            yield [item["name"], *addresses], f"Node {item['name']} carries the control-plane role"
    advertised = {
        flags.string_flag(item.argv, "advertise-address")
        for host in cluster.hosts
        if host.control_plane
        for item in host.control_plane.of("kube-apiserver")
    }
    for address in (cluster.answer("endpoints") or {}).get("addresses") or ():
        ip = address.rsplit(":", 1)[0].strip("[]")
        if ip not in advertised:
            yield [ip], f"endpoint {address} of the service default/kubernetes"
    yield from _etcd_witnesses(cluster)
    yield from _lock_witnesses(cluster)


def _etcd_witnesses(cluster: Cluster) -> Iterable[tuple[list[str], str]]:
    """Etcd's live members, where etcd is stacked: an external etcd's hosts run no scheduler."""
    members = {
        member.get("id"): member
        for host in cluster.hosts
        for member in host.etcd.get("members") or ()
    }
    own = {name for host in cluster.hosts if _is_member(host) for name in host.names}
    named = [
        sorted(etcd_names(member), key=lambda name: name != member.get("name"))
        for member in members.values()
    ]
    if any(own.intersection(names) for names in named):
        for names in named:
            if names:
                yield names, f"member {names[0]} of etcd"


def lost(cluster: Cluster) -> list[str]:
    """Return what redundancy of the control plane is lost already, in words.

    What only its own evidence can prove of a host that answers.
    """
    etcd = {
        name
        for host in cluster.hosts
        for member in host.etcd.get("members") or ()
        for name in etcd_names(member)
    }
    found = []
    for host in cluster.members:
        if host.status == "not_asked":
            continue
        if host.status != "ok":
            found.append(f"{host.host} does not answer")
        elif host.statuses.get("instances") == "ok":
            if host.control_plane:
                running = {item.component for item in host.control_plane.processes}
            else:
                running = set()
            stacked = bool(etcd & host.names)
            found += [
                f"{name} of {host.host} does not run"
                for name in ("etcd",) * stacked + ("kube-apiserver",)
                if name not in running
            ]
    return found


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
        if host.host != name and host.control_plane and host.control_plane.of("kube-apiserver")
    ]


def _lock_witnesses(cluster: Cluster) -> Iterable[tuple[list[str], str]]:
    """Hosts that hold a lock now.

    An instance in an ordinary pod signs with its pod's name, which is no host.
    """
    podded = {
        item.component
        for host in cluster.hosts
        if host.control_plane
        for item in host.control_plane.processes
        if item.ours and item.pod_uid and not item.static
    }
    for server in (cluster.answer("locks") or {}).get("servers") or ():
        for lock in server.get("objects") or ():
            holder, renewed = lock.get("holder") or "", timestamp(lock.get("renew_time"))
            if (
                lock.get("name") not in control_plane.ELECTED
                or lock["name"] in podded
                or not holder
            ):
                continue
            if (
                renewed
                and (age := ages.age(cluster, renewed)) is not None
                and age > STALE_LOCK_SECONDS
            ):
                continue
            yield (
                [holder.rsplit("_", 1)[0]],
                f"holder of the {lock.get('kind')} kube-system/{lock['name']}",
            )
