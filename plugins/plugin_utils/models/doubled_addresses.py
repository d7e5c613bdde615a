# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which address several machines of a cluster have, although only one should have it. Pure."""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..evidence import memoize
from ..evidence.answers.cluster.kubeadm_config import KubeadmConfig
from ..evidence.answers.cluster.nodes import Node, Nodes
from .cluster import Cluster, Host

API = "kube-apiserver"
INTERNAL, EXTERNAL = "InternalIP", "ExternalIP"
_PLACE = re.compile(
    r"(?:https?://)?(?:\[(?P<ipv6>[0-9A-Fa-f:.]{2,45})\]|(?P<ipv4>[\d.]{7,15}))(?:[:/]|$)"
)
_ENDPOINT = re.compile(r"^controlPlaneEndpoint: *\"?(?P<place>[^\s\"]{1,300})", re.MULTILINE)


@dataclass(frozen=True)
class SharedAddress:
    """One address on several machines.

    is_api: whether kubelets or kubeadm have it as the address of the API server
    idle: the holders without an API server, where it is the API's
    owners: names of the Nodes that have it as their own
    """

    address: str
    holders: tuple[Host, ...]
    is_api: bool
    idle: tuple[Host, ...] = ()
    owners: tuple[str, ...] = ()


@memoize.last
def find(cluster: Cluster) -> tuple[SharedAddress, ...]:
    """Return the addresses that more than one machine has, those of the API first."""
    holders: dict[str, list[Host]] = {}
    for host in _answering(cluster):
        for address in host.held.own:
            holders.setdefault(address, []).append(host)
    several = {address: hosts for address, hosts in holders.items() if len(hosts) > 1}
    if not several:
        return ()
    api = set(_api_addresses(cluster))
    rows = [
        _shared(cluster, address, hosts, address in api)
        for address, hosts in several.items()
        if _are_apart(hosts) and _is_single(cluster, address, hosts, address in api)
    ]
    return tuple(sorted(rows, key=lambda row: (not row.is_api, row.address)))


def named(cluster: Cluster, address: str) -> SharedAddress | None:
    """Return an address with the machines that have it, None where at most one does."""
    return next((row for row in find(cluster) if row.address == address), None)


def _answering(cluster: Cluster) -> list[Host]:
    return [host for host in cluster.hosts if host.status == "ok"]


def serves(host: Host) -> bool:
    """Tell whether an API server runs on a host, by itself or within k3s or RKE2."""
    if host.rancher is not None:
        return not host.rancher.is_agent
    return host.control_plane is not None and bool(host.control_plane.processes_of(API))


def _api_addresses(cluster: Cluster) -> Iterator[str]:
    """Yield the addresses that kubelets and kubeadm have as that of the API server."""
    places = [host.api_way.server or "" for host in cluster.hosts if host.api_way is not None]
    places += _ENDPOINT.findall(cluster.typed(KubeadmConfig).text or "")
    for match in filter(None, map(_PLACE.match, dict.fromkeys(places))):
        yield (match.group("ipv6") or match.group("ipv4")).lower()


def _are_apart(hosts: Sequence[Host]) -> bool:
    """Tell whether hosts are different machines, so that the inventory has none of them twice.

    Containers that are nodes have one kernel, and machine ids of their own.
    """
    pairs = itertools.combinations(hosts, 2)
    return all(host.machine.differs(other.machine) for host, other in pairs)


def _is_single(cluster: Cluster, address: str, hosts: Sequence[Host], is_api: bool) -> bool:
    """Tell whether only one machine of a cluster should have an address."""
    if not all(host.held.is_exact for host in hosts) and _may_be_meant(cluster, address, hosts):
        return False
    return is_api or (_is_of_nodes(cluster, address, hosts) and not _are_remote(cluster, hosts))


def _may_be_meant(cluster: Cluster, address: str, hosts: Sequence[Host]) -> bool:
    """Tell whether hosts may have an address on purpose, at interfaces that are not known.

    An address of anycast (BGP), of a balancer that routes directly, or of Services is on all
    machines that do the same. A cloud may add those of its balancers as local routes.
    """
    if any(host.identity.cloud for host in hosts):
        return True
    groups = _alike(cluster)
    if any(host.held.has_services for host in hosts):
        groups.append([host for host in _answering(cluster) if host.held.has_services])
    return any(all(address in host.held.own for host in group) for group in groups)


def _alike(cluster: Cluster) -> list[list[Host]]:
    """Return the hosts with an API server and those without one, where they are several."""
    hosts = _answering(cluster)
    serving = [host for host in hosts if serves(host)]
    working = [host for host in hosts if not serves(host)]
    return [group for group in (serving, working) if len(group) > 1]


def _is_of_nodes(cluster: Cluster, address: str, hosts: Sequence[Host]) -> bool:
    """Tell whether an address is of a network that nodes are in, with other addresses of theirs."""
    texts = itertools.chain.from_iterable(host.held.networks for host in hosts)
    networks = {text for text in texts if _is_in(address, text)}
    if not networks:
        return False
    nodes = cluster.typed(Nodes).items
    rows = itertools.chain.from_iterable(node.addresses for node in nodes)
    of_nodes = {row.address or "" for row in rows} - {address, ""}
    return any(
        _is_in(text, network)
        for host in cluster.hosts
        for text, network in itertools.product(
            of_nodes.intersection(host.held.own), networks.intersection(host.held.networks)
        )
    )


def _is_in(address: str, network: str) -> bool:
    if ":" in address:
        return False
    return ipaddress.IPv4Address(address) in ipaddress.IPv4Network(network)


def _nodes(cluster: Cluster, host: Host) -> Iterator[Node]:
    for node in cluster.typed(Nodes).items:
        if node.name and cluster.node_hosts.get(node.name) is host:
            yield node


def _are_remote(cluster: Cluster, hosts: Sequence[Host]) -> bool:
    """Tell whether Nodes reach one another by addresses of the outside.

    Networks of several sites may have the same private addresses.
    """
    nodes = [node for host in hosts for node in _nodes(cluster, host)]
    return any(row.type == EXTERNAL for node in nodes for row in node.addresses)


def _shared(cluster: Cluster, address: str, hosts: Sequence[Host], is_api: bool) -> SharedAddress:
    idle = [host for host in hosts if is_api and _has_no_server(cluster, host)]
    owners = [
        node.name for node in cluster.typed(Nodes).items if node.name and address in _internal(node)
    ]
    return SharedAddress(address, tuple(hosts), is_api, tuple(idle), tuple(owners))


def _internal(node: Node) -> list[str | None]:
    return [row.address for row in node.addresses if row.type == INTERNAL]


def _has_no_server(cluster: Cluster, host: Host) -> bool:
    """Tell whether a host is known to have no API server, where others of its cluster have one."""
    if serves(host) or host.missing("instances"):
        return False
    return any(serves(other) for other in cluster.hosts)
