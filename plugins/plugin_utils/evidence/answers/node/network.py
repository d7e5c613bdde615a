# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `network`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..file_record import Unread


@dataclass(frozen=True)
class Resolver:
    """One resolv.conf."""

    path: str = ""
    nameservers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Interface:
    """An interface, or all of one kind that pods have (cali*)."""

    name: str = ""
    count: int = 0
    kind: str = ""
    mtu: int | None = None  # the largest of them
    rp_filters: tuple[int, ...] = ()
    mac: str | None = None  # of a tunnel (vxlan) alone


@dataclass(frozen=True)
class LinkAddress:
    """An address of the host, and the interface that has it ("" where that is not known)."""

    address: str = ""
    dev: str = ""


@dataclass(frozen=True)
class Route:
    """A route of the main table for IPv4."""

    to: str = ""
    dev: str = ""  # "*" where it leads nowhere
    kind: str = ""  # blackhole, or unreachable and prohibit; an older release had no kind

    @property
    def is_dead_end(self) -> bool:
        """Tell whether the kernel throws away what is sent there."""
        return bool(self.kind) or self.dev == "*"


@dataclass(frozen=True)
class ServiceSetting:
    """One line of a configuration file."""

    path: str = ""
    line: int | None = None
    section: str = ""
    key: str = ""
    value: str = ""


@dataclass(frozen=True)
class NetworkService:
    """A service that manages interfaces, and what its files tell it of those of others."""

    active: bool | None = None
    since: float | None = None
    rows: tuple[ServiceSetting, ...] = ()
    unread: tuple[Unread, ...] = ()
    systemd: int | None = None  # the release of systemd, which only networkd has


@dataclass(frozen=True)
class Iptables:
    """The legacy tables, and which backend has chains of Services; None: not known."""

    tables: tuple[str, ...] | None = None
    legacy: bool | None = None
    nft: bool | None = None


@dataclass(frozen=True)
class DoubledRule:
    """A rule that one chain has several times."""

    chain: str = ""
    rule: str = ""
    count: int = 0


@dataclass(frozen=True)
class PolicyRules:
    """The chains of kube-router's network policies in one backend of iptables.

    linked: the kernel's chains that lead to them
    """

    backend: str = ""
    linked: tuple[str, ...] = ()
    pods: int = 0
    policies: int = 0
    rules: int = 0
    doubled: tuple[DoubledRule, ...] = ()


@dataclass(frozen=True)
class PolicyChains:
    """The chains of network policies on a node of k3s, or with kube-router (router).

    off: the flag or file:line by which k3s does not run its own controller
    """

    router: bool = False
    off: str = ""
    backends: tuple[PolicyRules, ...] = ()


@dataclass(frozen=True)
class Conntrack:
    """How many connections the kernel tracks, and may track."""

    count: int | None = None
    max: int | None = None


@dataclass(frozen=True)
class Neighbours:
    """One table of neighbours."""

    family: str = ""
    entries: int | None = None
    most: int | None = None
    overflows: int | None = None  # since the boot


@dataclass(frozen=True)
class Network:
    """What a node has for its pods' traffic beside their network plugin."""

    resolvers: tuple[Resolver, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    # None: the kernel gave no answer, or an older release collected
    addresses: tuple[LinkAddress, ...] | None = None
    rp_filter: int | None = None  # of all
    # of interfaces with routes; None: kube-proxy has no interface of its own
    arp_ignore: Mapping[str, int] | None = None
    routes: tuple[Route, ...] | None = None
    routes_cut: bool = False
    networkd: NetworkService | None = None
    network_manager: NetworkService | None = None
    iptables: Iptables | None = None
    policy_chains: PolicyChains | None = None
    conntrack: Conntrack | None = None
    neighbours: tuple[Neighbours, ...] = ()
    # loaded, builtin, available or absent; None: not known
    modules: Mapping[str, str | None] | None = None
    # y, m or n, by the kernel's configuration; None: it is not there, or an older release collected
    kernel_options: Mapping[str, str | None] | None = None
