# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find settings of k3s and RKE2 by which their own tunnel ends where nothing listens.

Since 1.24 the API server reaches kubelets by a tunnel that each agent has to the servers. The
server looks for it at its loopback, and the agent for the kubelet at that of its node. An address
in the configuration takes one of both off the loopback. A part of KM536 and KM177.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...evidence.document import one_line, shell_name
from ...models.api_node import NodeView, and_others, views
from ...models.cluster import Cluster, Host
from ...models.kubelet.supervisor import Place
from ...models.rancher_unit import RancherUnit
from ...models.result import EvidenceRef
from ...parsers import release_number
from ..base import Detection

K3S, BIND, PORT = "k3s", "bind-address", 6443
FIRST = (1, 24)  # the first releases with the option egress-selector-mode
# https://github.com/k3s-io/k3s/pull/5780: before it the server looked at the loopback alone.
_BEFORE_BIND = (("1.24.0", "1.24.3"),)
# https://github.com/k3s-io/k3s/pull/10480: kubelets got the address that k3s binds to, and the
# tunnel did not look there. Only releases in which the maintainers saw it.
_KUBELET_AT_BIND = (
    ("1.27.15", "1.27.16"),
    ("1.28.11", "1.28.12"),
    ("1.29.6", "1.29.7"),
    ("1.30.2", "1.30.3"),
)
# Since then the tunnel looks for the kubelet at that address.
_FOLLOWS_BIND = "1.27.16"
_EFFECT = "logs, exec and port-forward fail for its pods"
_DISABLE = (
    "egress-selector-mode: disabled into the configuration of all servers, and restart k3s or RKE2"
    " on one after the other: API servers then connect to kubelets directly, and each server has to"
    " reach port 10250 of every node"
)


class Obstacle(NamedTuple):
    """One host whose setting breaks the tunnel, by its Node of the API."""

    host: Host
    view: NodeView
    unit: RancherUnit
    place: Place


def hits(cluster: Cluster) -> Iterator[Detection]:
    """Yield the settings of hosts by which API servers do not reach kubelets."""
    if _is_without_tunnel(cluster):
        return
    servers = servers_elsewhere(cluster)
    if servers:
        yield _of_servers(servers)
    for row in _units(cluster, "kubelet_address"):
        if not _is_followed(row):
            yield _of_kubelet(row)
    for row in _units(cluster, "bind_address"):
        if row.unit.kubelet_address is None and _is_of(row, _KUBELET_AT_BIND):
            yield _of_bind_address(row)


def servers_elsewhere(cluster: Cluster) -> list[Obstacle]:
    """Return the servers of k3s that look for their tunnel where they do not listen."""
    if _is_without_tunnel(cluster):
        return []
    return [
        row
        for row in _units(cluster, "bind_address")
        if not row.unit.is_agent and _is_of(row, _BEFORE_BIND)
    ]


def clause(rows: list[Obstacle]) -> str:
    """Return that servers look for their tunnel where they do not listen, as a clause."""
    names = and_others([row.host.host for row in rows])
    release = one_line(rows[0].view.kubelet, 40)
    places = and_others([f"{_setting(row)} of {row.host.host}" for row in rows], 3)
    return (
        f"k3s {release} of {names} looks for its tunnel to kubelets and to aggregated APIs at"
        f" 127.0.0.1:{PORT}, and listens elsewhere: {places}"
    )


def advice(rows: list[Obstacle]) -> str:
    """Return how servers find their tunnel."""
    name = shell_name(rows[0].unit.name, "UNIT")
    return (
        "update k3s to 1.24.3 or newer, which looks for the tunnel where it listens"
        " (https://github.com/k3s-io/k3s/pull/5780). Until then, on one server after the other,"
        f" remove bind-address from the configuration and systemctl restart {name}; or write"
        f" {_DISABLE}"
    )


def proofs(rows: list[Obstacle]) -> tuple[EvidenceRef, ...]:
    """Return the lines that set the address."""
    return tuple(proof for row in rows[:3] for proof in _proofs(row))


