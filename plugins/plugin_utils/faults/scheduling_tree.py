# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: schedulers that lose nodes, KM201 and KM202: before it strikes, and when it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils import node_tree, scheduling_reasons, taints
from ansible_collections.kubemend.remediation.plugins.plugin_utils.cluster import Cluster, Host, timestamp
from ansible_collections.kubemend.remediation.plugins.plugin_utils.control_plane import Process
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import one_line
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import election, leading, scheduling_history
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Fault, Hit, Outcome
from ansible_collections.kubemend.remediation.plugins.plugin_utils.model import Missing, Proof
from ansible_collections.kubemend.remediation.plugins.plugin_utils.node_view import SHOWN, NodeView, and_others, views

SCHEDULER, USUAL = "kube-scheduler", "default-scheduler"
BETA, STABLE = "failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/"
# A pod that has just been refused may have been looked at before a label or a node was there.
SETTLED_SECONDS = 60
CURES = "v1.18.8 or a newer 1.18, or v1.19.0 or newer"
NO_SCHEDULER = "no kube-scheduler of its own was found on these hosts"


@dataclass(frozen=True)
class _Schedulers:
    """The running ones, by what is known of their version: these have the defect, of these nobody can tell."""

    running: tuple[tuple[Host, Process], ...]
    faulty: tuple[tuple[Host, Process], ...]
    doubtful: tuple[tuple[Host, Process], ...]

    @property
    def unknown(self) -> list[Missing]:
        """What their versions lack: the answer of the process, or, of a vendor's build, what it is made of."""
        told = {"ok": "absent"}  # it answered, without a version that tells
        return [Missing(host.host, "component_http", told.get(status, status)) for host, _process in self.doubtful
                for status in (host.statuses.get("component_http", "not_asked"),)]

    @property
    def note(self) -> str:
        """Of builds that may have the cure or not."""
        builds = sorted({one_line(process.release, 80) for _host, process in self.doubtful if process.release})
        return f"whether {and_others(builds)} has the cure, only whoever built it knows" if builds else ""


def _schedulers(cluster: Cluster) -> _Schedulers:
    found = tuple((host, process) for host in cluster.hosts if host.status == "ok" and host.control_plane for process in host.control_plane.of(SCHEDULER))
    known = [node_tree.defect(process.release) for _host, process in found]
    return _Schedulers(found, tuple(one for one, bad in zip(found, known) if bad), tuple(one for one, bad in zip(found, known) if bad is None))


def zone_key(labels: Mapping[str, Any]) -> str:
    """The zone of a node as the scheduler of 1.18 makes it: the beta label where there is one, even empty, else the stable one. Empty without any."""
    region, zone = (str(labels.get(BETA + name, labels.get(STABLE + name, ""))) for name in ("region", "zone"))
    return f"{region}/{zone}" if region or zone else ""


def _zones(cluster: Cluster) -> Counter[str] | None:
    """How many nodes each zone has; None where the evidence lacks their labels."""
    items = (cluster.answer("nodes") or {}).get("items")
    if not items or not all(isinstance(item.get("labels"), Mapping) for item in items):
        return None
    return Counter(zone_key(item["labels"]) for item in items)


def _no_zones(cluster: Cluster) -> list[Missing]:
    return list(cluster.missing("nodes")) or [Missing(cluster.api_host or "cluster API", "nodes", "not_asked")]


def _spelled(zones: Counter[str]) -> str:
    return and_others([f"{one_line(zone, 80).strip('/') or 'no zone'} ({count})" for zone, count in sorted(zones.items())])


def _versions(found: tuple[tuple[Host, Process], ...]) -> str:
    named = and_others(sorted({host.host for host, _process in found}))
    return f"{SCHEDULER} {' and '.join(sorted({one_line(process.release, 80) for _host, process in found}))} on {named}"


def _proofs(found: tuple[tuple[Host, Process], ...]) -> list[Proof]:
    return [Proof("process", host.host, pid=process.pid, argv=process.argv, text=f"version {one_line(process.release, 80)}") for host, process in found[:SHOWN]]


