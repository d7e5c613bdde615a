# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of Services for which each node answers ARP, for KM534.

kube-proxy with ipvs gives the addresses of load balancers to kube-ipvs0 of each node. The kernel
answers ARP for them at each interface, unless strictARP tells it not to. Such an address of the
nodes' own network is one that a single node shall announce.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.host_network import IPVS
from ...models.result import EvidenceRef
from ..base import Detection

SHOWN = 3


def hits(cluster: Cluster) -> Iterator[Detection]:
    """Report addresses of the nodes' network that several nodes have and answer for."""
    shared_by_host = [(host, addresses) for host, addresses in _shared(cluster) if addresses]
    if shared_by_host:
        addresses = frozenset[str]().union(*(addresses for _host, addresses in shared_by_host))
        yield _hit([host for host, _addresses in shared_by_host], sorted(addresses))


def _shared(cluster: Cluster) -> Iterator[tuple[Host, frozenset[str]]]:
    """Yield each host with the addresses that others have too, of networks that it is in itself.

    The bridge of Docker has the same address on each node, which is alone in its network there.
    """
    counts: Counter[str] = Counter()
    for host in cluster.hosts:
        counts.update({address for _network, address in host.network.arp_addresses})
    for host in cluster.hosts:
        pairs = host.network.arp_addresses
        own_networks = {network for network, address in pairs if counts[address] == 1}
        within = {address for network, address in pairs if network in own_networks}
        yield host, frozenset(address for address in within if counts[address] > 1)


def _hit(hosts: Sequence[Host], addresses: Sequence[str]) -> Detection:
    # The network of a cloud may answer ARP itself, and nothing of the nodes counts there.
    is_clouded = any(host.identity.cloud for host in hosts)
    names = and_others([host.node or host.host for host in hosts])
    shown = and_others(list(addresses), SHOWN)
    proofs = [
        EvidenceRef(
            "file",
            host.host,
            path="/proc/sys/net/ipv4/conf/all/arp_ignore",
            text=f"0; {IPVS} is there; the node has {shown}",
        )
        for host in hosts[:SHOWN]
    ]
    return Detection(
        f"kube-proxy runs with ipvs and without strictARP on {names}: each of them answers ARP for"
        f" {shown}, so that most connections to it go to a node that does not announce it",
        tuple(proofs),
        "strictARP: true below ipvs: in the configuration of kube-proxy (kubectl -n kube-system"
        " edit configmap kube-proxy, then kubectl -n kube-system rollout restart daemonset"
        " kube-proxy; kubespray kube_proxy_strict_arp: true; k3s and RKE2 kube-proxy-arg:"
        " ipvs-strict-arp=true). Until then, on each node: sysctl -w"
        " net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2",
        component=IPVS,
        severity="info" if is_clouded else None,
    )