def _units(cluster: Cluster, name: str) -> Iterator[Obstacle]:
    """Yield the hosts with a release that has the tunnel, and with this setting."""
    for view in views(cluster):
        host = view.host
        if host is None or host.rancher is None or not host.rancher.is_read:
            continue
        unit = host.rancher
        number, place = release_number.parse(view.kubelet), getattr(unit, name)
        if place is not None and number is not None and number[:2] >= FIRST:
            yield Obstacle(host, view, unit, place)


def _is_without_tunnel(cluster: Cluster) -> bool:
    """Tell whether a server works without the tunnel, or no server's configuration is known."""
    units = [host.rancher for host in cluster.hosts if host.rancher is not None]
    servers = [unit for unit in units if not unit.is_agent]
    if not any(unit.is_read for unit in servers):
        return True
    return any(unit.without_tunnel for unit in servers)


def _is_of(row: Obstacle, bounds: tuple[tuple[str, str], ...]) -> bool:
    if row.unit.program != K3S:
        return False
    return any(release_number.is_within(row.view.kubelet, *pair) for pair in bounds)


def _is_followed(row: Obstacle) -> bool:
    """Tell whether the tunnel looks for the kubelet at this address, as k3s binds to it too."""
    bind, number = row.unit.bind_address, release_number.parse(row.view.kubelet)
    if bind is None or bind.value != row.place.value:
        return False
    return number is None or number >= (release_number.parse(_FOLLOWS_BIND) or number)


def _setting(row: Obstacle) -> str:
    """Return a setting with its place."""
    place = row.place
    path = one_line(place.path or "the command line of its unit", 200)
    if place.line:
        path += f":{place.line}"
    return f"{_value(row)} ({path})"


def _value(row: Obstacle) -> str:
    value = one_line(row.place.value, 60)
    if row.place.key == BIND:
        return f"{BIND}: {value}"
    return f"{row.place.key}: address={value}"


def _of_servers(rows: list[Obstacle]) -> Detection:
    return Detection(
        f"{clause(rows)}. Their API servers reach no kubelet: logs, exec and port-forward fail"
        f" (dial tcp 127.0.0.1:{PORT}: connect: connection refused), and metrics-server is not"
        " available",
        proofs(rows),
        advice(rows),
        component=K3S,
        severity="warning",
    )


def _of_kubelet(row: Obstacle) -> Detection:
    title = row.unit.title
    return _of_node(
        row,
        f"the kubelet listens at {one_line(row.place.value, 60)} alone, by {_setting(row)}. API"
        f" servers reach it through the tunnel of {title}, which looks for it at the loopback of"
        f" its node: {_EFFECT} (proxy error … while dialing …:10250)",
        f"on {row.host.host} remove that address from kubelet-arg, and systemctl restart"
        f" {shell_name(row.unit.name, 'UNIT')}: the kubelet then listens at all addresses, and a"
        f" firewall on the node can keep others from port 10250. Or write {_DISABLE}",
    )


def _of_bind_address(row: Obstacle) -> Detection:
    release = one_line(row.view.kubelet, 40)
    return _of_node(
        row,
        f"k3s {release} lets the kubelet listen at {one_line(row.place.value, 60)} alone, by"
        f" {_setting(row)}. API servers reach it through the tunnel of k3s, which looks for it at"
        f" the loopback of its node: {_EFFECT}",
        "update k3s to 1.27.16, 1.28.12, 1.29.7, 1.30.3 or newer"
        f" (https://github.com/k3s-io/k3s/pull/10480). Until then, write {_DISABLE}",
    )


def _of_node(row: Obstacle, summary: str, remedy: str) -> Detection:
    return Detection(
        summary,
        tuple(_proofs(row)),
        remedy,
        host=row.host.host,
        node=row.view.name,
        component=row.unit.program,
        severity="warning",
    )


def _proofs(row: Obstacle) -> Iterator[EvidenceRef]:
    place, host = row.place, row.host.host
    yield EvidenceRef("file", host, path=place.path, line=place.line, text=_value(row))
    text = f"kubelet {one_line(row.view.kubelet, 60)}"
    yield EvidenceRef("api", host, object=f"Node {row.view.name}", text=text)
