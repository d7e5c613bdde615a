# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of pods that are unschedulable, or that no scheduler takes (KM203 to KM225)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...evidence.answers.cluster.pending import Pending, PendingPods, UnseenPods
from ...evidence.document import one_line
from ...models import ages
from ...models.api_node import SHOWN, and_others
from ...models.cluster import Cluster, Host
from ...models.result import EvidenceRef, Missing
from ...models.scheduling import excluded_nodes
from ...models.scheduling.excluded_nodes import CHOSEN, OTHER, Excluded
from ...models.scheduling.resource_offers import amount
from ...parsers.known_message import EVENT
from ..base import (
    AnyClusterCheck,
    CheckResult,
    Detection,
    causes,
    cluster_check,
    without_kubernetes,
)
from ..control_plane import leader_election, leader_lease
from ..known_causes import explained
from . import device_plugins, stalled_scheduler, waiting_pods

SCHEDULER, USUAL = "kube-scheduler", "default-scheduler"
# A scheduler reports on a pod within seconds, unless thousands are in its queue; an autoscaler that
# adds nodes for pods that wait needs minutes.
WAITED_SECONDS = 300
ROLE = leader_lease.Role(SCHEDULER, "scheduler", "every new pod stays Pending without an event")
_Waiting = tuple[PendingPods, list[Excluded]]
# What is in use ends by itself; what no node has, or not as much of it, no pod's end brings.
_SMALL = (
    "is large enough for what is requested",
    (
        "lower the request, or add a larger node. Neither the end of other pods nor another node of"
        " this size helps"
    ),
)
_NONE = (
    "offers what is requested",
    (
        "find out why no node offers it. A device plugin offers devices: check that its DaemonSet"
        " exists and that its pods run on the nodes with the devices (label, toleration), and read"
        " its log. Where no node has such devices, add nodes that have them. If the name is wrong,"
        " correct it in the workload. The end of other pods or the removal of a taint does not"
        " help"
    ),
)


def waiting_check(
    code: str, title: str, **metadata: Any
) -> Callable[[AnyClusterCheck], AnyClusterCheck]:
    """Register a cluster check of pods that wait for a reason that the scheduler gives."""
    return cluster_check(
        code,
        title,
        severity="warning",
        applies="clusters whose API answers",
        cluster_needs=("pending",),
        current_only=True,
        **metadata,
    )


@waiting_check("KM210", "Pods ask for more than nodes have", needs=("system_pods",))
def insufficient_resources(cluster: Cluster) -> Iterator[CheckResult]:
    """Report pods that request more than nodes have left."""
    return _waiting_results(
        cluster,
        frozenset({"resource"}),
        "nodes have not enough left of what is requested",
        "lower the requests, remove pods that are not needed, or add nodes with that resource",
    )


@waiting_check("KM211", "Pods match no node by selector or affinity")
def no_matching_node(cluster: Cluster) -> Iterator[CheckResult]:
    """Report pods whose selector, affinity or node name matches no node."""
    return _waiting_results(
        cluster,
        CHOSEN,
        "selector, affinity or node name leaves nodes out",
        (
            "compare the pod's selector and affinity with the labels of the nodes (kubectl get"
            " nodes --show-labels)"
        ),
    )


@waiting_check("KM212", "Pods cannot be spread as they ask")
def unsatisfiable_spread(cluster: Cluster) -> Iterator[CheckResult]:
    """Report pods whose topology spread constraints exclude nodes."""
    return _waiting_results(
        cluster,
        frozenset({"spread"}),
        "topology spread constraints leave nodes out",
        (
            "add nodes in the domains that have fewer of these pods, label the nodes, or let the"
            " constraint be ScheduleAnyway"
        ),
    )


@waiting_check("KM213", "Pods ask for a host port that is taken")
def host_port_taken(cluster: Cluster) -> Iterator[CheckResult]:
    """Report pods whose host port is taken on nodes."""
    return _waiting_results(
        cluster,
        frozenset({"port"}),
        "the requested host port is taken on nodes",
        "remove the other pod with that port, or do without a host port",
    )


@waiting_check("KM214", "Nodes have as many pods as they may have")
def node_full(cluster: Cluster) -> Iterator[CheckResult]:
    """Report nodes that run their maximum number of pods."""
    return _waiting_results(
        cluster,
        frozenset({"pods"}),
        "nodes have as many pods as they may have",
        "add nodes, or raise maxPods where addresses allow it",
    )


