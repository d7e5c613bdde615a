# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM178: check the address by which kubelets reach the API servers: a balancer, a virtual one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...evidence.document import one_line, shell_name
from ...models import api_server, doubled_addresses, kube_vip_logs
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.control_plane import Process
from ...models.rancher_unit import RancherUnit
from ...models.result import EvidenceRef
from ...parsers import pflag
from ..base import (
    CheckResult,
    Detection,
    causes,
    cluster_check,
    present,
    unknown,
    without_kubernetes,
)
from ..node import doubled_addresses as sharing
from . import virtual_address

SERVER = "kube-apiserver"
# What keeps the control plane from starting while it runs: a kubelet starts static pods at once.
WAITING_SECONDS = 180
CONNECTION, NAME, CERTIFICATE = "connection", "name", "certificate"
_PLACE = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[^\s/:]{1,253})(?::([0-9]{1,5}))?")
# A connection that is taken and not answered; other errors of a handshake are of a certificate.
_SILENT = re.compile(r"timed out|EOF|[Cc]onnection reset")
_MEANWHILE = (
    "Meanwhile the API answers at each API server's own address: kubectl"
    " --server=https://ADDRESS:6443 --kubeconfig /etc/kubernetes/admin.conf get nodes"
)
_LOOPBACK = re.compile(r"127\.|::1$|localhost$")


@dataclass(frozen=True)
class _Front:
    """One address that kubelets have as the API server.

    hosts: those that use it and told whether they reach it; failing: those of them that do not
    """

    server: str
    host: str
    port: str
    hosts: tuple[Host, ...]

    @property
    def failing(self) -> list[Host]:
        """Return the hosts that do not reach it."""
        return [host for host in self.hosts if _fails(host)]

    @property
    def silent(self) -> list[Host]:
        """Return the hosts whose connection it takes and does not answer."""
        return [host for host in self.failing if _way(host)[0] == CERTIFICATE]


@cluster_check(
    "KM178",
    "Address of the API does not answer",
    severity="critical",
    applies="clusters whose kubelets use a load balancer, a virtual address or a name for the API",
    needs=(
        "system",
        "kubelet",
        "network",
        "manifests",
        "instances",
        "runtime",
        "api_way",
        "api_server",
        "system_pods",
    ),
    component=SERVER,
    explained_by=causes("KM530", component=SERVER),
)
def address(cluster: Cluster) -> Iterator[CheckResult]:
    """KM178: report an address of the API that no host reaches, or that keeps kubelets waiting."""
    if cluster.key is None:
        yield without_kubernetes(component=SERVER)
        return
    fronts = _fronts(cluster)
    hits = [hit for front in fronts for hit in _hits(cluster, front)]
    if hits:
        yield present(*hits, component=SERVER)
        return
    missing = [lack for host in cluster.hosts for lack in host.missing("api_way")]
    if fronts:
        missing = [lack for host in cluster.members for lack in host.missing("instances")]
    yield unknown(*missing, component=SERVER)


def _way(host: Host) -> tuple[str, str]:
    """Return (what of the way of a host fails, why), empty texts where nothing does."""
    if host.api_way is None or host.api_way.failed is None:
        return "", ""
    return host.api_way.failed, one_line(host.api_way.error or "", 160)


def _fails(host: Host) -> bool:
    """Tell whether a host gets no answer at all: a certificate that it refuses is another fault."""
    failed, error = _way(host)
    return failed in (CONNECTION, NAME) or (failed == CERTIFICATE and bool(_SILENT.search(error)))


def _fronts(cluster: Cluster) -> list[_Front]:
    """Return the addresses that are no API server's own."""
    direct = {place for host in cluster.hosts for place in _own_places(host)}
    fronts = [_front(server, users) for server, users in sorted(_users(cluster).items())]
    return [
        front
        for front in fronts
        if front is not None
        and (front.host, front.port) not in direct
        and not _is_local(front.host, list(front.hosts))
    ]


def _users(cluster: Cluster) -> dict[str, list[Host]]:
    """Return the hosts whose kubelet has each server, of those that told whether they reach it."""
    users: dict[str, list[Host]] = {}
    for host in cluster.hosts:
        if host.status == "ok" and host.api_way is not None and host.api_way.server:
            users.setdefault(one_line(host.api_way.server, 200), []).append(host)
    return users


