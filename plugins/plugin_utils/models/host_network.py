# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has for the traffic of pods, extracted to a small value. Pure."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.boot import Boot
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.limits import Limits
from ..evidence.answers.node.network import Network, Resolver
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from ..parsers import modules_load_fstab, pflag
from . import dead_ends
from .dead_ends import DeadEnd
from .kubelet import config as kubelet_config
from .kubelet.config import Setting

RESOLV_CONF = "/etc/resolv.conf"
RP_FILTER, MAX_LINES, MAX_DEAD_ENDS = "rp_filter", 5, 10
IPVS, TUNNEL = "kube-ipvs0", "ipip"
LOOSE_FILTER = 2  # a packet passes where any interface has a route to its sender


@dataclass(frozen=True)
class HostNetwork:
    """The network of a host beside its network plugin.

    resolver: the file that its kubelet gives to pods, None where that is not known
    setting: what names that file, None where it is the kubelet's default
    problem: why the file is not known
    cluster_dns: the name servers of the cluster's own that its kubelet gives to pods
    rp_filter_lines: path, line and text of what sets rp_filter at a boot
    tunnel_lines: the lines that load ipip at a boot, before a plugin makes its tunnel
    arp_addresses: with ipvs, networks of its links and the addresses that it answers ARP for there
    dead_ends: the first routes that throw away packets which another route would send
    """

    answer: Network = field(default_factory=Network)
    resolver: Resolver | None = None
    setting: Setting | None = None
    problem: str = ""
    cluster_dns: tuple[str, ...] = ()
    rp_filter_lines: tuple[tuple[str, int, str], ...] = ()
    arp_addresses: frozenset[tuple[str, str]] = frozenset()
    tunnel_lines: tuple[str, ...] = ()
    dead_ends: tuple[DeadEnd, ...] = ()

    @property
    def is_loose(self) -> bool:
        """Tell whether the reverse path filter of all interfaces is the loose one."""
        return self.answer.rp_filter == LOOSE_FILTER

    @property
    def asked_in_cluster(self) -> tuple[str, ...]:
        """Return the name servers of the host where all of them are pods of the cluster."""
        named = [server for item in self.answer.resolvers for server in item.nameservers]
        servers = tuple(dict.fromkeys(server for server in named if not is_loopback(server)))
        return servers if self.of_cluster(servers) else ()

    def of_cluster(self, servers: Sequence[str]) -> bool:
        """Tell whether servers are the cluster's DNS alone; a cache of the node is none of it."""
        return bool(servers) and all(
            server in self.cluster_dns and not is_link_local(server) for server in servers
        )

    def has(self, name: str) -> bool:
        """Tell whether the host has this interface, or one of this kind (cali*)."""
        return any(row.name == name for row in self.answer.interfaces)


def extract(document: Mapping[str, Any]) -> HostNetwork:
    """Return what a host's evidence contains; empty where the collector did not answer."""
    answer = contract.optional_answer(document, Network)
    if answer is None:
        return HostNetwork()
    config = kubelet_config.read(contract.answer(document, Kubelet))
    setting, problem = config.setting("resolvConf", "resolv-conf"), ""
    if not config.certain(setting):
        problem = config.problem
    path = RESOLV_CONF if setting is None else setting.value
    resolver = next((item for item in answer.resolvers if item.path == path), None)
    answered = frozenset(_answered(answer, contract.answer(document, System).addresses or ()))
    dead_end_routes = tuple(dead_ends.find(answer.routes))
    manager = answer.network_manager
    if manager is None or manager.active is False:
        # Only what NetworkManager may have changed is compared: a large cluster has many routes.
        answer = dataclasses.replace(answer, routes=None)
    lines = tuple(_lines(contract.answer(document, Limits)))
    return HostNetwork(
        answer,
        resolver,
        setting,
        problem,
        _cluster_dns(config),
        lines[:MAX_LINES],
        answered,
        tuple(_tunnel_lines(contract.answer(document, Boot)))[:MAX_LINES],
        dead_end_routes[:MAX_DEAD_ENDS],
    )


def _tunnel_lines(boot: Boot) -> Iterator[str]:
    """Yield path and line of what loads the module ipip at a boot."""
    for row in modules_load_fstab.modules(boot.modules_files or ()):
        if row.name == TUNNEL:
            yield one_line(row.place, 300)


def _answered(answer: Network, addresses: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield networks of links and the addresses for which the kernel answers ARP there."""
    if not any(row.name == IPVS for row in answer.interfaces):
        return
    networks = list(_open_networks(answer))
    for address in addresses:
        parsed = _address(address)
        for network in networks if parsed is not None else ():
            if parsed in network:
                yield str(network), str(parsed)


def _open_networks(answer: Network) -> Iterator[ipaddress.IPv4Network]:
    """Yield the networks of links at which the kernel answers for each address of the host."""
    links = {dev for dev, value in (answer.arp_ignore or {}).items() if value == 0}
    for route in answer.routes or ():
        network = _network(route.to) if route.dev in links else None
        if network is not None:
            yield network


def _network(text: str) -> ipaddress.IPv4Network | None:
    """Return the network of a route to more than one address, and to less than all."""
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError:
        return None
    return network if 0 < network.prefixlen < 31 else None


def _cluster_dns(config: kubelet_config.KubeletConfig) -> tuple[str, ...]:
    """Return the name servers of the cluster, which a flag replaces."""
    flags = pflag.string_flags(config.argv, "cluster-dns")
    if flags:
        return tuple(server.strip() for value in flags for server in value.split(","))
    return tuple(row.value for path, row in config.rows("clusterDNS") if len(path) == 1)


def _lines(limits: Limits) -> Iterator[tuple[str, int, str]]:
    for file in limits.sysctl_files or ():
        for number, line in enumerate((file.text or "").split("\n"), 1):
            if RP_FILTER in line and not line.lstrip().startswith(("#", ";")):
                yield one_line(file.path, 253), number, one_line(line.strip(), 200)


def is_loopback(address: str) -> bool:
    """Tell whether an address of a resolv.conf is the machine's own, which is the pod's there."""
    parsed = _address(address)
    return parsed is not None and parsed.is_loopback


def is_link_local(address: str) -> bool:
    """Tell whether an address is one that a program of the machine listens at, as NodeLocal DNS."""
    parsed = _address(address)
    return parsed is not None and parsed.is_link_local


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
