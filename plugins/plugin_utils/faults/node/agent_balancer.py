# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell of a kubelet whose way to the API is the load balancer of its own agent of k3s or RKE2.

The agent takes the connection and passes it on to a server of its list. A connection that stays
without an answer, or is closed, is of the agent or of the server behind it, not of the network
between both ends that the kubelet has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...evidence.answers.cluster.endpoints import Endpoints
from ...evidence.answers.cluster.nodes import Nodes
from ...evidence.answers.node.api_way import ApiWay
from ...evidence.document import one_line, shell_name
from ...models import node_hosts
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.rancher_unit import RancherUnit
from ...models.result import EvidenceRef
from ...parsers import release_number

API = "kube-apiserver"
STOPPED = "KM502"
CLOSED_DOOR = "does not listen there"
SILENCE = "takes the connection and answers nothing"
_LOCAL = re.compile(r"https://(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\]|localhost):\d{1,5}(?:/|$)")
_REFUSED = re.compile(r"refused")
_SILENT = re.compile(r"no TLS handshake follows|timed out")
_CLOSED = re.compile(r"EOF|[Cc]onnection reset|[Bb]roken pipe")
# k3s: pull request 9757 brought checks of servers, with a lock that 10511 took out again.
_LOCKED = (
    ("1.27.13", "1.27.16"),
    ("1.28.9", "1.28.12"),
    ("1.29.4", "1.29.7"),
    ("1.30.0", "1.30.3"),
)
# Before that, an agent of RKE2 keeps its connections to a server whose unit is stopped.
_UNCHECKED = (("0", "1.27.13"), ("1.28.0", "1.28.9"), ("1.29.0", "1.29.4"))
_UPDATE = (
    "Then update {title} to 1.27.16, 1.28.12, 1.29.7, 1.30.3 or newer: older agents stay with a"
    " server that is stopped, or have a deadlock of the load balancer"
    " (https://github.com/k3s-io/k3s/pull/10511)"
)


Server = tuple[Host, RancherUnit]


@dataclass(frozen=True)
class Obstacle:
    """Why the API does not hear a kubelet: a clause, the advice, and its evidence."""

    clause: str
    advice: str
    proofs: tuple[EvidenceRef, ...] = ()
    because: tuple[str, ...] = ()


def find(cluster: Cluster, host: Host) -> Obstacle | None:
    """Return what keeps a kubelet from the API that its own agent connects it to, or None."""
    way, agent = host.api_way, host.rancher
    if way is None or agent is None or not agent.is_agent:
        return None
    if not _LOCAL.match(way.server or "") or _serves(host):
        return None
    state = _state(way)
    if not state:
        return None
    address = one_line(way.server, 200).removeprefix("https://").rstrip("/")
    return _found(cluster, host, agent, (address, state))


def _found(cluster: Cluster, host: Host, agent: RancherUnit, door: tuple[str, str]) -> Obstacle:
    """Return a load balancer with what is known of its servers.

    door: its address, and what becomes of a connection
    """
    address, state = door
    stopped: list[Server] = []
    if state != CLOSED_DOOR:
        stopped = _stopped(cluster, agent)
    clauses = [
        f"its kubeconfig names {address}, the load balancer of its own {agent.short_name},"
        f" which {state}",
        *_servers(cluster, agent),
        *_stays(host, agent, stopped),
        *_deadlock(host, agent, state),
    ]
    proofs = tuple(
        EvidenceRef("log", host.host, object=agent.source, text=line) for line in agent.lines[:2]
    )
    because: tuple[str, ...] = ()
    if any(unit.state == "inactive" for _server, unit in stopped):
        because = (STOPPED,)
    return Obstacle("; ".join(clauses), _advice(cluster, host, agent, stopped), proofs, because)


def _state(way: ApiWay) -> str:
    """Return what becomes of a connection, "" where a server answers, trusted or not."""
    error = way.error or ""
    if not way.failed:
        return ""
    if _REFUSED.search(error):
        return CLOSED_DOOR
    if _SILENT.search(error):
        return SILENCE
    if _CLOSED.search(error):
        return "takes the connection and closes it"
    return ""


