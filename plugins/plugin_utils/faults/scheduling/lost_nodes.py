# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Schedulers that lose nodes, KM201 and KM202: before it strikes, and when it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...evidence.document import one_line
from ...models import ages, taints
from ...models.api_node import SHOWN, NodeView, and_others, views
from ...models.cluster import Cluster, Host
from ...models.control_plane import Process
from ...models.result import Missing, Proof
from ...models.scheduling import (
    excluded_nodes as excluded,
)
from ...models.scheduling import (
    message as scheduling_reasons,
)
from ...models.scheduling import (
    node_tree,
)
from ..base import Hit, Outcome, causes, cluster_check
from ..control_plane import leader_election as election
from ..control_plane import leader_lease as leading
from . import lost_nodes_cause as scheduling_history

SCHEDULER, USUAL = "kube-scheduler", "default-scheduler"
BETA, STABLE = "failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/"
# A pod that has just been refused may have been looked at before a label or a node was there.
SETTLED_SECONDS = 60
CURES = "v1.18.8 or a newer 1.18, or v1.19.0 or newer"
NO_SCHEDULER = "no kube-scheduler of its own was found on these hosts"


_Waiting = list[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class _Gone:
    """nodes: {one that was lost: [(pod that waits, its entry)]}; doubtful.

    Pods of whose nodes any may have been lost.

    suspects: nodes that are lost if the scheduler that leads has the defect; logged: those that no
    pod names, but the replay of its log.
    """

    nodes: dict[str, _Waiting]
    doubtful: _Waiting
    suspects: dict[str, _Waiting] = field(default_factory=dict)
    logged: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Schedulers:
    """The running ones, by what is known of their version.

    These have the defect, of these nobody can tell.
    """

    running: tuple[tuple[Host, Process], ...]
    faulty: tuple[tuple[Host, Process], ...]
    doubtful: tuple[tuple[Host, Process], ...]

    @property
    def unknown(self) -> list[Missing]:
        """What their versions lack: the answer of the process, or, of a vendor's build, what it
        is made of.
        """
        told = {"ok": "absent"}  # it answered, without a version that tells
        return [
            Missing(host.host, "component_http", told.get(status, status))
            for host, _process in self.doubtful
            for status in (host.statuses.get("component_http", "not_asked"),)
        ]

    @property
    def note(self) -> str:
        """Of builds that may have the cure or not."""
        builds = sorted(
            {one_line(process.release, 80) for _host, process in self.doubtful if process.release}
        )
        return (
            f"whether {and_others(builds)} has the cure, only whoever built it knows"
            if builds
            else ""
        )


def _schedulers(cluster: Cluster) -> _Schedulers:
    found = tuple(
        (host, process)
        for host in cluster.hosts
        if host.status == "ok" and host.control_plane
        for process in host.control_plane.of(SCHEDULER)
    )
    known = [node_tree.defect(process.release) for _host, process in found]
    return _Schedulers(
        found,
        tuple(one for one, bad in zip(found, known) if bad),
        tuple(one for one, bad in zip(found, known) if bad is None),
    )


def may_lose(cluster: Cluster) -> bool:
    """Whether a scheduler that runs has the defect, or may have it."""
    found = _schedulers(cluster)
    return bool(found.faulty or found.doubtful)


def zone_key(labels: Mapping[str, Any]) -> str:
    """The zone of a node as the scheduler of 1.18 makes it.

    The beta label where there is one, even empty, else the stable one. Empty without any.
    """
    region, zone = (
        str(labels.get(BETA + name, labels.get(STABLE + name, ""))) for name in ("region", "zone")
    )
    return f"{region}/{zone}" if region or zone else ""


def _zones(cluster: Cluster) -> Counter[str] | None:
    """How many nodes each zone has; None where the evidence lacks their labels."""
    items = (cluster.answer("nodes") or {}).get("items")
    if not items or not all(isinstance(item.get("labels"), Mapping) for item in items):
        return None
    return Counter(zone_key(item["labels"]) for item in items)


def _no_zones(cluster: Cluster) -> list[Missing]:
    return list(cluster.missing("nodes")) or [
        Missing(cluster.api_host or "cluster API", "nodes", "not_asked")
    ]


def _spelled(zones: Counter[str]) -> str:
    return and_others(
        [
            f"{one_line(zone, 80).strip('/') or 'no zone'} ({count})"
            for zone, count in sorted(zones.items())
        ]
    )


def _versions(found: tuple[tuple[Host, Process], ...]) -> str:
    named = and_others(sorted({host.host for host, _process in found}))
    return (
        f"{SCHEDULER}"
        f" {' and '.join(sorted({one_line(process.release, 80) for _host, process in found}))} on"
        f" {named}"
    )


def _proofs(found: tuple[tuple[Host, Process], ...]) -> list[Proof]:
    return [
        Proof(
            "process",
            host.host,
            pid=process.pid,
            argv=process.argv,
            text=f"version {one_line(process.release, 80)}",
        )
        for host, process in found[:SHOWN]
    ]


@cluster_check(
    "KM201",
    "The scheduler can lose nodes",
    severity="warning",
    applies="clusters whose hosts run kube-scheduler",
    needs=("instances", "component_http", "manifests"),
    cluster_needs=("nodes",),
)
def has_defect(cluster: Cluster) -> Iterator[Outcome]:
    """KM201: a running scheduler would lose nodes, because its version has the defect and there
    are several zones.
    """
    if cluster.key is None:
        yield Outcome(applies=False, component=SCHEDULER, note="no Kubernetes found on these hosts")
        return
    found, zones, silent = (
        _schedulers(cluster),
        _zones(cluster),
        election.silent_members(cluster, "instances"),
    )
    if not found.running and not silent:
        yield Outcome(applies=False, component=SCHEDULER, note=NO_SCHEDULER)
    elif zones is not None and len(zones) < 2:
        yield Outcome(
            component=SCHEDULER,
            note=(
                "nodes of one zone: no scheduler loses any of them"
                if found.faulty or found.doubtful
                else ""
            ),
        )
    elif found.faulty and zones is not None:
        yield Outcome((_risk(cluster, found, zones),), component=SCHEDULER)
    else:
        missing = [*silent, *found.unknown]
        if zones is None and (found.faulty or found.doubtful):
            missing += _no_zones(cluster)
        yield Outcome((), tuple(missing), component=SCHEDULER, note=found.note)


def _risk(cluster: Cluster, found: _Schedulers, zones: Counter[str]) -> Hit:
    proofs = _proofs(found.faulty)
    proofs.append(
        Proof(
            "api",
            cluster.api_host,
            object="Nodes",
            text=f"{len(zones)} zones with their nodes: {_spelled(zones)}",
        )
    )
    return Hit(
        f"{_versions(found.faulty)} loses nodes when some join and the zones are uneven:"
        f" {len(zones)} zones, {_spelled(zones)}",
        tuple(proofs),
        f"upgrade the schedulers: {CURES}. Until then restart the one that leads after nodes joined"
        " or left (another one takes over meanwhile); what it lost is back then, until the next of"
        f" them come. What avoids it: {order(zones)}",
        component=SCHEDULER,
    )


def order(zones: Counter[str] | None) -> str:
    """Which order of joining or labelling loses nobody.

    Whoever comes last in the scheduler's turns pushes nobody out of its list.
    """
    most = max(zones.values(), default=0) if zones else 0
    largest = [zone for zone, count in (zones or {}).items() if count == most]
    now = f" (now {_spelled(Counter(dict.fromkeys(largest, most)))})" if largest else ""
    return (
        f"nodes that join the zone with the most nodes{now} push out nobody, and in a new cluster"
        " neither do those that join one of each zone in turn, always in the same order of zones;"
        " after any others restart the scheduler that leads. Zone labels belong to a node when it"
        " registers: one that is labelled later moves as if it had joined there"
    )


def waiting(cluster: Cluster) -> list[list[str]]:
    """[namespace, pod, node] of the pods that wait for a node that was lost, of all of KM202's
    findings.
    """
    gone = _gone(cluster, _schedulers(cluster), _zones(cluster)).nodes
    return [
        [str(entry.get("namespace")), pod, node]
        for node, pods in sorted(gone.items())
        for pod, entry in pods
    ]


def leader(cluster: Cluster) -> tuple[Mapping[str, Any] | None, Host | None, bool]:
    """(the lock that counts, the host of the scheduler that holds it, whether another one could
    take over).

    No host where one that does not elect places pods too: which of them lost the node is not known.
    Nor where the holder's host runs one that takes another lock, or does not tell which.
    """
    running = _usual(cluster)
    lock, mine = leading.holding(cluster, running, SCHEDULER)
    if (
        lock is None
        or len(mine) != 1
        or unled(cluster)
        or lock.get("name") not in election.lock_names(mine[0][1])
    ):
        return lock, None, False
    host, leads = mine[0]
    ready = any(
        other.host != host.host
        and process.elect is True
        and process.source in ("configz", "healthz")
        and election.lock_names(process) & election.lock_names(leads)
        for other, process in running
    )
    return lock, host, ready


def unled(cluster: Cluster) -> list[str]:
    """The hosts of schedulers that place pods whoever leads, KM101."""
    return sorted({host.host for host, process in _usual(cluster) if process.elect is False})


def _usual(cluster: Cluster) -> list[tuple[Host, Process]]:
    return [
        (host, process)
        for host, process in _schedulers(cluster).running
        if USUAL in election.scheduler_names(process)
    ]


@cluster_check(
    "KM202",
    "The scheduler has lost a node",
    severity="critical",
    applies="clusters whose hosts run kube-scheduler",
    risk=2,
    needs=("instances", "component_http", "manifests", "scheduler_log"),
    cluster_needs=("nodes", "pending", "locks"),
    current_only=True,
    explained_by=causes("KM115", "KM201"),
)
def lost(cluster: Cluster) -> Iterator[Outcome]:
    """KM202: a pod waits for the one node that it can have, which is well and takes it, and
    which the scheduler's reasons do not count.
    """
    if cluster.key is None:
        yield Outcome(applies=False, component=SCHEDULER, note="no Kubernetes found on these hosts")
        return
    found, zones, silent = (
        _schedulers(cluster),
        _zones(cluster),
        election.silent_members(cluster, "instances"),
    )
    if not found.running and not silent:
        yield Outcome(applies=False, component=SCHEDULER, note=NO_SCHEDULER)
        return
    if (not silent and not found.faulty and not found.doubtful) or (
        zones is not None and len(zones) < 2
    ):
        yield Outcome(component=SCHEDULER)  # whatever waits, waits for something else
        return
    missing = [*cluster.missing("pending"), *(_no_zones(cluster) if zones is None else [])]
    if not missing:
        missing += cluster.cut("pending")
    gone = _gone(cluster, found, zones)
    by_name = {view.name: view for view in views(cluster)}
    hits: list[Hit] = []
    if gone.nodes and zones is not None:
        why = _explained(cluster, frozenset(gone.nodes))
        hits = [
            _lost(cluster, found, zones, by_name[name], gone.nodes[name], why)
            for name in sorted(gone.nodes)
        ]
    # who is lost cannot be told, or whether this scheduler loses anybody
    if gone.doubtful and not hits:
        missing += [*silent, *found.unknown] or [
            Missing(cluster.api_host or "cluster API", "pending", "error")
        ]
    yield Outcome(
        tuple(hits), tuple(missing), component=SCHEDULER, note="" if hits else _doubt(gone, found)
    )


def _gone(cluster: Cluster, found: _Schedulers, zones: Counter[str] | None) -> _Gone:
    all_faulty = len(found.faulty) == len(found.running)  # else the one that leads may be another
    certain = all_faulty and not election.silent_members(cluster, "instances")
    by_name, gone, doubtful = {view.name: view for view in views(cluster)}, {}, []
    for entry in cluster.rows("pending", "items"):
        message = scheduling_reasons.parse(entry.get("message"))
        if zones is None or not message.missing or entry.get("scheduler") not in _served(found):
            continue
        for pod, target in targets(entry, by_name):
            if _proven(cluster, entry, message, by_name.get(target), len(by_name)):
                gone.setdefault(target, []).append((pod, entry))
        doubtful.append((str((entry.get("names") or ["?"])[0]), entry))
    if not certain:
        return _Gone({}, doubtful, gone)
    return _Gone(gone, doubtful, logged=() if gone else _logged(cluster, doubtful, by_name))


def _doubt(gone: _Gone, found: _Schedulers) -> str:
    """What makes that a node may be lost, in words.

    Whoever reads it may know the version that nothing here tells.
    """
    if not gone.doubtful:
        return ""
    why = [found.note] if found.note else []
    for name, pods in sorted(gone.suspects.items())[:SHOWN]:
        why.append(
            f"{_named(pods)} for {name}, and the reasons speak of {_counts(pods)}: a scheduler with"
            f" the defect of KM201 has lost {name} then, and one that begins to lead has it again"
        )
    if not gone.suspects:
        told = (
            "by the log of the scheduler that leads, replayed, its list lacks"
            f" {and_others([one_line(name, 253) for name in gone.logged])}"
            if gone.logged
            else "whether a node is lost, and which, nothing here tells"
        )
        why.append(
            f"{_named(gone.doubtful[:SHOWN])}, and the reasons speak of {_counts(gone.doubtful)}:"
            f" {told}"
        )
    return "; ".join(why)


def _named(pods: _Waiting) -> str:
    return (
        and_others(
            [f"{one_line(entry.get('namespace'), 80)}/{one_line(pod, 253)}" for pod, entry in pods]
        )
        + f" {'stays' if len(pods) == 1 else 'stay'} Pending"
    )


def _counts(pods: _Waiting) -> str:
    message = scheduling_reasons.parse(pods[0][1].get("message"))
    return f"{message.total} nodes of {message.nodes}"


def _logged(cluster: Cluster, doubtful: _Waiting, names: Collection[str]) -> tuple[str, ...]:
    """The nodes that its list lacks by the replay of its whole log, where a message lacks just
    as many. No proof: nothing is repaired because of a log.
    """
    lost = _explained(cluster, frozenset()).others if doubtful else ()
    for _pod, entry in doubtful:
        message = scheduling_reasons.parse(entry.get("message"))
        if (
            message.nodes == len(names)
            and message.missing == len(lost)
            and _settled(cluster, entry)
        ):
            return lost
    return ()


def _settled(cluster: Cluster, entry: Mapping[str, Any]) -> bool:
    age = ages.age(cluster, entry.get("since"))
    return age is not None and age >= SETTLED_SECONDS


def _served(found: _Schedulers) -> frozenset[str]:
    return frozenset().union(
        {USUAL}, *(election.scheduler_names(process) for _host, process in found.running)
    )


def targets(entry: Mapping[str, Any], names: Iterable[str]) -> list[tuple[str, str]]:
    """(pod, the one node that it can have), as far as the collector kept them.

    A DaemonSet's pod names it, any other one leaves out all the rest.
    """
    kept = entry.get("targets")
    if isinstance(kept, (list, tuple)) and kept:
        return [
            (str(one[0]), str(one[1]))
            for one in kept
            if isinstance(one, (list, tuple)) and len(one) == 2
        ]
    off = excluded.left_out(entry)
    wanted = [name for name in names if name not in off] if off else []
    return [(str(pod), wanted[0]) for pod in entry.get("names") or ()] if len(wanted) == 1 else []


def _proven(
    cluster: Cluster,
    entry: Mapping[str, Any],
    message: scheduling_reasons.Message,
    target: NodeView | None,
    count: int,
) -> bool:
    """Whether no reason can be the target's, although it is well and takes the pod.

    Else a node may be lost, and nobody can tell that it is this one.

    Of the others the message says that the pod does not want them. Where it says anything that may
    be said of the target, it may be that.
    """
    if target is None or target.ready != "True" or entry.get("unfit"):
        # whoever is not there, not well or not what the pod asks for may be among those that are
        # counted, and another one lost
        return False
    if message.nodes != count or not _settled(cluster, entry):
        return False
    tolerations = entry.get("tolerations")
    off, doubtful = taints.keeps_away(list(target.taints), tolerations)
    if tolerations is None or not target.told or off or doubtful:
        return False
    harmless = {"affinity", "node_name", "taint"} | (set() if target.cordoned else {"cordon"})
    return bool(message.reasons) and all(reason.kind in harmless for reason in message.reasons)


def _explained(cluster: Cluster, targets: frozenset[str]) -> scheduling_history.Explained:
    _lock, host, _ready = leader(cluster)
    process = (
        next(iter(host.control_plane.of(SCHEDULER)), None) if host and host.control_plane else None
    )
    zone_of = {
        str(item.get("name")): zone_key(item.get("labels") or {})
        for item in (cluster.answer("nodes") or {}).get("items") or ()
    }
    return scheduling_history.explained(cluster, host, process, zone_of, targets)


def _lost(
    cluster: Cluster,
    found: _Schedulers,
    zones: Counter[str],
    target: NodeView,
    pods: _Waiting,
    why: scheduling_history.Explained,
) -> Hit:
    proofs = [
        Proof(
            "api",
            cluster.api_host,
            object=f"Pod {one_line(entry.get('namespace'), 80)}/{one_line(pod, 253)}",
            text=one_line(entry.get("message"), 300),
        )
        for pod, entry in pods[:SHOWN]
    ]
    proofs += [
        Proof(
            "api",
            cluster.api_host,
            object=f"Node {target.name}",
            text=f"Ready, and the pod tolerates its taints; {_why_this_one(pods)}",
        ),
        Proof(
            "api",
            cluster.api_host,
            object="Nodes",
            text=f"{len(zones)} zones with their nodes: {_spelled(zones)}",
        ),
        why.proof,
        *_proofs(found.faulty),
    ]
    more = (
        f"; by the replay of its log also {and_others(list(why.others))}, which no pod names"
        if why.others
        else ""
    )
    return Hit(
        f"the scheduler has lost {target.name}: {_named(pods)} for it, and the reasons speak of"
        f" {_counts(pods)}{more}",
        tuple(proofs),
        f"restart the scheduler that leads, while another one is there to take over: {target.name}"
        f" is back then. It returns when nodes join unevenly again; cured by {CURES}. What avoids"
        f" it: {order(zones)}. Nothing is to be done on {target.name} or to the pod",
        host=target.host.host if target.host else None,
        node=target.name,
        component=SCHEDULER,
    )


def _why_this_one(pods: _Waiting) -> str:
    return (
        "it is the one that the pod's matchFields name"
        if any(entry.get("targets") for _pod, entry in pods)
        else "it alone has what the pod's selector or affinity asks for"
    )
