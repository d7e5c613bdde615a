# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether anybody leads of the components of which one does, for KM203 and KM511.

By who renews their lock, and which of them are down and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...evidence.document import one_line
from ...models import ages, writes
from ...models.api_node import SHOWN, NodeView, and_others, views
from ...models.cluster import STALE_LOCK_SECONDS, Cluster, Host, timestamp
from ...models.control_plane import ControlPlane, Process
from ...models.result import Missing, Proof
from ..base import Hit
from . import leader_election as election

# Whoever is next takes the lock within its lease's duration (15 s) and a retry; a busy machine
# needs longer.
LED_SECONDS, LEASES = 60, 3


@dataclass(frozen=True)
class Role:
    """component: as it is called; title: in a sentence; means: what it is that nobody leads."""

    component: str
    title: str
    means: str


def judged(
    cluster: Cluster, role: Role, running: list[tuple[Host, Process]]
) -> tuple[Mapping[str, Any] | None, list[Hit], list[Missing]]:
    """(the lock that counts, nobody leads, what is missing to tell). running.

    Its instances, as the hosts know them.
    """
    missing, hits = list(cluster.missing("locks")), []
    unlocked = any(item.elect is False for _host, item in running)
    lock = _lock(cluster, _names(running, role.component))
    if lock is not None:
        still, doubt = _stands_still(cluster, lock)
        if still and not unlocked and not cluster.members:  # hosted elsewhere, or of another time
            missing.append(Missing(cluster.api_host or "cluster API", "instances", "absent"))
        elif still and not unlocked:
            hits.append(_stale(cluster, role, lock, sorted({host.host for host, _item in running})))
        elif doubt:
            missing.append(Missing(cluster.api_host or "cluster API", "locks", "error"))
    # k3s and others keep no such lock that we know of, or it has never been taken
    elif not missing and not unlocked:
        missing.append(Missing(cluster.api_host or "cluster API", "locks", "absent"))
    return lock, hits, missing


def holding(
    cluster: Cluster, running: list[tuple[Host, Process]], component: str
) -> tuple[Mapping[str, Any] | None, list[tuple[Host, Process]]]:
    """(the lock that somebody renews, as far as can be told.

    Those of the running instances that hold it, by the host that its holder names).
    """
    lock = _lock(cluster, _names(running, component))
    if lock is None or True in _stands_still(cluster, lock):
        return None, []
    holder = str(lock.get("holder") or "").rsplit("_", 1)[0].lower()
    return lock, [
        (host, item)
        for host, item in running
        if holder and holder in {name.lower() for name in (*host.names, host.node or "")}
    ]


def _names(running: list[tuple[Host, Process]], component: str) -> set[str]:
    return {name for _host, item in running for name in election.lock_names(item)} or {component}


def _lock(cluster: Cluster, names: Iterable[str]) -> Mapping[str, Any] | None:
    """Of the lock objects with these names the one that was renewed last, whichever API server
    shows it.
    """
    names, found = set(names), None
    for server in (cluster.answer("locks") or {}).get("servers") or ():
        for one in server.get("objects") or ():
            if one.get("name") in names and (found is None or _moment(one) > _moment(found)):
                found = one
    return found


def _moment(lock: Mapping[str, Any]) -> float:
    at = timestamp(lock.get("renew_time"))
    return at.timestamp() if at else 0.0


def _stands_still(cluster: Cluster, lock: Mapping[str, Any]) -> tuple[bool, bool]:
    """(whether it is not renewed, whether that is unknown).

    Its age counts by the clock of the host that read it, never by what else is written.

    A lease that its holder's kubelet renewed later proves more, whatever the clocks say: both are
    of one clock. That it did not is no proof of anything, because both may have stopped at once.
    Newer components give their lock up as they end, so that it has no holder: whichever
    control-plane node wrote it, its clock is one of theirs.
    """
    renewed = timestamp(lock.get("renew_time"))
    if renewed is None:
        return False, True
    name = str(lock.get("holder") or "").rsplit("_", 1)[0]
    most = LEASES * (ages.seconds_of(lock.get("lease_duration_s")) or 0.0)
    holder = next((view for view in views(cluster) if view.name == name), None)
    clocks = (
        [holder.leased]
        if holder is not None
        else []
        if name
        else [view.leased for view in views(cluster) if view.control_plane]
    )
    if clocks and all(
        clock is not None and (clock - renewed).total_seconds() > max(LED_SECONDS, most)
        for clock in clocks
    ):
        return True, False
    writer = holder.host if holder is not None else None
    age = ages.age_of(cluster, renewed, writer, "locks")
    # a time of the future is of another clock, and tells no age
    if age is None or age[1] < -ages.APART:
        return False, True
    if age[0] <= max(LED_SECONDS if ages.clocks(cluster).checked else STALE_LOCK_SECONDS, most):
        return False, False
    return (False, True) if _of_another_clock(cluster, holder, renewed) else (True, False)