@waiting_check(
    "KM215",
    "Pods wait for a claim that is not bound",
    explained_by=causes("KM180", component="claims"),
)
def unbound_claim(cluster: Cluster) -> Iterator[CheckResult]:
    """Report pods that wait for a claim that is not bound."""
    return _waiting_results(
        cluster,
        frozenset({"claim"}),
        "of claims",
        "look at the claim (kubectl describe pvc): its storage class, and whether its provisioner"
        " runs",
    )


@waiting_check(
    "KM216", "Pods wait for nodes that are cordoned", explained_by=causes("KM514", "KM903")
)
def cordoned_nodes(cluster: Cluster) -> Iterator[CheckResult]:
    """Report pods that wait for cordoned nodes."""
    return _waiting_results(
        cluster,
        frozenset({"cordon"}),
        "suitable nodes are cordoned",
        "ask who cordoned them, and why; or let the pods have other nodes",
    )


@waiting_check(
    "KM217", "Pods wait for nodes that are not ready", explained_by=causes("KM115", "KM512")
)
def unready_nodes(cluster: Cluster) -> Iterator[CheckResult]:
    """Report pods that wait for nodes that are not ready."""
    return _waiting_results(
        cluster,
        frozenset({"unready"}),
        "suitable nodes are not ready",
        "run the playbook kubemend.remediation.node_unreachable: it reports why each of these nodes"
        " is not ready",
    )


@waiting_check("KM224", "No eligible node can attach a pod's volume")
def volume_elsewhere(cluster: Cluster) -> Iterator[CheckResult]:
    """Report pods whose volumes no remaining node can attach."""
    return _waiting_results(
        cluster,
        frozenset({"volume"}),
        "no eligible node can attach the volume (another zone or node, or too many volumes)",
        (
            "compare the volume's node affinity (kubectl describe pv) with the nodes that remain."
            " Uncordon or add a node in the volume's zone; where the nodes there have reached their"
            " limit of volumes, add another one"
        ),
    )


@waiting_check("KM225", "Pods wait for another reason", explained_by=causes("KM115"))
def other_reason(cluster: Cluster) -> Iterator[CheckResult]:
    """Report pods that wait for a reason that only the scheduler's message states."""
    reason = "of what the scheduler says itself"
    advice = "read the scheduler's words; its log has more"
    for result in _waiting_results(cluster, OTHER, reason, advice):
        hits = (
            explained(hit, (EVENT,), [proof.text or "" for proof in hit.evidence])
            for hit in result.hits
        )
        yield result._replace(hits=tuple(hits))


@cluster_check(
    "KM203",
    "No scheduler leads",
    severity="critical",
    applies="clusters whose schedulers take a lock",
    needs=("instances", "manifests"),
    cluster_needs=("locks", "nodes"),
    current_only=True,
    explained_by=causes("KM115", "KM120", "KM122", "KM126")
    | causes("KM105", "KM107", "KM114", "KM116", "KM118", component="kube-scheduler"),
)
def nobody_leads(cluster: Cluster) -> Iterator[CheckResult]:
    """KM203: no scheduler renews the schedulers' lock."""
    if cluster.key is None:
        yield without_kubernetes(component=SCHEDULER)
        return
    _lock, hits, missing = leader_lease.judged(cluster, ROLE, _usual_schedulers(cluster))
    if hits:
        yield CheckResult(tuple(hits), component=SCHEDULER)
    else:
        yield CheckResult((), tuple(missing), component=SCHEDULER)


def _usual_schedulers(cluster: Cluster) -> list[tuple[Host, Any]]:
    """Return those of the schedulers that take pods which name no scheduler."""
    return [
        (host, item)
        for host, item in _schedulers(cluster)
        if USUAL in leader_election.scheduler_names(item)
    ]


def _schedulers(cluster: Cluster) -> list[tuple[Host, Any]]:
    """Return (host, control-plane process) of all schedulers that run on these hosts."""
    schedulers = []
    for host in cluster.hosts:
        if host.control_plane:
            schedulers += [(host, item) for item in host.control_plane.processes_of(SCHEDULER)]
    return schedulers


