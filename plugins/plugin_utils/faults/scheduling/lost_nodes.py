# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of schedulers that may lose nodes (KM201), or have lost some (KM202)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ....module_utils.shared.text import counted
from ...evidence.answers.cluster.locks import LockObject
from ...evidence.answers.cluster.nodes import Nodes
from ...evidence.answers.cluster.pending import Pending, PendingPods
from ...evidence.document import one_line
from ...models import ages, taints
from ...models.api_node import SHOWN, NodeView, and_others, views
from ...models.cluster import Cluster, Host
from ...models.control_plane import Process
from ...models.result import EvidenceRef, Missing
from ...models.scheduling import excluded_nodes, node_tree
from ...models.scheduling import message as scheduling_message
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes
from ..control_plane import leader_election, leader_lease
from . import lost_nodes_cause, waiting_pods

SCHEDULER, USUAL = "kube-scheduler", "default-scheduler"
BETA, STABLE = "failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/"
# A pod that has just been refused may have been evaluated before a label or a node was there.
SETTLED_SECONDS = 60
CURES = "v1.18.8 or a newer 1.18, or v1.19.0 or newer"
NO_SCHEDULER = "no kube-scheduler of its own was found on these hosts"

_Instance = tuple[Host, Process]
_Waiting = list[tuple[str, PendingPods]]


@dataclass(frozen=True)
class _LostNodes:
    """The nodes that the schedulers of a cluster lost, or may lose.

    nodes: {a lost node: [(pod that waits, its entry)]}
    doubtful: pods of whose nodes any may have been lost
    suspects: nodes that are lost if the scheduler that leads has the defect
    logged: nodes that no pod names, but the replay of the scheduler's log
    """

    nodes: dict[str, _Waiting]
    doubtful: _Waiting
    suspects: dict[str, _Waiting] = field(default_factory=dict)
    logged: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Schedulers:
    """The running schedulers; those that have the defect, and those of which that is not known."""

    running: tuple[_Instance, ...]
    faulty: tuple[_Instance, ...]
    doubtful: tuple[_Instance, ...]

    @property
    def may_lose(self) -> bool:
        """Return whether one of them has the defect, or may have it."""
        return bool(self.faulty or self.doubtful)

    @property
    def unknown(self) -> list[Missing]:
        """What their versions lack: the answer of the process, or the base of a vendor's build."""
        missing = []
        for host, _process in self.doubtful:
            status = host.statuses.get("component_http", "not_asked")
            if status == "ok":
                status = "absent"  # it answered, without a version that tells
            missing.append(Missing(host.host, "component_http", status))
        return missing

    @property
    def note(self) -> str:
        """Return a note about builds of which it is not known whether they have the correction."""
        releases = {process.release for _host, process in self.doubtful if process.release}
        if not releases:
            return ""
        builds = and_others(sorted({one_line(release, 80) for release in releases}))
        return f"whether {builds} has the cure, only its vendor knows"


def _schedulers(cluster: Cluster) -> _Schedulers:
    running: list[_Instance] = []
    faulty: list[_Instance] = []
    doubtful: list[_Instance] = []
    for host in cluster.hosts:
        if host.status != "ok" or not host.control_plane:
            continue
        for process in host.control_plane.processes_of(SCHEDULER):
            running.append((host, process))
            defect = node_tree.defect(process.release)
            if defect is None:
                doubtful.append((host, process))
            elif defect:
                faulty.append((host, process))
    return _Schedulers(tuple(running), tuple(faulty), tuple(doubtful))


def may_lose(cluster: Cluster) -> bool:
    """Tell whether a scheduler that runs has the defect, or may have it."""
    return _schedulers(cluster).may_lose


def zone_key(labels: Mapping[str, str]) -> str:
    """Return the zone of a node as the scheduler of 1.18 computes it.

    The beta label counts where there is one, even an empty one, else the stable label. The zone is
    empty without any.
    """
    region, zone = (
        labels.get(BETA + name, labels.get(STABLE + name, "")) for name in ("region", "zone")
    )
    if region or zone:
        return f"{region}/{zone}"
    return ""


