# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find addresses that more than one machine has: a part of KM530.

A virtual address is on two machines where its managers do not hear one another, or where one of
them ended and left it. An administrator may also give one static address to two machines.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...evidence.document import one_line, shell_name
from ...models import doubled_addresses
from ...models.api_node import and_others, views
from ...models.cluster import Cluster, Host
from ...models.doubled_addresses import SharedAddress
from ...models.result import EvidenceRef
from ..base import Detection
from .flannel_tunnels import ADDRESS as FLANNEL_ADDRESS

COMPONENT = "address"
KUBE_VIP = "kube-vip"
MAX_HITS, SHOWN = 10, 5
# The kernel's addresses, by whether they are of IPv6.
_TABLES = {False: "/proc/net/fib_trie", True: "/proc/net/if_inet6"}


def hits(cluster: Cluster) -> Iterator[Detection]:
    """Yield the first addresses that are on several machines, those of the API first."""
    for row in doubled_addresses.find(cluster)[:MAX_HITS]:
        yield _hit(cluster, row)


def clause(row: SharedAddress) -> str:
    """Return that machines have an address at the same time, and which have no API server."""
    names = and_others([host.host for host in row.holders], SHOWN)
    text = f"{names} have that address at the same time"
    if not row.idle:
        return text
    return f"{text}, and {idle(row)}"


def idle(row: SharedAddress) -> str:
    """Return which of the machines have no API server, as a clause."""
    names = and_others([host.host for host in row.idle], SHOWN)
    return f"no API server runs on {names}: what arrives there is refused or lost"


def _hit(cluster: Cluster, row: SharedAddress) -> Detection:
    severity, component = None, COMPONENT
    if row.idle:
        severity = "critical"
    if row.is_api:
        component = doubled_addresses.API
    return Detection(
        f"{_subject(row)} is on {and_others([_place(host, row) for host in row.holders], SHOWN)} at"
        f" the same time: each of them answers for it, and packets to it go now to one, now to"
        f" another{_effects(cluster, row)}. The machines were read one after the other: an address"
        " that moved in between looks the same",
        tuple(_proof(host, row) for host in row.holders[:SHOWN]),
        advice(cluster, row),
        component=component,
        severity=severity,
    )


def _subject(row: SharedAddress) -> str:
    address = one_line(row.address, 60)
    if row.is_api:
        return f"{address}, the address of the API,"
    if row.owners:
        return f"{address}, the address of the node {and_others(list(row.owners))},"
    return f"the address {address}"


def _place(host: Host, row: SharedAddress) -> str:
    dev = _device(host, row)
    if not dev:
        return host.host
    return f"{host.host} ({dev})"


def _device(host: Host, row: SharedAddress) -> str:
    """Return the interface that has an address; a macvlan of kube-vip is for that alone."""
    if row.owners:
        return host.held.own.get(row.address, "")
    return host.held.own.get(row.address, "") or host.held.vip_link


def _effects(cluster: Cluster, row: SharedAddress) -> str:
    clauses = []
    if row.idle:
        clauses.append(f"; {idle(row)}")
    names = [
        view.name
        for view in views(cluster)
        if (view.plugin_addresses or {}).get(FLANNEL_ADDRESS) == row.address
    ]
    if names:
        clauses.append(
            f"; flannel of {and_others(names)} took it for the node's own address"
            f" ({FLANNEL_ADDRESS}), to which the other nodes send packets for its pods"
        )
    return "".join(clauses)


def _proof(host: Host, row: SharedAddress) -> EvidenceRef:
    dev, read_at = _device(host, row), one_line(host.registration.collected_at, 40)
    place = row.address
    if dev:
        place += f" at {dev}"
    text = one_line(f"has {place}, read at {read_at}", 200)
    return EvidenceRef("file", host.host, path=_TABLES[":" in row.address], text=text)


def advice(cluster: Cluster, row: SharedAddress) -> str:
    """Return how one machine alone gets an address, and how that is checked first."""
    address = shell_name(row.address, "ADDRESS")
    names = and_others([host.host for host in row.holders], SHOWN)
    return (
        f"check first that this is still so: ip -br address on {names}. {_managers(cluster, row)}."
        " On the machine that should not have the address, where it is still there:"
        f" {_removal(row, address)}.{_announcement(address)} Where the kubelet, flannel or etcd"
        " took it for the address of the node (kubectl get nodes -o wide), restart that program."
        " Where no program manages the address, two machines were configured with it: give each its"
        " own"
    )


def _announcement(address: str) -> str:
    """Return how the other machines learn who has an address; arping is of IPv4 alone."""
    if ":" in address:
        return ""
    return f" Then on the machine that should have it: arping -U -c 3 -I INTERFACE {address}."


def _managers(cluster: Cluster, row: SharedAddress) -> str:
    """Return which machine is to have an address, by what manages it."""
    kube_vip = (
        "With kube-vip, its lease names the machine that should have the address (kubectl get"
        " leases -A | grep plndr). On the other machine, crictl stop $(crictl ps -q --name"
        " kube-vip) makes kube-vip start again; then it has to follow that lease"
    )
    if _has_kube_vip(cluster, row):
        return kube_vip
    keepalived = (
        "With keepalived, each machine in state MASTER (journalctl -u keepalived on it, or the log"
        " of its pod) does not hear the others. In keepalived.conf of all of them,"
        " virtual_router_id and authentication have to be the same, and unicast_peer has to name"
        " the others. VRRP (protocol 112, 224.0.0.18) has to pass between them. A machine that is"
        " no load balancer and has no API server should not run keepalived for this address"
    )
    return f"{keepalived}. {kube_vip}"


def _has_kube_vip(cluster: Cluster, row: SharedAddress) -> bool:
    """Tell whether kube-vip manages an address, by its interface or its static pods."""
    if any(host.held.vip_link for host in row.holders):
        return True
    planes = [host.control_plane for host in cluster.hosts if host.control_plane is not None]
    return any(KUBE_VIP in name for plane in planes for _path, name in plane.others)


def _removal(row: SharedAddress, address: str) -> str:
    link = next((host.held.vip_link for host in row.holders if host.held.vip_link), "")
    if link and all(_device(host, row) in ("", host.held.vip_link) for host in row.holders):
        return f"ip link delete {shell_name(link, 'INTERFACE')}"
    return f"ip address del {address}/LENGTH dev INTERFACE (both as ip address shows them)"
