# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why pods stay Pending, KM203, KM204, KM210 to KM217 and KM224, KM225: nobody schedules them, or
what the scheduler itself says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...evidence.document import one_line
from ...models import ages
from ...models.api_node import SHOWN, and_others
from ...models.cluster import Cluster
from ...models.result import Missing, Proof
from ...models.scheduling import excluded_nodes as excluded
from ...models.scheduling.resource_offers import amount
from ..base import Hit, Outcome, causes, cluster_check
from ..control_plane import leader_election as election
from ..control_plane import leader_lease as leading

SCHEDULER, USUAL = "kube-scheduler", "default-scheduler"
# A scheduler says something of a pod within seconds, but for thousands in its queue; and whoever
# adds nodes for pods that wait needs minutes.
WAITED_SECONDS = 300
ROLE = leading.Role(SCHEDULER, "scheduler", "every new pod stays Pending without a word")
CHOSEN, OTHER = excluded.CHOSEN, excluded.OTHER
_Waiting = tuple[Mapping[str, Any], list[excluded.Excluded]]
# What is in use ends by itself; what no node has, or not as much of it, no pod's end brings.
_SMALL = (
    "is large enough for what they request",
    (
        "lower the request, or add a larger node: neither the end of other pods nor another node of"
        " this size helps"
    ),
)
_NONE = (
    "offers what they request",
    (
        "see why none does. Devices are offered by a device plugin: is its DaemonSet there, do its"
        " pods run on the nodes that have them (a label, a toleration), what does its log say;"
        " where none has them, add a pool of nodes that do; or it is a slip, then correct the name"
        " in the workload. Other pods that end, and taints that go, do not help"
    ),
)


@cluster_check(
    "KM203",
    "No scheduler leads",
    severity="critical",
    applies="clusters whose schedulers take a lock",
    needs=("instances", "manifests"),
    cluster_needs=("locks", "nodes"),
    current_only=True,
    explained_by=causes("KM115") | causes("KM105", "KM107", "KM114", component="kube-scheduler"),
)
def nobody_leads(cluster: Cluster) -> Iterator[Outcome]:
    """KM203: nobody renews the schedulers' lock."""
    if cluster.key is None:
        yield Outcome(applies=False, component=SCHEDULER, note="no Kubernetes found on these hosts")
        return
    running = [
        (host, item)
        for host in cluster.hosts
        if host.control_plane
        for item in host.control_plane.of(SCHEDULER)
        if USUAL in election.scheduler_names(item)
    ]
    _lock, hits, missing = leading.judged(cluster, ROLE, running)
    yield Outcome(tuple(hits), () if hits else tuple(missing), component=SCHEDULER)


@cluster_check(
    "KM204",
    "Pods request a scheduler that is not running",
    severity="warning",
    applies="clusters whose API answers",
    needs=("instances",),
    cluster_needs=("pending",),
    current_only=True,
    explained_by=causes("KM115"),
)
def unserved(cluster: Cluster) -> Iterator[Outcome]:
    """KM204: pods that no scheduler says anything of, and that want one that no kube-scheduler
    of these hosts is.
    """
    if cluster.key is None:
        yield Outcome(applies=False, note="no Kubernetes found on these hosts")
        return
    missing, seen = _pending(cluster), cluster.answer("pending") or {}
    if not missing and "unseen" not in seen:
        # an older release collected it
        missing.append(Missing(cluster.api_host or "cluster API", "pending", "not_asked"))
    running = [
        item
        for host in cluster.hosts
        if host.control_plane
        for item in host.control_plane.of(SCHEDULER)
    ]
    served, hits = frozenset().union(*(election.scheduler_names(item) for item in running)), []
    # where the locks were asked for too
    down = any(outcome.hits for outcome in nobody_leads(cluster))
    for one in cluster.rows("pending", "unseen"):
        waited = _waited(cluster, one.get("since"))
        if one.get("scheduler") in served or (one.get("scheduler") == USUAL and down):
            continue  # that one is late, or none of its kind leads (KM203)
        if waited is None:
            missing.append(Missing(cluster.api_host or "cluster API", "pending", "error"))
        elif waited >= WAITED_SECONDS or one.get("asked"):
            # what runs the usual one may be a host that is silent, or a program that is more than
            # it
            silent = (
                election.silent_members(cluster, "instances")
                if one.get("scheduler") == USUAL
                else []
            )
            if silent or (one.get("scheduler") == USUAL and not running):
                missing += silent or [
                    Missing(cluster.api_host or "cluster API", "instances", "absent")
                ]
            else:
                hits.append(_unserved(cluster, one, sorted(served)))
    yield Outcome(tuple(hits), tuple(missing))


