# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which addresses a host has at links of its own, extracted to a small value. Pure.

Many addresses are on several machines on purpose. These are the addresses of bridges, those of
anycast at the loopback, and those of Services, which kube-proxy or kube-router gives to each node.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.network import Network, Route
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from . import host_network

# Links of pods, tunnels, bridges and Services, whose addresses tell nothing of the nodes' network.
INNER = re.compile(
    r"(?:lo|dummy|cni|docker|podman|virbr|lxc|lxd|br-[0-9a-f]{12}$|cali|veth|eni|azv|gke|flannel"
    r"|vxlan|geneve|genev_sys|tunl|ip6tnl|cilium|weave|kube-|nodelocaldns|ovn-k8s|antrea|tap|tun)"
)
# They have the addresses of Services, on each node.
OF_SERVICES = (host_network.IPVS, "kube-dummy-if")
MACVLAN, VIP = "macvlan", "vip-"  # as Harvester names that of kube-vip
MAX_NETWORKS = 8


@dataclass(frozen=True)
class HeldAddresses:
    """The addresses of a host that another machine should not have too.

    own: address -> interface ("" where that is not known)
    is_exact: whether the interfaces are known, so that addresses of other links are excluded
    networks: of links in which the host has an address of its own
    has_services: whether an interface has the addresses of Services
    vip_link: the macvlan of kube-vip where there is a single one
    """

    own: Mapping[str, str]
    is_exact: bool = False
    networks: tuple[str, ...] = ()
    has_services: bool = False
    vip_link: str = ""


NONE = HeldAddresses({})


def extract(document: Mapping[str, Any]) -> HeldAddresses:
    """Return what evaluating a cluster keeps of one host."""
    answer = contract.optional_answer(document, Network)
    if answer is None:
        return NONE
    addresses = _own(answer, contract.answer(document, System).addresses or ())
    names = [row.name for row in answer.interfaces]
    links = [
        row.name for row in answer.interfaces if row.kind == MACVLAN and row.name.startswith(VIP)
    ]
    if len(links) != 1:
        links = [""]
    return HeldAddresses(
        addresses,
        answer.addresses is not None,
        tuple(dict.fromkeys(_networks(answer.routes or (), addresses)))[:MAX_NETWORKS],
        any(name in OF_SERVICES for name in names),
        one_line(links[0], 40),
    )


def _own(answer: Network, addresses: Sequence[str]) -> dict[str, str]:
    """Return the addresses of a host, without those of inner links."""
    devices = dict.fromkeys(addresses, "")
    if answer.addresses is not None:
        devices = {row.address: one_line(row.dev, 40) for row in answer.addresses}
    parsed = ((_single(text), dev) for text, dev in devices.items() if not INNER.match(dev))
    return {address: dev for address, dev in parsed if address}


def _single(text: str) -> str:
    """Return an address of one machine in its short form, "" for one that each may have."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    if address.is_loopback or address.is_link_local or address.is_unspecified:
        return ""
    return str(address)


def _networks(routes: Sequence[Route], texts: Iterable[str]) -> Iterator[str]:
    """Yield the networks of a host's links that have one of its addresses."""
    addresses = [ipaddress.IPv4Address(text) for text in texts if ":" not in text]
    for route in routes:
        network = _network(route)
        if network is not None and any(address in network for address in addresses):
            yield str(network)


def _network(route: Route) -> ipaddress.IPv4Network | None:
    """Return the network of a link of the machine: more than one address, and not all."""
    if route.is_dead_end or INNER.match(route.dev):
        return None
    try:
        network = ipaddress.IPv4Network(route.to)
    except ValueError:
        return None
    if 0 < network.prefixlen < 31:
        return network
    return None