@cluster_check(
    "KM204",
    "No scheduler takes pods that wait",
    severity="warning",
    applies="clusters whose API answers",
    needs=("instances", "installer"),
    cluster_needs=("pending", "locks"),
    current_only=True,
    explained_by=causes("KM115") | causes("KM118", component=SCHEDULER),
)
def unserved(cluster: Cluster) -> Iterator[CheckResult]:
    """KM204: pods without a message of any scheduler, that want one which none of these hosts runs.

    Or they want the usual one, which leads and has taken none of them for long. A scheduler that is
    late, or of which none leads (KM203), is not meant.
    """
    if cluster.key is None:
        yield without_kubernetes()
        return
    missing, hits = _unseen_missing(cluster), []
    running = [item for _host, item in _schedulers(cluster)]
    served = frozenset().union(*map(leader_election.scheduler_names, running))
    explained = served | _without_leader(cluster)
    for entry in cluster.typed(Pending).unseen or ():
        stalled = _stalled(cluster, entry)
        hits += stalled
        if stalled or entry.scheduler in explained:
            continue
        lacks = _unserved_missing(cluster, entry, bool(running))
        if lacks == []:
            hits.append(_unserved(cluster, entry, sorted(served)))
        missing += lacks or []
    yield CheckResult(tuple(hits), tuple(missing))


def _without_leader(cluster: Cluster) -> frozenset[str]:
    """Return the usual scheduler where none leads, as its locks tell."""
    if any(outcome.hits for outcome in nobody_leads(cluster)):
        return frozenset((USUAL,))
    return frozenset()


def _stalled(cluster: Cluster, entry: UnseenPods) -> list[Detection]:
    """Return the hit of the usual scheduler where it leads and takes no pods."""
    if entry.scheduler != USUAL:
        return []
    hit = stalled_scheduler.hit(cluster, entry, _usual_schedulers(cluster))
    return [hit] if hit is not None else []


def _unserved_missing(cluster: Cluster, entry: UnseenPods, any_runs: bool) -> list[Missing] | None:
    """Return what is missing to call pods unserved; None where they have not waited long."""
    missing = _waiting_missing(cluster, entry)
    if missing == [] and entry.scheduler == USUAL:
        return _usual_missing(cluster, any_runs)
    return missing


def _unseen_missing(cluster: Cluster) -> list[Missing]:
    """Return what is missing of the pods that no scheduler has reported on."""
    missing = _pending(cluster)
    if not missing and cluster.typed(Pending).unseen is None:
        # an older release collected it
        missing.append(cluster.missing_answer("pending", "not_asked"))
    return missing


def _waiting_missing(cluster: Cluster, entry: PendingPods | UnseenPods) -> list[Missing] | None:
    """Return what is missing to know how long pods have waited; None where it is not yet long."""
    waited = ages.age(cluster, entry.since)
    if waited is None:
        return [cluster.missing_answer("pending", "error")]
    if waited >= WAITED_SECONDS or entry.asked:
        return []
    return None


def _usual_missing(cluster: Cluster, any_runs: bool) -> list[Missing]:
    """Return the hosts that may run the usual scheduler.

    It may also be a part of another program, where no scheduler runs.
    """
    missing = list(leader_election.silent_members(cluster, "instances"))
    if not missing and not any_runs:
        missing.append(cluster.missing_answer("instances", "absent"))
    return missing


def _unserved(cluster: Cluster, entry: UnseenPods, served: list[str]) -> Detection:
    name = one_line(entry.scheduler, 120)
    names = ", ".join(one_line(pod, 320) for pod in entry.names)
    waits = waiting_pods.wait(entry.pods or len(entry.names))
    other_schedulers = ""
    if served:
        listed = and_others([one_line(item, 80) for item in served])
        other_schedulers = (
            f"; the control plane runs {listed}, and another scheduler needs a lease of its own"
        )
    return Detection(
        f"{waits} for the scheduler {name}, which does not run on these hosts: the oldest"
        f" since {one_line(entry.since, 40)}{other_schedulers}",
        (
            EvidenceRef(
                "api",
                cluster.api_host,
                object=f"Pod {names}",
                text=f"spec.schedulerName is {name}, and there is no condition PodScheduled",
            ),
        ),
        f"if {name} is a scheduler of this cluster, find out why its pods do not run or do not"
        " lead. With leader election they need their own lease (leaderElection.resourceName of"
        " their configuration), because kube-system/kube-scheduler is the lease of the control"
        " plane. If the name is wrong, correct schedulerName in the workload's template and create"
        " the pods again: an existing pod cannot change it. A batch scheduler may keep pods in its"
        " queue and not report on them",
    )