def _unserved(cluster: Cluster, one: Mapping[str, Any], served: list[str]) -> Hit:
    name, count = one_line(one.get("scheduler"), 120), one.get("pods")
    pods = ", ".join(one_line(pod, 320) for pod in one.get("names") or ())
    others = (
        f"; those of the control plane are {and_others([one_line(item, 80) for item in served])}"
        if served
        else ""
    )
    return Hit(
        f"no kube-scheduler of these hosts is {name}, and nothing has said anything of the pods"
        f" that want it: {count} {'waits' if count == 1 else 'wait'}, the oldest since"
        f" {one_line(one.get('since'), 40)}{others}",
        (
            Proof(
                "api",
                cluster.api_host,
                object=f"Pod {pods}",
                text=f"spec.schedulerName is {name}, and there is no condition PodScheduled",
            ),
        ),
        f"if {name} is a scheduler of this cluster, see why its pods do not run or do not lead; if"
        " it is a slip, correct schedulerName in the template of the workload: a pod that is there"
        " cannot change it, and is made anew. A batch scheduler may keep pods in its queue without"
        " a word",
    )


def _pending(cluster: Cluster) -> list[Missing]:
    missing = list(cluster.missing("pending"))
    if not missing:
        missing += cluster.cut("pending")
    return missing


def _waited(cluster: Cluster, since: Any) -> float | None:
    return ages.age(cluster, since)


def _counted(entry: Mapping[str, Any], nodes: excluded.Nodes) -> list[excluded.Excluded]:
    """The reasons without those that are meant to be.

    Of nodes that the pod does not ask for, and of the control plane's.
    """
    told = nodes.of(entry)
    # it counts no nodes, and speaks of nothing that is known here
    if not told and entry.get("message"):
        return [excluded.Excluded("unknown", one_line(entry.get("message"), 300), None)]
    return [one for one in told if not one.meant]


def said(kinds: frozenset[str], what: str, advice: str) -> Callable[[Cluster], Iterator[Outcome]]:
    """The predicate of a reason that the scheduler itself gives (KM210 to KM217, KM224 and
    KM225).
    """

    def predicate(cluster: Cluster) -> Iterator[Outcome]:
        if cluster.key is None:
            yield Outcome(applies=False, note="no Kubernetes found on these hosts")
            return
        missing, nodes = _pending(cluster), excluded.nodes_of(cluster)
        # not enough is left, no node is large enough, none has any
        found = _Found(), _Found(), _Found()
        for entry in cluster.rows("pending", "items"):
            counted = _counted(entry, nodes)
            mine = [one for one in counted if one.kind in kinds]
            # Most selectors leave nodes out: they are the reason where there is no other one.
            if not mine or (
                kinds in (CHOSEN, OTHER)
                and len(mine) < len([one for one in counted if not one.unsaid])
            ):
                continue
            waited = _waited(cluster, entry.get("since"))
            if waited is None:
                missing.append(Missing(cluster.api_host or "cluster API", "pending", "error"))
            elif waited >= WAITED_SECONDS or entry.get("asked"):
                for place, one in enumerate(found):
                    one.take(
                        entry,
                        [reason for reason in mine if _never(reason) == place],
                        counted,
                        nodes,
                    )
        ways = (
            (what, advice),
            (_no_node(found[1], _SMALL[0]), _SMALL[1]),
            (_no_node(found[2], _NONE[0]), _NONE[1]),
        )
        yield Outcome(
            tuple(
                _said(cluster, one, *way)
                for one, way in reversed(list(zip(found, ways)))
                if one.waiting
            ),
            tuple(missing),
        )

    return predicate