def _of_another_clock(cluster: Cluster, holder: NodeView | None, renewed: datetime) -> bool:
    """Whether the clock that wrote it may be behind.

    The API hears its node, whose lease is as old, others write, and its host told no clock.
    """
    if (
        holder is None
        or holder.leased is None
        or holder.ready != "True"
        or ages.difference(cluster, holder.host) is not None
    ):
        return False
    return (
        abs((holder.leased - renewed).total_seconds()) <= LED_SECONDS
        and writes.state(cluster).refused is False
    )


def _stale(cluster: Cluster, role: Role, lock: Mapping[str, Any], places: list[str]) -> Hit:
    name, at, holder = (
        role.component,
        one_line(lock.get("renew_time"), 40),
        one_line(lock.get("holder") or "nobody", 120),
    )
    proof = Proof(
        "api",
        cluster.api_host,
        object=f"{one_line(lock.get('kind'), 40)} kube-system/{one_line(lock.get('name'), 80)}",
        text=f"held by {holder}, renewed at {at}, read at {cluster.collected_at}",
    )
    silent = and_others([host.host for host in cluster.members if not _answered(host)])
    down = [
        (host, *_why(host, name))
        for host in cluster.members
        if _answered(host) and host.host not in places
    ]
    proofs = (proof, *(proof for _host, _why_not, proof in down[:SHOWN]))
    same: dict[str, list[str]] = {}
    for host, why_not, _proof in down:
        same.setdefault(why_not, []).append(host.host)
    told = "".join(
        f"; {and_others(hosts)}: {why_not}" for why_not, hosts in list(same.items())[:SHOWN]
    )
    if places:
        where = f"it runs on {and_others(places)} and does not renew its lock"
        remedy = (
            f"read its log there (crictl logs of {name}): an API server that it cannot reach, an"
            " expired certificate or a slow etcd keeps it from leading"
        )
    else:
        where = "it runs on no host that answered" + (f"; {silent} did not" if silent else "")
        remedy = (
            f"see on the control-plane nodes why the kubelet runs none: the manifest {name}.yaml in"
            " its folder of static pods (gone, or not to be parsed), then the container's log"
            f" (crictl ps -a --name {name})"
        )
    if writes.refused(cluster):
        remedy = (
            "it cannot renew its lock while the cluster accepts no writes: repair that first"
            f" ({writes.CODE})"
        )
    return Hit(
        f"no {role.title} leads since {at}: {where}{told}",
        proofs,
        f"{remedy}; until one leads, {role.means}",
        component=name,
    )


def _answered(host: Host) -> bool:
    return host.status == "ok" and host.statuses.get("instances") in ("ok", "absent")


def _why(host: Host, name: str) -> tuple[str, Proof]:
    """(why this host runs none, what says so).

    A container that does not start, or ends at once, tells it in its own log only.
    """
    plane = host.control_plane
    broken = (
        next((item for item in plane.broken if item.component == name), None) if plane else None
    )
    use = next((item for item in plane.files if item.component == name), None) if plane else None
    if broken:
        said = f"its manifest does not parse ({one_line(broken.problem, 200)})"
        return said, Proof(
            "file",
            host.host,
            path=broken.path,
            line=broken.line,
            text=f"{said}: {one_line(broken.text, 200)}" if broken.text else said,
        )
    if use and plane and plane.kubelet_problem:
        said = one_line(plane.kubelet_problem, 200)
        return said, Proof("unit", host.host, object="kubelet", text=said)
    if use:
        said = "its manifest is there, and its container does not start or does not stay up"
        return said, Proof("file", host.host, path=use.path, text=said)
    if host.statuses.get("manifests") not in ("ok", "absent") or (plane and plane.unread):
        said = "none runs, and whether it has a manifest could not be read"
    else:
        said = "it has no manifest"
    return said, Proof(
        "file",
        host.host,
        path=f"{_folder(plane)}{name}.yaml",
        text=f"{said} of {name}" if said.startswith("it") else said,
    )


def _folder(plane: ControlPlane | None) -> str:
    """Where its other manifests are; empty where there are none."""
    paths = [item.path for item in (*plane.files, *plane.broken)] if plane else []
    return f"{paths[0].rpartition('/')[0]}/" if paths else ""