def _front(server: str, users: list[Host]) -> _Front | None:
    match = _PLACE.match(server)
    if match is None:
        return None
    return _Front(server, match.group(1).strip("[]"), match.group(2) or "443", tuple(users))


def _is_local(address: str, users: list[Host]) -> bool:
    """Tell whether an address is each node's own, and not enough nodes tell of it.

    A node of the control plane has its own API server there.
    """
    if not _LOOPBACK.match(address):
        return False
    return len(users) < 2 or any(_processes(host) for host in users)


def _own_places(host: Host) -> Iterator[tuple[str, str]]:
    """Yield (address, port) that the flags of a host's API servers name."""
    if host.control_plane is None:
        return
    words = [use.words for use in host.control_plane.files if use.component == SERVER]
    words += [process.argv for process in _processes(host)]
    for argv in words:
        port = pflag.string_flag(argv, "secure-port") or "6443"
        for name in ("advertise-address", "bind-address"):
            value = pflag.string_flag(argv, name)
            if value:
                yield value, port


def _processes(host: Host) -> list[Process]:
    """Return the API servers of the cluster that run on a host."""
    if host.control_plane is None:
        return []
    return [
        process
        for process in host.control_plane.processes
        if process.component == SERVER and process.ours is not False
    ]


def _serves(host: Host) -> bool:
    """Tell whether an API server of this host answers at its own address, or else runs."""
    if host.api_servers is None:
        return bool(_processes(host))
    return any(not api_server.is_silent(server) for server in host.api_servers.servers)


def _hits(cluster: Cluster, front: _Front) -> Iterator[Detection]:
    if not front.failing or len(front.failing) < len(front.hosts):
        return
    serving = [host for host in cluster.hosts if _serves(host)]
    if serving:
        yield _unreached(cluster, front, serving)
        return
    waiting = [host for host in front.silent if _waits(host)]
    if waiting and not any(_processes(host) for host in cluster.hosts):
        yield _hanging(front, waiting)


def _waits(host: Host) -> bool:
    """Tell whether the kubelet of a host runs for a while and has started no static pod."""
    plane, started = host.control_plane, host.kubelet_started
    if plane is None or started is None or host.runtime_answers is False:
        return False
    if not plane.files or plane.kubelet_problem:
        return False
    if any(process.static for process in plane.processes):
        return False
    return plane.clock - started.timestamp() > WAITING_SECONDS


def _proofs(front: _Front, hosts: list[Host]) -> tuple[EvidenceRef, ...]:
    return tuple(
        EvidenceRef(
            "http", host.host, object=front.server, text=": ".join(filter(None, _way(host)))
        )
        for host in hosts[:3]
    )


def _unreached(cluster: Cluster, front: _Front, serving: list[Host]) -> Detection:
    failed, error = _way(front.failing[0])
    holders = [host.host for host in cluster.hosts if front.host in host.names]
    doubled = doubled_addresses.named(cluster, front.host)
    names = and_others([host.host for host in serving])
    holder, remedy = _holder(front, holders), _advice(front, failed, holders)
    obstacle = kube_vip_logs.Obstacle()
    if doubled is not None:
        holder = f"; {sharing.clause(doubled)}"
        remedy = f"{sharing.advice(cluster, doubled)}. {_MEANWHILE}"
    elif not holders and not _LOOPBACK.match(front.host):
        obstacle = _obstacle(cluster, front, failed)
    if obstacle.clause:
        holder, remedy = f"{holder}{obstacle.clause}", f"{obstacle.advice}. {_MEANWHILE}"
    return Detection(
        f"{_subject(front, failed)} ({error}). The API servers of {names} run{holder}",
        (*_proofs(front, front.failing), *obstacle.proofs),
        remedy,
        component=SERVER,
    )