def has_defect(cluster: Cluster) -> Iterator[Outcome]:
    """KM201: a running scheduler would lose nodes, because its version has the defect and there are several zones."""
    if cluster.key is None:
        yield Outcome(applies=False, component=SCHEDULER, note="no Kubernetes found on these hosts")
        return
    found, zones, silent = _schedulers(cluster), _zones(cluster), election.silent_members(cluster, "instances")
    if not found.running and not silent:
        yield Outcome(applies=False, component=SCHEDULER, note=NO_SCHEDULER)
    elif zones is not None and len(zones) < 2:
        yield Outcome(component=SCHEDULER, note="nodes of one zone: no scheduler loses any of them" if found.faulty or found.doubtful else "")
    elif found.faulty and zones is not None:
        yield Outcome((_risk(cluster, found, zones),), component=SCHEDULER)
    else:
        missing = [*silent, *found.unknown]
        if zones is None and (found.faulty or found.doubtful):
            missing += _no_zones(cluster)
        yield Outcome((), tuple(missing), component=SCHEDULER, note=found.note)


def _risk(cluster: Cluster, found: _Schedulers, zones: Counter[str]) -> Hit:
    proofs = _proofs(found.faulty)
    proofs.append(Proof("api", cluster.api_host, object="Nodes", text=f"{len(zones)} zones with their nodes: {_spelled(zones)}"))
    return Hit(f"{_versions(found.faulty)} loses nodes when some join and the zones are uneven: {len(zones)} zones, {_spelled(zones)}", tuple(proofs),
               f"upgrade the schedulers: {CURES}. Until then restart the one that leads after nodes joined or left (another one takes over meanwhile); "
               f"what it lost is back then, until the next of them come. What avoids it: {order(zones)}", component=SCHEDULER)


def order(zones: Counter[str] | None) -> str:
    """Which order of joining or labelling loses nobody: whoever comes last in the scheduler's turns pushes nobody out of its list."""
    most = max(zones.values(), default=0) if zones else 0
    largest = [zone for zone, count in (zones or {}).items() if count == most]
    now = f" (now {_spelled(Counter({zone: most for zone in largest}))})" if largest else ""
    return (f"nodes that join the zone with the most nodes{now} push out nobody, and in a new cluster neither do those that join one of each zone in turn, "
            "always in the same order of zones; after any others restart the scheduler that leads. Zone labels belong to a node when it registers: one that "
            "is labelled later moves as if it had joined there")


def waiting(cluster: Cluster) -> list[list[str]]:
    """[namespace, pod, node] of the pods that wait for a node that was lost, of all of KM202's findings."""
    return [[str(entry.get("namespace")), pod, node] for node, pods in sorted(_gone(cluster, _schedulers(cluster), _zones(cluster))[0].items())
            for pod, entry in pods]


def leader(cluster: Cluster) -> tuple[Mapping[str, Any] | None, Host | None, bool]:
    """(the lock that counts, the host of the scheduler that holds it, whether another one could take over).

    No host where one that does not elect places pods too: which of them lost the node is not known. Nor where the holder's host runs one that takes another
    lock, or does not tell which.
    """
    running = _usual(cluster)
    lock, mine = leading.holding(cluster, running, SCHEDULER)
    if lock is None or len(mine) != 1 or unled(cluster) or lock.get("name") not in election.lock_names(mine[0][1]):
        return lock, None, False
    host, leads = mine[0]
    ready = any(other.host != host.host and process.elect is True and process.source in ("configz", "healthz")
                and election.lock_names(process) & election.lock_names(leads) for other, process in running)
    return lock, host, ready


def unled(cluster: Cluster) -> list[str]:
    """The hosts of schedulers that place pods whoever leads, KM101."""
    return sorted({host.host for host, process in _usual(cluster) if process.elect is False})


def _usual(cluster: Cluster) -> list[tuple[Host, Process]]:
    return [(host, process) for host, process in _schedulers(cluster).running if USUAL in election.scheduler_names(process)]


