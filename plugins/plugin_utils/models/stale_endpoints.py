# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of the Service kubernetes at which no API server is any more. Pure.

Each API server keeps a key with its address below /registry/masterleases in etcd, which ends 15
seconds after its last renewal. A key without that end stays when its master is removed (restored
data, etcd of an older release), and all API servers go on to write its address into the Service.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..evidence.answers.cluster.endpoints import Endpoints
from ..evidence.answers.cluster.locks import Locks
from ..evidence.answers.cluster.nodes import Nodes
from ..evidence.document import one_line
from . import node_hosts
from .cluster import Cluster, UnlistedMember
from .membership import etcd_names
from .result import EvidenceRef

# What the collector and kubectl say where no server answers; one that refuses a client does.
_NO_ANSWER = re.compile(
    r"\bno (?:answer|connection)\b|does not answer|timed? ?out|[Nn]o route to host|unreachable"
    r"|[Cc]onnection refused|deadline exceeded"
)
_TO_API = re.compile(r"https://(?P<address>\[[0-9a-f:]{2,45}\]|[\d.]{7,15}):443/apis?/")


@dataclass(frozen=True)
class StaleEndpoint:
    """One such address. reason: what shows that nothing answers there, a clause."""

    address: str
    place: str
    reason: str
    proof: EvidenceRef


def find(cluster: Cluster, stranger: UnlistedMember) -> StaleEndpoint | None:
    """Return the stale address that was taken for a member of the control plane, or None.

    A master that the inventory lacks has a Node and a member of etcd as the audited ones do.
    """
    places = cluster.typed(Endpoints).addresses
    place = next((row for row in places if _address(row) == stranger.name), "")
    if not place or cluster.unplaced or not _masters_are_known(cluster):
        return None
    if _is_named(cluster, stranger.name):
        return None
    return _asked(cluster, place) or _timed_out(cluster, place)


def _address(place: str) -> str:
    return place.rsplit(":", 1)[0].strip("[]")


def _masters_are_known(cluster: Cluster) -> bool:
    """Tell whether each audited master is a Node and a member of etcd, so that others are, too."""
    if not cluster.answered(Nodes) or cluster.cut("nodes"):
        return False
    registered = {host.host for host in cluster.node_hosts.values() if host is not None}
    etcd = _etcd_names(cluster)
    return bool(cluster.members) and all(
        host.host in registered and not etcd.isdisjoint(host.names) for host in cluster.members
    )


def _etcd_names(cluster: Cluster) -> set[str]:
    members = [member for host in cluster.hosts for member in host.etcd.members]
    return {name for member in members for name in etcd_names(member)}


def _is_named(cluster: Cluster, address: str) -> bool:
    """Tell whether a Node or a member of etcd has this address."""
    nodes = cluster.typed(Nodes).items
    return address in _etcd_names(cluster) or any(
        address in node_hosts.names(node) for node in nodes
    )


def _asked(cluster: Cluster, place: str) -> StaleEndpoint | None:
    """Return that the address itself gave no answer when its locks were asked for."""
    server = next((row for row in cluster.typed(Locks).servers if row.address == place), None)
    if server is None or server.kube_system_uid or server.objects:
        return None
    error = one_line(server.error or "", 200)
    if not _NO_ANSWER.search(error):
        return None
    proof = EvidenceRef("http", cluster.api_host, object=f"https://{place}", text=error)
    return StaleEndpoint(_address(place), place, f"it does not answer ({error})", proof)


def _timed_out(cluster: Cluster, place: str) -> StaleEndpoint | None:
    """Return that pods get no answer in time from the Service, unless the address answers."""
    if any(row.address == place for row in cluster.typed(Locks).servers):
        return None
    masters = {_address(row) for row in cluster.typed(Endpoints).addresses}
    for host in cluster.hosts:
        masters |= host.names
    for host in cluster.hosts:
        for pod in host.pod_errors.rows:
            match = _TO_API.search(pod.message)
            if pod.kind != "timeout" or match is None or match.group("address") in masters:
                continue
            service = one_line(match.group("address"), 45)
            reason = (
                f"{one_line(pod.pod, 120)} on {host.host} gets no answer in time from the Service"
                f" ({service}:443)"
            )
            proof = EvidenceRef("log", host.host, path=pod.path, text=one_line(pod.message, 300))
            return StaleEndpoint(_address(place), place, reason, proof)
    return None
