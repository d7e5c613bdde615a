# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluate whether an instance of a component leads, for KM203 and KM511.

An instance leads if it renews its lock. Those that are down are named with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ...evidence.answers.cluster.locks import LockObject, Locks
from ...evidence.document import one_line
from ...models import ages, writes
from ...models.api_node import SHOWN, NodeView, and_others, views
from ...models.cluster import STALE_LOCK_SECONDS, Cluster, Host
from ...models.control_plane import ControlPlane, Process
from ...models.moments import timestamp
from ...models.result import EvidenceRef, Missing
from ..base import Detection
from . import leader_election

# Another instance takes the lock within its lease's duration (15 s) and a retry; a busy machine
# needs longer.
LED_SECONDS, LEASES = 60, 3


@dataclass(frozen=True)
class Role:
    """A component of which one instance leads.

    means: the consequence if none does
    """

    component: str
    title: str
    means: str


def judged(
    cluster: Cluster, role: Role, running: list[tuple[Host, Process]]
) -> tuple[LockObject | None, list[Detection], list[Missing]]:
    """Return the lock that counts, hits if no instance leads, and what is missing to decide it.

    running: its instances with their hosts.
    """
    missing = list(cluster.missing("locks"))
    lock = _lock(cluster, _names(running, role.component))
    if lock is None:
        # k3s and others keep no known lock, or it has never been taken
        if not missing and not _is_without_lock(running):
            missing.append(cluster.missing_answer("locks", "absent"))
        return None, [], missing
    hits, doubts = _renewal(cluster, role, lock, running)
    return lock, hits, [*missing, *doubts]


def _is_without_lock(running: list[tuple[Host, Process]]) -> bool:
    """Tell whether an instance leads without any lock, because its election is off."""
    return any(process.elect is False for _host, process in running)


def _renewal(
    cluster: Cluster, role: Role, lock: LockObject, running: list[tuple[Host, Process]]
) -> tuple[list[Detection], list[Missing]]:
    """Return a hit if no instance renews the lock, or what is missing to decide it."""
    still, doubt = _stands_still(cluster, lock)
    if still and not _is_without_lock(running):
        if not cluster.members:  # hosted elsewhere, or of another time
            return [], [cluster.missing_answer("instances", "absent")]
        names = sorted(
            {host.host for host, _process in running}
            | {host.host for host in cluster.members if role.component in host.unit_components}
        )
        return [_stale(cluster, role, lock, names)], []
    if doubt:
        return [], [cluster.missing_answer("locks", "error")]
    return [], []


def holding(
    cluster: Cluster, running: list[tuple[Host, Process]], component: str
) -> tuple[LockObject | None, list[tuple[Host, Process]]]:
    """Return the lock if it is renewed, and the running instances on the host of its holder."""
    lock = _lock(cluster, _names(running, component))
    if lock is None or True in _stands_still(cluster, lock):
        return None, []
    holder = (lock.holder or "").rsplit("_", 1)[0].lower()
    if not holder:
        return lock, []
    return lock, [(host, process) for host, process in running if holder in _host_names(host)]


def _host_names(host: Host) -> set[str]:
    return {name.lower() for name in (*host.names, host.node or "")}


def _names(running: list[tuple[Host, Process]], component: str) -> set[str]:
    names = {name for _host, process in running for name in leader_election.lock_names(process)}
    return names or {component}


def _lock(cluster: Cluster, names: Iterable[str]) -> LockObject | None:
    """Return the lock object with one of these names that was renewed last, at any API server."""
    names, latest = set(names), None
    for server in cluster.typed(Locks).servers:
        for lock in server.objects:
            if lock.name not in names:
                continue
            if latest is None or _moment(lock) > _moment(latest):
                latest = lock
    return latest


def _moment(lock: LockObject) -> float:
    renewed = timestamp(lock.renew_time)
    if renewed is None:
        return 0.0
    return renewed.timestamp()