def lost(cluster: Cluster) -> Iterator[Outcome]:
    """KM202: a DaemonSet's pod waits for a node that is well and takes it, and that the scheduler's reasons do not count."""
    if cluster.key is None:
        yield Outcome(applies=False, component=SCHEDULER, note="no Kubernetes found on these hosts")
        return
    found, zones, silent = _schedulers(cluster), _zones(cluster), election.silent_members(cluster, "instances")
    if not found.running and not silent:
        yield Outcome(applies=False, component=SCHEDULER, note=NO_SCHEDULER)
        return
    if not silent and not found.faulty and not found.doubtful or zones is not None and len(zones) < 2:
        yield Outcome(component=SCHEDULER)  # whatever waits, waits for something else
        return
    missing = [*cluster.missing("pending"), *(_no_zones(cluster) if zones is None else [])]
    if not missing:
        missing += cluster.cut("pending")
    gone, doubt = _gone(cluster, found, zones)
    by_name = {view.name: view for view in views(cluster)}
    hits: list[Hit] = []
    if gone and zones is not None:
        why = _explained(cluster, frozenset(gone))
        hits = [_lost(cluster, found, zones, by_name[name], gone[name], why) for name in sorted(gone)]
    if doubt and not hits:  # who is lost cannot be told, or whether this scheduler loses anybody
        missing += [*silent, *found.unknown] or [Missing(cluster.api_host or "cluster API", "pending", "error")]
    yield Outcome(tuple(hits), tuple(missing), component=SCHEDULER, note=found.note if doubt else "")


def _gone(cluster: Cluster, found: _Schedulers, zones: Counter[str] | None) -> tuple[dict[str, list[tuple[str, Mapping[str, Any]]]], bool]:
    """({node that was lost: [(pod that waits for it, its entry)]}, whether a node may have been lost)."""
    all_faulty = len(found.faulty) == len(found.running)  # else the one that leads may be another
    certain = all_faulty and not election.silent_members(cluster, "instances")
    by_name, gone, doubt = {view.name: view for view in views(cluster)}, {}, False
    for entry in cluster.rows("pending", "items"):
        message = scheduling_reasons.parse(entry.get("message"))
        if zones is None or not message.missing or entry.get("scheduler") not in _served(found):
            continue
        for pod, target in _targets(entry):
            if certain and _proven(cluster, entry, message, by_name.get(target), len(by_name)):
                gone.setdefault(target, []).append((pod, entry))
        doubt = True
    return gone, doubt


def _served(found: _Schedulers) -> frozenset[str]:
    return frozenset().union({USUAL}, *(election.scheduler_names(process) for _host, process in found.running))


