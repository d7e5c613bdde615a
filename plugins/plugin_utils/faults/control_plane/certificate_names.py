# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM125: check that certificates of servers have the names and addresses that clients use.

Those of kubelets are judged in kubelet_serving.py.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...evidence.answers.node.api_way import ApiWay
from ...evidence.document import one_line
from ...models.certificates import API, COLLECTOR, ETCD, Used
from ...models.cluster import Cluster, Host
from ...models.result import EvidenceRef
from ...parsers import pflag, x509_certificate
from ..base import CheckResult, Detection, cluster_check, without_kubernetes
from . import certificate_renewal, kubelet_serving
from .authorities import control_plane
from .kubeconfigs import server_name

MISMATCH = ("mismatch", "doesn't match", "not valid for")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
SHOWN = 6
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class _Lack(NamedTuple):
    """A name that a certificate of a host lacks, who uses it, and what shows that."""

    host: Host
    use: Used
    name: str
    users: str
    proof: EvidenceRef


@cluster_check(
    "KM125",
    "Certificate lacks a name or an address that clients use",
    severity="critical",
    applies="clusters with an audited control-plane node",
    needs=(COLLECTOR, "instances", "api_way"),
    cluster_needs=("nodes",),
)
def lacking(cluster: Cluster) -> Iterator[CheckResult]:
    """KM125: report servers whose certificate lacks an address by which clients ask them."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    rows = [*_of_services(cluster), *_of_kubeconfigs(cluster), *_of_etcd(cluster)]
    missing = tuple(lack for host in cluster.members for lack in host.missing(COLLECTOR))
    yield CheckResult((_hit(rows),) if rows else (), missing)
    yield kubelet_serving.result(cluster)


def _hit(rows: list[_Lack]) -> Detection:
    clauses = [
        f"{row.use.place} of {row.host.host} lacks {row.name}, by which {row.users} reach it"
        for row in rows
    ]
    if len(clauses) > SHOWN:
        clauses[SHOWN:] = [f"and {len(clauses) - SHOWN} more"]
    command = certificate_renewal.command(rows[0].host, [row.use for row in rows])
    return Detection(
        "; ".join(clauses),
        tuple(dict.fromkeys(proof for row in rows for proof in (_names(row), row.proof))),
        "have a certificate made with all names. With kubeadm: add them to apiServer.certSANs (or"
        " etcd.local.serverCertSANs, peerCertSANs) of the ClusterConfiguration in ConfigMap"
        " kube-system/kubeadm-config, move the certificate and its key aside on each control-plane"
        " node, and kubeadm init phase certs apiserver (etcd-server, etcd-peer) --config FILE"
        f" ({command} keeps the former names). With k3s and RKE2: tls-san in the server's"
        " configuration, and restart it. Or let the clients use a name that it has",
        component="certificates",
    )


def _names(row: _Lack) -> EvidenceRef:
    text = one_line(f"valid for {', '.join(sorted(row.use.leaf.names))}", 600)
    return EvidenceRef("file", row.host.host, path=row.use.place, text=text)


def _servers(cluster: Cluster) -> Iterator[tuple[Host, Used]]:
    """Yield the API servers whose certificate has alternative names."""
    for host, certificates in control_plane(cluster):
        use = certificates.file(API, "tls-cert-file")
        if use is not None and use.leaf.names:
            yield host, use


def _argvs(host: Host, component: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    if host.control_plane is not None:
        for process in host.control_plane.processes_of(component):
            yield process.pid, process.argv


def _of_services(cluster: Cluster) -> Iterator[_Lack]:
    """Yield certificates without the address of the Service kubernetes, which pods use."""
    for host, use in _servers(cluster):
        for pid, argv in _argvs(host, API):
            network = _service_network(pflag.string_flag(argv, "service-cluster-ip-range"))
            if network is None or any(_is_in(name, network) for name in use.leaf.names):
                continue
            name = str(network.network_address + 1)
            text = f"--service-cluster-ip-range={network}"
            proof = EvidenceRef("process", host.host, pid=pid, object=API, text=text)
            yield _Lack(host, use, name, "pods", proof)


def _service_network(ranges: str | None) -> Network | None:
    """Return the first range of Services, whose first address is that of the Service kubernetes."""
    try:
        return ipaddress.ip_network((ranges or "").partition(",")[0], strict=False)
    except ValueError:
        return None


def _is_in(name: str, network: Network) -> bool:
    """Tell whether a name is an address of a network.

    A bundle without names keeps the network of an address, and not which one of it it is.
    """
    try:
        return ipaddress.ip_address(name) in network
    except ValueError:
        return False


class _Client(NamedTuple):
    """A kubeconfig and the server that it names; failed: whether it did not accept the name."""

    host: Host
    user: str
    name: str
    failed: bool


def _of_kubeconfigs(cluster: Cluster) -> Iterator[_Lack]:
    """Yield certificates without the name by which kubelets and components ask the server."""
    clients = list(_clients(cluster))
    for name in dict.fromkeys(client.name for client in clients):
        users = [client for client in clients if client.name == name]
        for host, use in _asked(cluster, name, users):
            if not x509_certificate.covers(use.leaf, name):
                names = ", ".join(dict.fromkeys(client.user for client in users[:SHOWN]))
                text = f"server {name} in the kubeconfig of {users[0].user}"
                proof = EvidenceRef("file", users[0].host.host, object="kubeconfig", text=text)
                yield _Lack(host, use, name, names, proof)


def _clients(cluster: Cluster) -> Iterator[_Client]:
    for host in cluster.hosts:
        way = host.api_way or ApiWay()
        name = server_name(way.server or "").lower()
        if name:
            yield _Client(host, f"the kubelet of {host.host}", name, _is_refused(way))
    for host, certificates in control_plane(cluster):
        for row in certificates.kubeconfigs:
            name = server_name(row.server).lower()
            if row.component and name:
                yield _Client(host, f"{row.component} of {host.host}", name, failed=False)


def _is_refused(way: ApiWay) -> bool:
    """Tell whether a client did not accept the name of the server."""
    error = one_line(way.error or "", 300).lower()
    return way.failed == "certificate" and any(sign in error for sign in MISMATCH)


def _asked(cluster: Cluster, name: str, users: Iterable[_Client]) -> Iterator[tuple[Host, Used]]:
    """Yield the API servers that this name leads to.

    A name of no host is a balancer's. What is behind it is shown by a server whose certificate has
    the name, or by a client that did not accept it; else it may have a certificate of its own.
    """
    servers = list(_servers(cluster))
    owners = [row for row in servers if name in row[0].names]
    if owners:
        yield from owners
        return
    if any(name in host.names for host in cluster.hosts):
        return
    is_theirs = any(x509_certificate.covers(use.leaf, name) for _host, use in servers)
    if name in LOOPBACK:
        is_theirs = False
    if is_theirs or any(client.failed for client in users):
        yield from servers


def _of_etcd(cluster: Cluster) -> Iterator[_Lack]:
    """Yield certificates of etcd without the address by which servers and members ask it."""
    for host, certificates in control_plane(cluster):
        server, peer = (
            certificates.file(ETCD, "cert-file"),
            certificates.file(ETCD, "peer-cert-file"),
        )
        for pid, argv in _argvs(host, API):
            for name in _hosts_of(pflag.string_flag(argv, "etcd-servers")):
                if name in LOOPBACK or name in host.names:
                    yield from _lack(host, server, name, "API servers", (pid, "etcd-servers"))
        for pid, argv in _argvs(host, ETCD):
            for name in _hosts_of(pflag.string_flag(argv, "initial-advertise-peer-urls")):
                flag = "initial-advertise-peer-urls"
                yield from _lack(host, peer, name, "other members", (pid, flag))


def _lack(
    host: Host, use: Used | None, name: str, users: str, shown_by: tuple[int, str]
) -> Iterator[_Lack]:
    if use is None or not use.leaf.names or x509_certificate.covers(use.leaf, name):
        return
    pid, flag = shown_by
    proof = EvidenceRef("process", host.host, pid=pid, text=f"--{flag} has {name}")
    yield _Lack(host, use, name, users, proof)


def _hosts_of(urls: str | None) -> list[str]:
    names = [
        server_name(url) for url in (urls or "").split(",") if url.strip().startswith("https://")
    ]
    return [one_line(name, 200) for name in dict.fromkeys(names) if name]