def _stands_still(cluster: Cluster, lock: LockObject) -> tuple[bool, bool]:
    """Return whether a lock is not renewed, and whether that is unknown.

    Its age counts by the clock of the host that read it, never by what else is written.

    A lease that its holder's kubelet renewed later shows more, whatever the clocks say: both are
    of one clock. That it did not shows nothing, because both may have stopped at once. Newer
    components release their lock as they exit, so that it has no holder: any control-plane node
    may have written it.
    """
    renewed = timestamp(lock.renew_time)
    if renewed is None:
        return False, True
    holder_name = (lock.holder or "").rsplit("_", 1)[0]
    lease_seconds = LEASES * (ages.seconds_of(lock.lease_duration_s) or 0.0)
    holder = next((view for view in views(cluster) if view.name == holder_name), None)
    clocks = _possible_clocks(cluster, holder, holder_name)
    longest = max(LED_SECONDS, lease_seconds)
    if clocks and all(_is_later(clock, renewed, longest) for clock in clocks):
        return True, False
    return _aged(cluster, holder, renewed, lease_seconds)


def _possible_clocks(
    cluster: Cluster, holder: NodeView | None, holder_name: str
) -> list[datetime | None]:
    """Return when the kubelets of the nodes that may have written the lock renewed their leases."""
    if holder is not None:
        return [holder.leased]
    if holder_name:
        return []
    return [view.leased for view in views(cluster) if view.control_plane]


def _is_later(clock: datetime | None, renewed: datetime, seconds: float) -> bool:
    return clock is not None and (clock - renewed).total_seconds() > seconds


def _aged(
    cluster: Cluster, holder: NodeView | None, renewed: datetime, lease_seconds: float
) -> tuple[bool, bool]:
    """Return by its age whether a lock is not renewed, and whether that is unknown."""
    writer = None
    if holder is not None:
        writer = holder.host
    age = ages.age_of(cluster, renewed, writer, "locks")
    # a time of the future is of another clock, and tells no age
    if age is None or age[1] < -ages.APART:
        return False, True
    allowed = STALE_LOCK_SECONDS
    if ages.clocks(cluster).checked:
        allowed = LED_SECONDS
    if age[0] <= max(allowed, lease_seconds):
        return False, False
    if _of_another_clock(cluster, holder, renewed):
        return False, True
    return True, False


def _of_another_clock(cluster: Cluster, holder: NodeView | None, renewed: datetime) -> bool:
    """Tell whether the clock that wrote the lock may be behind.

    It may be if the API server hears from the holder's node, whose lease is as old, if other nodes
    write, and if the holder's host reported no clock.
    """
    if holder is None or holder.leased is None or holder.ready != "True":
        return False
    if ages.difference(cluster, holder.host) is not None:
        return False
    apart = abs((holder.leased - renewed).total_seconds())
    return apart <= LED_SECONDS and writes.state(cluster).refused is False


def _stale(cluster: Cluster, role: Role, lock: LockObject, places: list[str]) -> Detection:
    name = role.component
    renewed_at = one_line(lock.renew_time, 40)
    holder = one_line(lock.holder or "no process", 120)
    proof = EvidenceRef(
        "api",
        cluster.api_host,
        object=f"{one_line(lock.kind, 40)} kube-system/{one_line(lock.name, 80)}",
        text=f"held by {holder}, renewed at {renewed_at}, read at {cluster.collected_at}",
    )
    down = [
        (host, *_down_reason(host, name))
        for host in cluster.members
        if _answered(host) and host.host not in places
    ]
    proofs = (proof, *(proof for _host, _reason, proof in down[:SHOWN]))
    by_reason: dict[str, list[str]] = {}
    for host, reason, _proof in down:
        by_reason.setdefault(reason, []).append(host.host)
    rows = list(by_reason.items())[:SHOWN]
    reasons = "".join(f"; {and_others(hosts)}: {reason}" for reason, hosts in rows)
    refused = [host for host in cluster.members if name in host.anonymous]
    clause, advice = _without_user(refused, name)
    proofs += tuple(
        EvidenceRef("log", host.host, object=name, text=host.anonymous[name])
        for host in refused[:SHOWN]
    )
    return Detection(
        f"no {role.title} leads since {renewed_at}: {_where_it_runs(cluster, places)}{clause}"
        f"{reasons}",
        proofs,
        f"{advice}{_advice(cluster, name, places)}; until one leads, {role.means}",
        component=name,
    )