def _targets(entry: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(pod, the node that it is meant for), as far as the collector kept them."""
    kept = entry.get("targets")
    return [(str(one[0]), str(one[1])) for one in kept if isinstance(one, (list, tuple)) and len(one) == 2] if isinstance(kept, (list, tuple)) else []


def _proven(cluster: Cluster, entry: Mapping[str, Any], message: scheduling_reasons.Message, target: NodeView | None, count: int) -> bool:
    """Whether no reason can be the target's, although it is well and takes the pod. Else a node may be lost, and nobody can tell that it is this one.

    Of the others the message says that the pod does not want them. Where it says anything that may be said of the target, it may be that.
    """
    if target is None or target.ready != "True":
        return False  # whoever is not there or not well may be among those that are counted, and another one lost
    since, now = timestamp(entry.get("since")), timestamp(cluster.collected_at)
    if message.nodes != count or since is None or now is None or (now - since).total_seconds() < SETTLED_SECONDS:
        return False
    tolerations = entry.get("tolerations")
    off, doubtful = taints.keeps_away(list(target.taints), tolerations)
    if tolerations is None or not target.told or off or doubtful:
        return False
    harmless = {"affinity", "node_name", "taint"} | (set() if target.cordoned else {"cordon"})
    return bool(message.reasons) and all(reason.kind in harmless for reason in message.reasons)


def _explained(cluster: Cluster, targets: frozenset[str]) -> scheduling_history.Explained:
    _lock, host, _ready = leader(cluster)
    process = next(iter(host.control_plane.of(SCHEDULER)), None) if host and host.control_plane else None
    zone_of = {str(item.get("name")): zone_key(item.get("labels") or {}) for item in (cluster.answer("nodes") or {}).get("items") or ()}
    return scheduling_history.explained(cluster, host, process, zone_of, targets)


def _lost(cluster: Cluster, found: _Schedulers, zones: Counter[str], target: NodeView, pods: list[tuple[str, Mapping[str, Any]]],
          why: scheduling_history.Explained) -> Hit:
    named = and_others([f"{one_line(entry.get('namespace'), 80)}/{one_line(pod, 253)}" for pod, entry in pods])
    message = scheduling_reasons.parse(pods[0][1].get("message"))
    proofs = [Proof("api", cluster.api_host, object=f"Pod {one_line(entry.get('namespace'), 80)}/{one_line(pod, 253)}",
                    text=one_line(entry.get("message"), 300)) for pod, entry in pods[:SHOWN]]
    proofs += [Proof("api", cluster.api_host, object=f"Node {target.name}", text="Ready, and the pod tolerates its taints; it is the one that the pod's "
                     "matchFields name"),
               Proof("api", cluster.api_host, object="Nodes", text=f"{len(zones)} zones with their nodes: {_spelled(zones)}"), why.proof,
               *_proofs(found.faulty)]
    more = f"; by the replay of its log also {and_others(list(why.others))}, which no pod names" if why.others else ""
    return Hit(f"the scheduler has lost {target.name}: {named} {'stays' if len(pods) == 1 else 'stay'} Pending for it, and the reasons speak of "
               f"{message.total} nodes of {message.nodes}{more}", tuple(proofs),
               f"restart the scheduler that leads, while another one is there to take over: {target.name} is back then. It returns when nodes join unevenly "
               f"again; cured by {CURES}. What avoids it: {order(zones)}. Nothing is to be done on {target.name} or to the pod",
               host=target.host.host if target.host else None, node=target.name, component=SCHEDULER)


_ABOUT = ("https://github.com/kubernetes/kubernetes/issues/91601", "https://github.com/kubernetes/kubernetes/pull/93355",
          "https://github.com/kubernetes/kubernetes/pull/93387")

FAULTS = (
    Fault(
        code="KM201",
        title="The scheduler can lose nodes",
        severity="warning",
        applies="clusters whose hosts run kube-scheduler",
        explanation="Schedulers 1.18.0 to 1.18.6 (and 1.19.0 up to rc.2) keep a list of nodes that is made anew when nodes come or go, zone by zone in "
                    "turn. The cursors are not set back before, so that nodes that join while the zones are uneven push others out of the list: they get "
                    "no pods until the next change, while the API shows them Ready. Up to 1.17 the next round finds them again. A vendor's build of "
                    "these versions may have the cure: unknown. With one zone nothing is lost.",
        remedy="Upgrade the schedulers; until then restart the one that leads after nodes joined.",
        risk=0,
        needs=("instances", "component_http", "manifests"),
        cluster_needs=("nodes",),
        cluster=has_defect,
        references=_ABOUT,
    ),
    Fault(
        code="KM202",
        title="The scheduler has lost a node",
        severity="critical",
        applies="clusters whose hosts run kube-scheduler",
        explanation="A DaemonSet's pod stays Pending for a node that is Ready and whose taints it tolerates. The scheduler's message counts fewer nodes than "
                    "there are, nothing in it can be of that node, and each scheduler that runs has the defect of KM201. Where a reason may be the "
                    "node's own, or a scheduler's version is not known, it is unknown. Other pods do not name a node: they go elsewhere, or wait for a "
                    "reason that is true.",
        remedy="Restart the scheduler that leads, while another one is ready to take over; then upgrade. Until then it returns when nodes join unevenly.",
        risk=2,
        needs=("instances", "component_http", "manifests", "scheduler_log"),
        cluster_needs=("nodes", "pending", "locks"),
        cluster=lost,
        references=_ABOUT,
        explained_by=frozenset([("KM201", None)]),
    ),
)