def _pending(cluster: Cluster) -> list[Missing]:
    missing = list(cluster.missing("pending"))
    if not missing:
        missing += cluster.cut("pending")
    return missing


def _counted(entry: PendingPods, nodes: excluded_nodes.Nodes) -> list[Excluded]:
    """Return the reasons without those that are on purpose.

    They concern nodes that the pod does not ask for, or the control plane's.
    """
    reasons = nodes.reasons_of(entry)
    # it counts no nodes, and contains nothing that is known here
    if not reasons and entry.message:
        return [Excluded("unknown", one_line(entry.message, 300), None)]
    return [reason for reason in reasons if not reason.meant]


def _waiting_results(
    cluster: Cluster, kinds: frozenset[str], reason: str, advice: str
) -> Iterator[CheckResult]:
    """Yield the result for a reason that the scheduler itself gives (KM210 to KM225)."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    missing, nodes = _pending(cluster), excluded_nodes.nodes_of(cluster)
    # not enough remains, no node is large enough, none has any
    groups = _Waiters(), _Waiters(), _Waiters()
    for entry in cluster.typed(Pending).items:
        counted = _counted(entry, nodes)
        reasons = _decisive(counted, kinds)
        if not reasons:
            continue
        lacks = _waiting_missing(cluster, entry)
        if lacks:
            missing += lacks
        elif lacks is not None:
            for group, group_reasons in zip(groups, _by_lack(reasons), strict=True):
                group.take(entry, group_reasons, counted, nodes)
    yield CheckResult(_waiting_hits(cluster, groups, reason, advice), tuple(missing))


def _decisive(counted: list[Excluded], kinds: frozenset[str]) -> list[Excluded]:
    """Return the reasons of these kinds, if they are what keeps the pod waiting."""
    reasons = [reason for reason in counted if reason.kind in kinds]
    if kinds not in (CHOSEN, OTHER):
        return reasons
    # Most selectors exclude nodes: they are the reason where there is no other one.
    reported = [reason for reason in counted if not reason.unsaid]
    if len(reasons) < len(reported):
        return []
    return reasons


def _by_lack(reasons: list[Excluded]) -> tuple[list[Excluded], list[Excluded], list[Excluded]]:
    """Return the reasons where (too little remains, no node is large enough, no node has any)."""
    remaining: list[Excluded] = []
    small: list[Excluded] = []
    none: list[Excluded] = []
    for reason in reasons:
        if reason.lack is None:
            remaining.append(reason)
        elif reason.lack.most:
            small.append(reason)
        else:
            none.append(reason)
    return remaining, small, none


def _waiting_hits(
    cluster: Cluster, groups: tuple[_Waiters, ...], reason: str, advice: str
) -> tuple[Detection, ...]:
    remaining, small, none = groups
    hits = []
    if none.waiting:
        hit = _waiting_hit(cluster, none, _no_node(none, _NONE[0]), _NONE[1])
        hits.append(device_plugins.with_plugin_lines(cluster, hit, none.lacking))
    if small.waiting:
        hits.append(_waiting_hit(cluster, small, _no_node(small, _SMALL[0]), _SMALL[1]))
    if remaining.waiting:
        hits.append(_waiting_hit(cluster, remaining, reason, advice))
    return tuple(hits)


@dataclass
class _Waiters:
    """Pods that wait for the same.

    alone: whether nothing else keeps some of them
    others: what else keeps them, where it keeps all of them
    known: {what is known of nodes: which nodes}
    spared: the same for nodes that are not for the first of these pods
    """

    waiting: list[_Waiting] = field(default_factory=list)
    alone: bool = False
    others: tuple[Excluded, ...] = ()
    known: dict[str, set[str]] = field(default_factory=dict)
    spared: list[tuple[str, list[str]]] = field(default_factory=list)

    @property
    def lacking(self) -> dict[str, set[str]]:
        """Return {resource that they lack: the nodes known to be excluded for it}."""
        nodes: dict[str, set[str]] = {}
        for reason in itertools.chain.from_iterable(reasons for _entry, reasons in self.waiting):
            nodes.setdefault(reason.name, set()).update(reason.nodes or ())
        return nodes

    def take(
        self,
        entry: PendingPods,
        reasons: list[Excluded],
        counted: list[Excluded],
        nodes: excluded_nodes.Nodes,
    ) -> None:
        """Add a pod that waits for these reasons.

        counted: all reasons that count
        """
        if not reasons:
            return
        other_reasons = _other_reasons(reasons, counted)
        if not other_reasons or any(reason.lack for reason in reasons):
            self.alone = True
        self.others = self.others or tuple(other_reasons)
        for reason in reasons:
            for text, names in _proven(reason):
                self.known.setdefault(one_line(text, 250), set()).update(names)
        if not self.waiting:
            self.spared = [
                (one_line(f"not for {_named(entry)}: {text}", 320), names)
                for text, names in excluded_nodes.spared(nodes.reasons_of(entry), reasons)
            ]
        self.waiting.append((entry, reasons))


def _other_reasons(reasons: list[Excluded], counted: list[Excluded]) -> list[Excluded]:
    """Return what else keeps a pod waiting.

    A taint sets nodes apart, which is no reason why the other nodes do not fit.
    """
    other_reasons = [
        reason for reason in counted if reason not in reasons and reason.kind != "taint"
    ]
    if reasons[0].kind == "resource":
        return other_reasons
    return [reason for reason in other_reasons if not reason.unsaid]


def _no_node(group: _Waiters, lack: str) -> str:
    """Return the summary of a lack, which may concern only the nodes that the pods ask for."""
    for _entry, reasons in group.waiting:
        if any(reason.lack and reason.lack.elsewhere for reason in reasons):
            return f"no selected node {lack}"
    return f"no node {lack}"


def _waiting_hit(cluster: Cluster, group: _Waiters, reason: str, advice: str) -> Detection:
    """Return one finding for a cluster, which names the owners of the pods.

    It is only a hint as long as each pod has other reasons too.
    """
    severity, remedy = None, advice
    if not group.alone:
        severity, remedy = "info", advice + excluded_nodes.besides(group.others)
    entries = [entry for entry, _reasons in group.waiting]
    waits = waiting_pods.wait(sum(map(waiting_pods.count, entries)))
    return Detection(
        f"{waits} because {reason}{_requested(group)}: {waiting_pods.owners(entries)}",
        tuple(_waiting_proofs(cluster, group)),
        remedy,
        severity=severity,
    )


def _requested(group: _Waiters) -> str:
    """Return the names of what the pods lack, in parentheses, or nothing."""
    names = {
        _asked_of(reason)
        for reason in itertools.chain.from_iterable(reasons for _entry, reasons in group.waiting)
        if reason.name
    }
    if not names:
        return ""
    return f" ({and_others(sorted(names))})"


def _waiting_proofs(cluster: Cluster, group: _Waiters) -> Iterator[EvidenceRef]:
    for entry, _reasons in group.waiting[:SHOWN]:
        message = one_line(entry.message, 300)
        yield EvidenceRef("api", cluster.api_host, object=f"Pod {_named(entry)}", text=message)
    for text, nodes in [*list(group.known.items())[:SHOWN], *group.spared[:SHOWN]]:
        names = and_others(sorted(nodes))
        yield EvidenceRef("api", cluster.api_host, object=f"Nodes {names}", text=text)


def _named(entry: PendingPods) -> str:
    """Return the namespace and name of the first of these pods."""
    return f"{one_line(entry.namespace, 80)}/{one_line(waiting_pods.first_name(entry), 253)}"


def _asked_of(reason: Excluded) -> str:
    name, lack = one_line(reason.name, 120), reason.lack
    if lack and lack.most:
        requested, most = amount(reason.name, lack.asked), amount(reason.name, lack.most)
        return f"{name}: {requested} of {most} at most"
    return name


def _proven(reason: Excluded) -> Iterator[tuple[str, Collection[str]]]:
    """Yield (what is known of nodes, which)."""
    name, lack = one_line(reason.name, 120), reason.lack
    if reason.nodes:
        text = f"excluded: {excluded_nodes.worded(reason)}"
        if reason.unsaid:
            text = (
                f"have too little {name}; the scheduler ends at another reason of theirs, before it"
                " looks for it (a DeviceClass that stands for it, from 1.34 on, is not asked for"
                " here)"
            )
        yield text, reason.nodes
    if lack and lack.idle:
        yield (
            (
                f"have {name}, and none of it for pods: unhealthy, or no device plugin is"
                " registered for it now"
            ),
            lack.idle,
        )
    if lack and lack.elsewhere:
        yield (
            f"offer {name}, and these pods do not ask for them (their selector, their affinity)",
            lack.elsewhere,
        )