def _obstacle(cluster: Cluster, front: _Front, failed: str) -> kube_vip_logs.Obstacle:
    """Return what keeps kube-vip from the address of the API, by its manifest or its logs."""
    asking = virtual_address.asking(cluster, front.host)
    if asking:
        return kube_vip_logs.Obstacle(
            virtual_address.clause(asking),
            virtual_address.advice(asking),
            tuple(row.proof for row in asking[: virtual_address.SHOWN]),
        )
    if failed != CONNECTION:
        return kube_vip_logs.Obstacle()
    return kube_vip_logs.obstacle(cluster.hosts)


def _subject(front: _Front, failed: str) -> str:
    """Return what the nodes do not reach, and whether one node alone told of it."""
    place = f"{front.host}:{front.port}, the address of the API"
    if len(front.hosts) == 1:
        only = f"for {front.hosts[0].host}, the only node that reported it"
        if failed == NAME:
            return f"nothing finds an address for {front.host}, the name of the API, {only}"
        return f"nothing answers at {place}, {only}"
    if failed == NAME:
        return f"none of the nodes finds an address for {front.host}, the name of the API"
    return f"none of the nodes gets an answer from {place}"


def _holder(front: _Front, holders: list[str]) -> str:
    """Return which machine has the address, as the end of a sentence."""
    if not re.fullmatch(r"[0-9.]+|[0-9A-Fa-f:.]+", front.host) or _LOOPBACK.match(front.host):
        return ""
    if len(holders) > 1:
        return f"; {and_others(holders)} have that address"
    if holders:
        return f"; {holders[0]} has that address"
    return "; none of the machines that were asked has that address"


def _agent(front: _Front) -> RancherUnit | None:
    """Return the agent of k3s or RKE2 whose load balancer the address is, or None."""
    if not _LOOPBACK.match(front.host):
        return None
    agents = [host.rancher for host in front.failing if host.rancher is not None]
    return next((agent for agent in agents if agent.is_agent), None)


def _advice(front: _Front, failed: str, holders: list[str]) -> str:
    if failed == NAME:
        return (
            f"let each node find {front.host}: getent hosts {front.host}, the resolver of"
            f" /etc/resolv.conf, or a line in /etc/hosts. {_MEANWHILE}"
        )
    agent = _agent(front)
    if agent is not None:
        return (
            f"that is the load balancer that each agent of {agent.title} has on its own machine:"
            f" systemctl restart {shell_name(agent.name, 'UNIT')} on each of these nodes, whose"
            f" containers go on to run. {agent.servers_file} has the servers that it knows."
            f" {_MEANWHILE}"
        )
    if holders:
        return (
            f"see on {and_others(holders)} which program listens there (ss -ltnp), whether that"
            f" proxy runs, and which servers it counts as healthy. {_MEANWHILE}"
        )
    return (
        "see what is to hold that address: an external load balancer, or keepalived or kube-vip on"
        " the control-plane nodes (ip -br address; systemctl status keepalived haproxy; crictl ps"
        " -a). What runs as a pod of a DaemonSet needs the API to be started: let a unit of systemd"
        " or a static pod set the address. Where keepalived or kube-vip runs and the address is"
        " gone, restart it (systemctl restart keepalived; crictl stop of the container of kube-vip,"
        " which the kubelet starts again), and look what removed the address: systemd-networkd"
        " takes away what it did not set when it starts (journalctl -u systemd-networkd;"
        " KeepConfiguration=yes below [Network] of that interface keeps it). By hand on one"
        " control-plane node, if you decide so:"
        f" ip address add {front.host}/32 dev INTERFACE. {_MEANWHILE}"
    )


def _hanging(front: _Front, waiting: list[Host]) -> Detection:
    names = and_others([host.host for host in waiting])
    return Detection(
        f"{front.host}:{front.port}, the address of the API, takes connections and does not answer"
        f" on them while no API server runs; the kubelets of {names} run and start no static pod,"
        " as kubelets do that wait for that answer (Kubernetes 1.20 and others)",
        _proofs(front, waiting),
        "let the address refuse connections while no API server runs, and the kubelets start their"
        " static pods: stop the load balancer for a moment (systemctl stop haproxy, or take the"
        " virtual address away), restart the kubelets where they go on waiting (systemctl restart"
        " kubelet), and start it again when an API server answers. For good: let it close"
        " connections without a backend that is well (health checks of TCP or /readyz)",
        component=SERVER,
    )