def _serves(host: Host) -> bool:
    """Tell whether an API server runs on a host: the address is its own then."""
    plane = host.control_plane
    return plane is not None and bool(plane.processes_of(API))


def _stopped(cluster: Cluster, agent: RancherUnit) -> list[Server]:
    """Return the servers of the cluster whose unit does not run."""
    units = [(host, host.rancher) for host in cluster.members if host.status == "ok"]
    return [(host, unit) for host, unit in units if unit and _is_stopped_server(unit, agent)]


def _is_stopped_server(unit: RancherUnit, agent: RancherUnit) -> bool:
    return unit.program == agent.program and not unit.is_agent and unit.is_stopped


def _servers(cluster: Cluster, agent: RancherUnit) -> list[str]:
    """Return which servers the agent gets no connection to."""
    gone = [_place(*place) for place in agent.lost if not _is_known(cluster, place[0])]
    unreached = [_place(*place) for place in agent.lost if _is_known(cluster, place[0])]
    clauses = []
    if gone:
        clauses.append(
            f"the agent goes on to try {and_others(gone)}, which no Node and no API server of the"
            " cluster has"
        )
    if unreached:
        clauses.append(f"the agent does not reach {and_others(unreached)}")
    return clauses


def _stays(host: Host, agent: RancherUnit, stopped: list[Server]) -> list[str]:
    """Return which servers are stopped, and whether an agent of this release stays with them."""
    if not stopped:
        return []
    names = and_others([f"{unit.short_name} of {server.host}" for server, unit in stopped])
    release = host.releases.version("kubelet")
    if agent.program != "rke2":  # an API server of k3s ends with its unit
        return [f"{names} does not run"]
    if release is None:
        return [f"{names} does not run, and agents of older releases stay with such a server"]
    if not _is_of(release, _UNCHECKED):
        return [f"{names} does not run"]
    return [
        f"{names} does not run, and agents of {agent.title} {one_line(release, 40)} stay with such"
        " a server"
    ]


def _is_of(release: str | None, bounds: tuple[tuple[str, str], ...]) -> bool:
    return any(release_number.is_within(release, first, fixed) for first, fixed in bounds)


def _place(address: str, port: str) -> str:
    if ":" in address:
        return f"[{address}]:{port}"
    return f"{address}:{port}"


def _is_known(cluster: Cluster, address: str) -> bool:
    """Tell whether a host, a Node or an API server has this address, or that may be so."""
    if not cluster.answered(Nodes) or cluster.cut("nodes"):
        return True
    if any(address in host.names for host in cluster.hosts):
        return True
    if any(address in node_hosts.names(node) for node in cluster.typed(Nodes).items):
        return True
    places = cluster.typed(Endpoints).addresses
    return address in {place.rsplit(":", 1)[0].strip("[]") for place in places}


def _deadlock(host: Host, agent: RancherUnit, state: str) -> list[str]:
    """Return the deadlock of a release, where it looks like that and this one has it."""
    release = host.releases.version("kubelet")
    if state != SILENCE or not _is_of(release, _LOCKED):
        return []
    return [
        f"{agent.title} {one_line(release, 40)} has a deadlock of that load balancer, which a"
        " change of the list of servers brings about"
    ]


def _advice(
    cluster: Cluster,
    host: Host,
    agent: RancherUnit,
    stopped: list[Server],
) -> str:
    """Return what brings the agent to a server that answers."""
    restart = f"systemctl restart {shell_name(agent.name, 'UNIT')} on {host.host}"
    file = f"{agent.servers_file} has the servers that it knows"
    if not any(map(_serves, cluster.hosts)):
        return (
            "first see that an API server runs on a server; where the agent does not find it then,"
            f" {restart}. {file}"
        )
    steps = [
        f"systemctl start {shell_name(unit.name, 'UNIT')} on {server.host}, if it is to run"
        for server, unit in stopped
    ]
    steps.append(
        f"{restart}, whose containers go on to run: it connects with a server that answers. {file}"
    )
    release = host.releases.version("kubelet")
    advice = "; or ".join(steps)
    if release is not None and not _is_of(release, (*_UNCHECKED, *_LOCKED)):
        return advice
    return f"{advice}. {_UPDATE.format(title=agent.title)}"