def _zones(cluster: Cluster) -> Counter[str] | None:
    """Return how many nodes each zone has; None where the evidence lacks their labels."""
    labels = [node.labels for node in cluster.typed(Nodes).items]
    known_labels = [node_labels for node_labels in labels if node_labels is not None]
    if not known_labels or len(known_labels) < len(labels):
        return None
    return Counter(map(zone_key, known_labels))


def _no_zones(cluster: Cluster) -> list[Missing]:
    return list(cluster.missing("nodes")) or [cluster.missing_answer("nodes", "not_asked")]


def _spelled(zones: Counter[str]) -> str:
    return and_others(
        [
            f"{one_line(zone, 80).strip('/') or 'no zone'} ({count})"
            for zone, count in sorted(zones.items())
        ]
    )


def _versions(schedulers: tuple[_Instance, ...]) -> str:
    hosts = and_others(sorted({host.host for host, _process in schedulers}))
    releases = sorted({one_line(process.release, 80) for _host, process in schedulers})
    return f"{SCHEDULER} {' and '.join(releases)} on {hosts}"


def _proofs(schedulers: tuple[_Instance, ...]) -> list[EvidenceRef]:
    return [
        EvidenceRef(
            "process",
            host.host,
            pid=process.pid,
            argv=process.argv,
            text=f"version {one_line(process.release, 80)}",
        )
        for host, process in schedulers[:SHOWN]
    ]


@cluster_check(
    "KM201",
    "The scheduler can lose nodes",
    severity="warning",
    applies="clusters whose hosts run kube-scheduler",
    needs=("instances", "component_http", "manifests"),
    cluster_needs=("nodes",),
)
def has_defect(cluster: Cluster) -> Iterator[CheckResult]:
    """KM201: a running scheduler has a version with the defect, and there are several zones."""
    if cluster.key is None:
        yield without_kubernetes(component=SCHEDULER)
        return
    schedulers, zones = _schedulers(cluster), _zones(cluster)
    silent = leader_election.silent_members(cluster, "instances")
    if not schedulers.running and not silent:
        yield CheckResult(applies=False, component=SCHEDULER, note=NO_SCHEDULER)
    elif zones is None:
        missing = [*silent, *schedulers.unknown]
        if schedulers.may_lose:
            missing += _no_zones(cluster)
        yield CheckResult((), tuple(missing), component=SCHEDULER, note=schedulers.note)
    elif len(zones) < 2:
        note = ""
        if schedulers.may_lose:
            note = "all nodes are in one zone, so that the scheduler cannot lose any of them"
        yield CheckResult(component=SCHEDULER, note=note)
    elif schedulers.faulty:
        yield CheckResult((_risk(cluster, schedulers, zones),), component=SCHEDULER)
    else:
        missing = [*silent, *schedulers.unknown]
        yield CheckResult((), tuple(missing), component=SCHEDULER, note=schedulers.note)


def _risk(cluster: Cluster, schedulers: _Schedulers, zones: Counter[str]) -> Detection:
    return Detection(
        f"{_versions(schedulers.faulty)} loses nodes when some join and the zones are uneven:"
        f" {len(zones)} zones, {_spelled(zones)}",
        (*_proofs(schedulers.faulty), _zones_proof(cluster, zones)),
        f"upgrade the schedulers: {CURES}. Until then restart the one that leads after nodes joined"
        " or left (another one takes over meanwhile); what it lost is back then, until the next of"
        f" them come. What avoids it: {order(zones)}",
        component=SCHEDULER,
    )


def _zones_proof(cluster: Cluster, zones: Counter[str]) -> EvidenceRef:
    return EvidenceRef(
        "api",
        cluster.api_host,
        object="Nodes",
        text=f"{len(zones)} zones with their nodes: {_spelled(zones)}",
    )


def order(zones: Counter[str] | None) -> str:
    """Return advice: which order of joining or labelling makes the scheduler lose no node.

    A node that comes last in the scheduler's turns pushes no other one out of its list.
    """
    now = ""
    if zones:
        most = max(zones.values())
        largest = [zone for zone, count in zones.items() if count == most]
        now = f" (now {_spelled(Counter(dict.fromkeys(largest, most)))})"
    return (
        f"nodes that join the zone with the most nodes{now} push out no other one, and in a new"
        " cluster neither do those that join one of each zone in turn, always in the same order of"
        " zones; after any others restart the scheduler that leads. Zone labels belong to a node"
        " when it registers: one that is labelled later moves as if it had joined there"
    )