@dataclass
class _Found:
    """Pods that wait for the same. alone: whether nothing else keeps some of them; others.

    What else does, where it is so of all of them.

    known: {what is known of nodes: which}; spared: the same of those that are not for the first of
    these pods.
    """

    waiting: list[_Waiting] = field(default_factory=list)
    alone: bool = False
    others: tuple[excluded.Excluded, ...] = ()
    known: dict[str, set[str]] = field(default_factory=dict)
    spared: list[tuple[str, list[str]]] = field(default_factory=list)

    def take(
        self,
        entry: Mapping[str, Any],
        mine: list[excluded.Excluded],
        counted: list[excluded.Excluded],
        nodes: excluded.Nodes,
    ) -> None:
        if not mine:
            return
        # Nodes that somebody set apart are not for these pods: that is no reason why the others do
        # not fit.
        others = [
            one
            for one in counted
            if one not in mine
            and one.kind != "taint"
            and (not one.unsaid or mine[0].kind == "resource")
        ]
        self.alone = self.alone or not others or any(one.lack for one in mine)
        self.others = self.others or tuple(others)
        for text, names in (pair for reason in mine for pair in _proven(reason)):
            self.known.setdefault(one_line(text, 250), set()).update(names)
        if not self.waiting:
            self.spared = [
                (one_line(f"not for {_named(entry)}: {text}", 320), names)
                for text, names in excluded.spared(nodes.of(entry), mine)
            ]
        self.waiting.append((entry, mine))


def _never(reason: excluded.Excluded) -> int:
    return 0 if reason.lack is None else 1 if reason.lack.most else 2


def _no_node(found: _Found, what: str) -> str:
    """Where another node could have them, it is those that they ask for which cannot."""
    chosen = any(
        reason.lack and reason.lack.elsewhere for _entry, mine in found.waiting for reason in mine
    )
    return f"no node{' that they ask for' if chosen else ''} {what}"


def _said(cluster: Cluster, found: _Found, what: str, advice: str) -> Hit:
    """One finding for a cluster, which names whose pods they are.

    It is only a hint as long as each pod has other reasons too.
    """
    waiting = found.waiting
    count = sum(
        entry["pods"] if isinstance(entry.get("pods"), int) else 1 for entry, _mine in waiting
    )
    owners = and_others(
        list(
            dict.fromkeys(
                f"{one_line(entry.get('owner') or 'Pod/' + str((entry.get('names') or ['?'])[0]), 300)}"
                f" (namespace {one_line(entry.get('namespace'), 80)})"
                for entry, _mine in waiting
            )
        )
    )
    names = sorted(
        {_asked_of(reason) for _entry, mine in waiting for reason in mine if reason.name}
    )
    proofs = [
        Proof(
            "api",
            cluster.api_host,
            object=f"Pod {_named(entry)}",
            text=one_line(entry.get("message"), 300),
        )
        for entry, _mine in waiting[:SHOWN]
    ]
    proofs += [
        Proof("api", cluster.api_host, object=f"Nodes {and_others(sorted(nodes))}", text=text)
        for text, nodes in [*list(found.known.items())[:SHOWN], *found.spared[:SHOWN]]
    ]
    who, named = (
        "pod waits" if count == 1 else "pods wait",
        (f" ({and_others(names)})" if names else ""),
    )
    return Hit(
        f"{count} {who} because {what}{named}: {owners}",
        tuple(proofs),
        advice + ("" if found.alone else excluded.besides(found.others)),
        severity=None if found.alone else "info",
    )


def _named(entry: Mapping[str, Any]) -> str:
    """One of these pods."""
    return (
        f"{one_line(entry.get('namespace'), 80)}/{one_line((entry.get('names') or ['?'])[0], 253)}"
    )


def _asked_of(reason: excluded.Excluded) -> str:
    name, lack = one_line(reason.name, 120), reason.lack
    return (
        f"{name}: {amount(reason.name, lack.asked)} of {amount(reason.name, lack.most)} at most"
        if lack and lack.most
        else name
    )


def _proven(reason: excluded.Excluded) -> Iterator[tuple[str, Collection[str]]]:
    """(what is known of nodes, which)."""
    name = one_line(reason.name, 120)
    if reason.nodes:
        yield (
            (
                f"have too little {name}; the scheduler ends at another reason of theirs, before it"
                " looks for it (a DeviceClass that stands for it, from 1.34 on, is not asked for"
                " here)"
                if reason.unsaid
                else f"excluded: {excluded.worded(reason)}"
            ),
            reason.nodes,
        )
    if reason.lack and reason.lack.idle:
        yield (
            (
                f"have {name}, and none of it for pods: unhealthy, or no device plugin is"
                " registered for it now"
            ),
            reason.lack.idle,
        )
    if reason.lack and reason.lack.elsewhere:
        yield (
            f"offer {name}, and these pods do not ask for them (their selector, their affinity)",
            reason.lack.elsewhere,
        )