def _without_user(hosts: list[Host], name: str) -> tuple[str, str]:
    """Return that the API server takes a component for anonymous, as a clause, and what to do."""
    if not hosts:
        return "", ""
    names = and_others([host.host for host in hosts])
    return (
        f"; the API server takes that of {names} for system:anonymous: its kubeconfig gives it no"
        " credentials",
        f"kubectl config view --kubeconfig FILE with the file of --kubeconfig of {name} (or of"
        " clientConnection in its --config): the context needs a user, and users needs that name"
        " with a certificate and its key, or a token; then restart it. Else ",
    )


def _where_it_runs(cluster: Cluster, places: list[str]) -> str:
    if places:
        return f"it runs on {and_others(places)} and does not renew its lock"
    silent = and_others([host.host for host in cluster.members if not _answered(host)])
    if silent:
        return f"it runs on no host that answered; {silent} did not"
    return "it runs on no host that answered"


def _advice(cluster: Cluster, name: str, places: list[str]) -> str:
    if writes.refused(cluster):
        return (
            "it cannot renew its lock while the cluster accepts no writes: repair that first"
            f" ({writes.CODE})"
        )
    if places:
        return (
            f"read its log there (crictl logs of {name}): an API server that it cannot reach, an"
            " expired certificate or a slow etcd keeps it from leading"
        )
    return (
        f"see on the control-plane nodes why the kubelet runs none: the manifest {name}.yaml in"
        " its folder of static pods (gone, or not to be parsed), then the container's log"
        f" (crictl ps -a --name {name})"
    )


def _answered(host: Host) -> bool:
    return host.status == "ok" and host.statuses.get("instances") in ("ok", "absent")


def _down_reason(host: Host, name: str) -> tuple[str, EvidenceRef]:
    """Return why a host runs none of this component, and the evidence of it.

    Why a container does not start, or exits at once, is only in its own log.
    """
    plane = host.control_plane
    if plane is not None:
        manifest_reason = _reason_in_manifests(host, plane, name)
        if manifest_reason is not None:
            return manifest_reason
    unread = plane is not None and plane.unread
    path = f"{_folder(plane)}{name}.yaml"
    if host.statuses.get("manifests") not in ("ok", "absent") or unread:
        reason = "none runs, and whether it has a manifest could not be read"
        return reason, EvidenceRef("file", host.host, path=path, text=reason)
    reason = "it has no manifest"
    return reason, EvidenceRef("file", host.host, path=path, text=f"{reason} of {name}")


def _reason_in_manifests(
    host: Host, plane: ControlPlane, name: str
) -> tuple[str, EvidenceRef] | None:
    broken = next((manifest for manifest in plane.broken if manifest.component == name), None)
    if broken:
        reason = f"its manifest does not parse ({one_line(broken.problem, 200)})"
        text = reason
        if broken.text:
            text = f"{reason}: {one_line(broken.text, 200)}"
        return reason, EvidenceRef("file", host.host, path=broken.path, line=broken.line, text=text)
    use = next((use for use in plane.files if use.component == name), None)
    if use is None:
        return None
    if plane.kubelet_problem:
        reason = one_line(plane.kubelet_problem, 200)
        return reason, EvidenceRef("unit", host.host, object="kubelet", text=reason)
    reason = "its manifest is there, and its container does not start or does not stay up"
    return reason, EvidenceRef("file", host.host, path=use.path, text=reason)


def _folder(plane: ControlPlane | None) -> str:
    """Return the directory of the other manifests with a slash, or "" if there are none."""
    if plane is None:
        return ""
    paths = [use.path for use in plane.files] + [manifest.path for manifest in plane.broken]
    if not paths:
        return ""
    return f"{paths[0].rpartition('/')[0]}/"