def waiting(cluster: Cluster) -> list[list[str]]:
    """Return [namespace, pod, node] of the pods of all of KM202's findings."""
    nodes = _lost_nodes(cluster, _schedulers(cluster), _zones(cluster)).nodes
    return [
        [str(entry.namespace), pod, node]
        for node, pods in sorted(nodes.items())
        for pod, entry in pods
    ]


def leader(cluster: Cluster) -> tuple[LockObject | None, Host | None, bool]:
    """Return (the lock that counts, its holder's host, whether another scheduler could take over).

    The host is None where a scheduler that does not elect places pods too, because it is not known
    which of them lost the node. It is also None where the holder's host runs one that takes another
    lock, or does not tell which.
    """
    running = _usual(cluster)
    lock, holders = leader_lease.holding(cluster, running, SCHEDULER)
    if lock is None or len(holders) != 1 or unled(cluster):
        return lock, None, False
    host, leading = holders[0]
    locks = leader_election.lock_names(leading)
    if lock.name not in locks:
        return lock, None, False
    other_processes = [process for other, process in running if other.host != host.host]
    return lock, host, any(_could_take_over(process, locks) for process in other_processes)


def _could_take_over(process: Process, locks: Collection[str]) -> bool:
    if process.elect is not True or process.source not in ("configz", "healthz"):
        return False
    return not leader_election.lock_names(process).isdisjoint(locks)


def unled(cluster: Cluster) -> list[str]:
    """Return the hosts of schedulers that place pods without a leader lease (KM101)."""
    return sorted({host.host for host, process in _usual(cluster) if process.elect is False})