@cluster_check(
    "KM210",
    "Pods ask for more than nodes have",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending",),
    current_only=True,
)
def insufficient_resources(cluster: Cluster) -> Iterator[Outcome]:
    """Report pods that request more than nodes have left."""
    return said(
        frozenset({"resource"}),
        "nodes have not enough left of what they request",
        "lower the requests, remove pods that are not needed, or add nodes with that resource",
    )(cluster)


@cluster_check(
    "KM211",
    "Pods match no node by selector or affinity",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending",),
    current_only=True,
)
def no_matching_node(cluster: Cluster) -> Iterator[Outcome]:
    """Report pods whose selector, affinity or node name matches no node."""
    return said(
        CHOSEN,
        "their selector, affinity or node name leaves nodes out",
        (
            "compare the pod's selector and affinity with the labels of the nodes (kubectl get nodes"
            " --show-labels)"
        ),
    )(cluster)


@cluster_check(
    "KM212",
    "Pods cannot be spread as they ask",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending",),
    current_only=True,
)
def unsatisfiable_spread(cluster: Cluster) -> Iterator[Outcome]:
    """Report pods whose topology spread constraints exclude nodes."""
    return said(
        frozenset({"spread"}),
        "their topology spread constraints leave nodes out",
        (
            "add nodes in the domains that have fewer of these pods, label the nodes, or let the"
            " constraint be ScheduleAnyway"
        ),
    )(cluster)


@cluster_check(
    "KM213",
    "Pods ask for a host port that is taken",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending",),
    current_only=True,
)
def host_port_taken(cluster: Cluster) -> Iterator[Outcome]:
    """Report pods whose host port is taken on nodes."""
    return said(
        frozenset({"port"}),
        "the host port that they ask for is taken on nodes",
        "remove the other pod with that port, or do without a host port",
    )(cluster)


@cluster_check(
    "KM214",
    "Nodes have as many pods as they may have",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending",),
    current_only=True,
)
def node_full(cluster: Cluster) -> Iterator[Outcome]:
    """Report nodes that run their maximum number of pods."""
    return said(
        frozenset({"pods"}),
        "nodes have as many pods as they may have",
        "add nodes, or raise maxPods where addresses allow it",
    )(cluster)


@cluster_check(
    "KM215",
    "Pods wait for a claim that is not bound",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending",),
    current_only=True,
)
def unbound_claim(cluster: Cluster) -> Iterator[Outcome]:
    """Report pods that wait for a claim that is not bound."""
    return said(
        frozenset({"claim"}),
        "of their claims",
        "look at the claim (kubectl describe pvc): its storage class, and whether its provisioner runs",
    )(cluster)


@cluster_check(
    "KM216",
    "Pods wait for nodes that are cordoned",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending",),
    current_only=True,
    explained_by=causes("KM514", "KM903"),
)
def cordoned_nodes(cluster: Cluster) -> Iterator[Outcome]:
    """Report pods that wait for cordoned nodes."""
    return said(
        frozenset({"cordon"}),
        "nodes that they could have are cordoned",
        "ask who cordoned them, and why; or let the pods have other nodes",
    )(cluster)


@cluster_check(
    "KM217",
    "Pods wait for nodes that are not ready",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending",),
    current_only=True,
    explained_by=causes("KM115", "KM512"),
)
def unready_nodes(cluster: Cluster) -> Iterator[Outcome]:
    """Report pods that wait for nodes that are not ready."""
    return said(
        frozenset({"unready"}),
        "nodes that they could have are not ready",
        "bring those nodes back: the playbook node_unreachable tells of each why it is not ready",
    )(cluster)


@cluster_check(
    "KM224",
    "Pods' volumes are where no node is left",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending",),
    current_only=True,
)
def volume_elsewhere(cluster: Cluster) -> Iterator[Outcome]:
    """Report pods whose volumes no remaining node can attach."""
    return said(
        frozenset({"volume"}),
        "of where their volumes are, or how many nodes may have",
        (
            "compare the volume's node affinity (kubectl describe pv) with the nodes that are left,"
            " and bring one there"
        ),
    )(cluster)


@cluster_check(
    "KM225",
    "Pods wait for another reason",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending",),
    current_only=True,
    explained_by=causes("KM115"),
)
def other_reason(cluster: Cluster) -> Iterator[Outcome]:
    """Report pods that wait for a reason that only the scheduler's message states."""
    return said(
        OTHER,
        "of what the scheduler says itself",
        "read the scheduler's words; its log has more",
    )(cluster)