def _usual(cluster: Cluster) -> list[_Instance]:
    return [
        (host, process)
        for host, process in _schedulers(cluster).running
        if USUAL in leader_election.scheduler_names(process)
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
def lost(cluster: Cluster) -> Iterator[CheckResult]:
    """KM202: a pod waits for its one node, which the scheduler's reasons do not count.

    The node is well and takes the pod.
    """
    if cluster.key is None:
        yield without_kubernetes(component=SCHEDULER)
        return
    schedulers, zones = _schedulers(cluster), _zones(cluster)
    silent = leader_election.silent_members(cluster, "instances")
    if not schedulers.running and not silent:
        yield CheckResult(applies=False, component=SCHEDULER, note=NO_SCHEDULER)
    elif not (silent or schedulers.may_lose) or _is_one_zone(zones):
        yield CheckResult(component=SCHEDULER)  # what waits, waits for something else
    else:
        yield _lost_outcome(cluster, schedulers, zones, silent)


def _is_one_zone(zones: Counter[str] | None) -> bool:
    return zones is not None and len(zones) < 2


def _lost_outcome(
    cluster: Cluster, schedulers: _Schedulers, zones: Counter[str] | None, silent: list[Missing]
) -> CheckResult:
    missing = _lost_missing(cluster, zones)
    lost_nodes = _lost_nodes(cluster, schedulers, zones)
    if lost_nodes.nodes and zones is not None:
        hits = _lost_hits(cluster, schedulers, zones, lost_nodes)
        return CheckResult(hits, tuple(missing), component=SCHEDULER)
    # which node is lost is not known, or whether this scheduler loses any
    if lost_nodes.doubtful:
        unknown = [*silent, *schedulers.unknown]
        missing += unknown or [cluster.missing_answer("pending", "error")]
    note = _doubt(lost_nodes, schedulers)
    return CheckResult((), tuple(missing), component=SCHEDULER, note=note)


def _lost_missing(cluster: Cluster, zones: Counter[str] | None) -> list[Missing]:
    missing = list(cluster.missing("pending"))
    if zones is None:
        missing += _no_zones(cluster)
    return missing or list(cluster.cut("pending"))


def _lost_hits(
    cluster: Cluster, schedulers: _Schedulers, zones: Counter[str], lost_nodes: _LostNodes
) -> tuple[Detection, ...]:
    by_name = {view.name: view for view in views(cluster)}
    explained = _explained(cluster, frozenset(lost_nodes.nodes))
    proofs = [_zones_proof(cluster, zones), explained.proof, *_proofs(schedulers.faulty)]
    more = ""
    if explained.others:
        other_names = and_others(list(explained.others))
        more = f"; by the replay of its log also {other_names}, which no pod names"
    return tuple(
        _lost(cluster, by_name[name], pods, proofs, more, order(zones))
        for name, pods in sorted(lost_nodes.nodes.items())
    )


def _lost_nodes(
    cluster: Cluster, schedulers: _Schedulers, zones: Counter[str] | None
) -> _LostNodes:
    if zones is None:
        return _LostNodes({}, [])
    by_name = {view.name: view for view in views(cluster)}
    lost_nodes: dict[str, _Waiting] = {}
    doubtful: _Waiting = []
    for entry, message in _miscounted(cluster, schedulers):
        for pod, target in targets(entry, by_name):
            if _proven(cluster, entry, message, by_name.get(target), len(by_name)):
                lost_nodes.setdefault(target, []).append((pod, entry))
        doubtful.append((waiting_pods.first_name(entry), entry))
    # If one of them has no defect, it may be the one that leads.
    all_faulty = len(schedulers.faulty) == len(schedulers.running)
    if not all_faulty or leader_election.silent_members(cluster, "instances"):
        return _LostNodes({}, doubtful, lost_nodes)
    if lost_nodes:
        return _LostNodes(lost_nodes, doubtful)
    return _LostNodes({}, doubtful, logged=_logged(cluster, doubtful, by_name))


def _miscounted(
    cluster: Cluster, schedulers: _Schedulers
) -> Iterator[tuple[PendingPods, scheduling_message.Message]]:
    """Yield the entries of these schedulers whose message counts too few reasons."""
    served = _served(schedulers)
    for entry in cluster.typed(Pending).items:
        message = scheduling_message.parse(entry.message)
        if message.missing and entry.scheduler in served:
            yield entry, message


def _doubt(lost_nodes: _LostNodes, schedulers: _Schedulers) -> str:
    """Return the reasons why a node may be lost.

    The reader may know the version that the evidence lacks.
    """
    if not lost_nodes.doubtful:
        return ""
    reasons = []
    if schedulers.note:
        reasons.append(schedulers.note)
    for name, pods in sorted(lost_nodes.suspects.items())[:SHOWN]:
        reasons.append(
            f"{_named(pods)} for {name}, and the reasons speak of {_counts(pods)}: a scheduler with"
            f" the defect of KM201 has lost {name} then, and one that begins to lead has it again"
        )
    if not lost_nodes.suspects:
        pods = lost_nodes.doubtful
        reasons.append(
            f"{_named(pods[:SHOWN])}, and the reasons speak of {_counts(pods)}:"
            f" {_log_replay(lost_nodes.logged)}"
        )
    return "; ".join(reasons)


def _log_replay(logged: tuple[str, ...]) -> str:
    """Return what the replay of the scheduler's log tells."""
    if not logged:
        return "whether a node is lost, and which, is not known here"
    names = and_others([one_line(name, 253) for name in logged])
    return f"by the log of the scheduler that leads, replayed, its list lacks {names}"


def _named(pods: _Waiting) -> str:
    names = and_others([_full_name(pod, entry) for pod, entry in pods])
    if len(pods) == 1:
        return f"{names} stays Pending"
    return f"{names} stay Pending"


def _full_name(pod: str, entry: PendingPods) -> str:
    return f"{one_line(entry.namespace, 80)}/{one_line(pod, 253)}"


def _counts(pods: _Waiting) -> str:
    message = scheduling_message.parse(pods[0][1].message)
    return f"{counted(message.total or 0, 'node')} of {message.nodes}"


def _logged(cluster: Cluster, doubtful: _Waiting, names: Collection[str]) -> tuple[str, ...]:
    """Return the nodes that are lost by the replay of the whole log, if a message lacks as many.

    No proof: nothing is repaired because of a log.
    """
    if not doubtful:
        return ()
    lost_nodes = _explained(cluster, frozenset()).others
    for _pod, entry in doubtful:
        message = scheduling_message.parse(entry.message)
        if message.nodes != len(names) or message.missing != len(lost_nodes):
            continue
        if _settled(cluster, entry):
            return lost_nodes
    return ()


def _settled(cluster: Cluster, entry: PendingPods) -> bool:
    age = ages.age(cluster, entry.since)
    return age is not None and age >= SETTLED_SECONDS


def _served(schedulers: _Schedulers) -> frozenset[str]:
    names = [leader_election.scheduler_names(process) for _host, process in schedulers.running]
    return frozenset().union({USUAL}, *names)


def targets(entry: PendingPods, names: Iterable[str]) -> list[tuple[str, str]]:
    """Return (pod, the one node that it can have), as far as the collector kept them.

    A DaemonSet's pod names it, any other one leaves out all the rest.
    """
    if entry.targets:
        return list(entry.targets)
    excluded = excluded_nodes.left_out(entry)
    remaining = [name for name in names if name not in excluded]
    if not excluded or len(remaining) != 1:
        return []
    return [(pod, remaining[0]) for pod in entry.names]


def _proven(
    cluster: Cluster,
    entry: PendingPods,
    message: scheduling_message.Message,
    target: NodeView | None,
    count: int,
) -> bool:
    """Tell whether no reason can be the target's, although it is well and takes the pod.

    The message says of the other nodes that the pod does not want them. If it says anything that
    may concern the target, a node may be lost, but it is not known that it is this one.
    """
    if target is None or target.ready != "True" or entry.unfit:
        # A target that is not there, not well or not what the pod asks for may be among those that
        # are counted, and another one lost.
        return False
    if message.nodes != count or not _settled(cluster, entry):
        return False
    return _takes(target, entry) and _spares(message, target)


def _takes(target: NodeView, entry: PendingPods) -> bool:
    """Tell whether a node certainly has no taint that keeps the pod away."""
    if entry.tolerations is None or not target.told:
        return False
    off, doubtful = taints.keeps_away(target.taints, entry.tolerations)
    return not off and not doubtful


def _spares(message: scheduling_message.Message, target: NodeView) -> bool:
    """Tell whether no reason of a message can concern the target."""
    harmless = {"affinity", "node_name", "taint"}
    if not target.cordoned:
        harmless.add("cordon")
    return bool(message.reasons) and all(reason.kind in harmless for reason in message.reasons)


def _explained(cluster: Cluster, targets: frozenset[str]) -> lost_nodes_cause.Explained:
    _lock, host, _ready = leader(cluster)
    process = None
    if host and host.control_plane:
        process = next(iter(host.control_plane.processes_of(SCHEDULER)), None)
    nodes = cluster.typed(Nodes).items
    zone_of = {str(node.name): zone_key(node.labels or {}) for node in nodes}
    return lost_nodes_cause.explained(cluster, host, process, zone_of, targets)


def _lost(
    cluster: Cluster,
    target: NodeView,
    pods: _Waiting,
    proofs: list[EvidenceRef],
    more: str,
    joining: str,
) -> Detection:
    """Return the hit of one lost node.

    more: a clause about other lost nodes
    joining: the order in which nodes joined
    """
    node_proof = EvidenceRef(
        "api",
        cluster.api_host,
        object=f"Node {target.name}",
        text=f"Ready, and the pod tolerates its taints; {_only_node(pods)}",
    )
    host = None
    if target.host:
        host = target.host.host
    return Detection(
        f"the scheduler has lost this node: {_named(pods)} for it, and the reasons speak of"
        f" {_counts(pods)}{more}",
        (*(_message_proof(cluster, *pod) for pod in pods[:SHOWN]), node_proof, *proofs),
        f"restart the scheduler that leads, while another one is there to take over: the node"
        f" is back then. It returns when nodes join unevenly again; cured by {CURES}. What avoids"
        f" it: {joining}. Nothing is to be done on the node or to the pod",
        host=host,
        node=target.name,
        component=SCHEDULER,
    )


def _message_proof(cluster: Cluster, pod: str, entry: PendingPods) -> EvidenceRef:
    message = one_line(entry.message, 300)
    return EvidenceRef(
        "api", cluster.api_host, object=f"Pod {_full_name(pod, entry)}", text=message
    )


def _only_node(pods: _Waiting) -> str:
    if any(entry.targets for _pod, entry in pods):
        return "it is the one that the pod's matchFields name"
    return "it alone has what the pod's selector or affinity asks for"
