# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check taints and cordons, KM513 and KM514. kubemend never removes one of another owner."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...evidence.answers.cluster.nodes import Taint as NodeTaint
from ...evidence.answers.cluster.pending import Pending, PendingPods
from ...evidence.document import one_line, shell_name
from ...models import ages, pod_roles, taints
from ...models.api_node import SHOWN, NodeView, and_others, views
from ...models.cluster import Cluster
from ...models.result import EvidenceRef, Missing
from ...models.scheduling import excluded_nodes
from ...models.taint_catalogue import CORDON, Owner
from ...models.taints import Explained, Taint
from ..base import CheckResult, Detection, cluster_check, without_kubernetes
from ..pods import system_pods
from ..scheduling import waiting_pods
from . import unavailable_network, wording

# What the scheduler counts of nodes that a pod might otherwise have had.
_ALL = re.compile(r"^0/([0-9]{1,6}) nodes are available")
# A new node is initialised within a minute or two of its registration.
STARTUP_SECONDS = 600.0
UNINITIALISED = "node.cloudprovider.kubernetes.io/uninitialized"
STARTUP_ADVICE = (
    "find out why its owner does not remove it. Give pods no toleration of it: they would start on"
    " a node that is not set up"
)
EXTERNAL = (
    "a kubelet with --cloud-provider=external waits for a cloud controller manager. Install that of"
    " the cloud, and read its log (credentials, name of the instance). In a cluster without a"
    " cloud, remove the flag and join the node again"
)
# Apart from these a taint is what keeps a pod waiting.
_ITSELF = excluded_nodes.CHOSEN | excluded_nodes.OTHER | {"taint"}


@dataclass
class _Kept:
    """The pods that one taint keeps away.

    plain: whether nothing else keeps some of these pods waiting. helpless: devices that the
    tainted nodes lack as well. others: what keeps these pods off other nodes.
    """

    explained: Explained
    nodes: dict[str, NodeView] = field(default_factory=dict)
    entries: list[PendingPods] = field(default_factory=list)
    plain: bool = False
    helpless: list[str] = field(default_factory=list)
    others: tuple[excluded_nodes.Excluded, ...] = ()

    def take(self, entry: PendingPods, at: list[NodeView], nodes: excluded_nodes.Nodes) -> None:
        """Add a pod that the taint keeps off these nodes.

        A toleration does not help with what the pod would lack there as well.
        """
        self.nodes.update((view.name, view) for view in at)
        self.entries.append(entry)
        helpless = nodes.helpless(entry, [view.name for view in at])
        other_reasons = [reason for reason in nodes.reasons_of(entry) if _counts(reason)]
        self.plain = self.plain or (not other_reasons and not helpless)
        self.helpless += [name for name in helpless if name not in self.helpless]
        if not self.others:
            # A node that is not ready is known by its taint already.
            self.others = tuple(reason for reason in other_reasons if not self._covers(reason))

    def _covers(self, reason: excluded_nodes.Excluded) -> bool:
        return bool(reason.nodes) and set(reason.nodes or ()) <= set(self.nodes)

    @property
    def pods(self) -> int:
        """Return how many pods the taint keeps away."""
        return sum(map(waiting_pods.count, self.entries))


def spelled(taint: NodeTaint) -> str:
    """Return a taint as kubectl writes it."""
    return one_line(taints.read(taint) or "a taint that is none", 400)


def _counts(reason: excluded_nodes.Excluded) -> bool:
    return not reason.meant and not reason.unsaid and reason.kind not in _ITSELF


@cluster_check(
    "KM513",
    "A taint keeps pods away",
    severity="warning",
    applies="pods that no scheduler finds a node for",
    cluster_needs=("pending", "nodes"),
    current_only=True,
)
def kept_away(cluster: Cluster) -> Iterator[CheckResult]:
    """KM513: report pods that no node takes because of taints that they do not tolerate."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    missing = [*cluster.missing("pending"), *cluster.missing("nodes")]
    nodes = excluded_nodes.nodes_of(cluster)
    if not missing and not all(view.told for view in nodes.views):
        missing.append(_older(cluster))
    if not missing:
        missing += cluster.cut("pending")
    kept: dict[Taint, _Kept] = {}
    for entry in cluster.typed(Pending).items:
        for taint, at, explained in _matter(entry, nodes):
            kept.setdefault(taint, _Kept(explained)).take(entry, at, nodes)
    hits = tuple(_keeps(cluster, kept[taint]) for taint in sorted(kept, key=str))
    yield CheckResult(hits, tuple(missing))


def _matter(
    entry: PendingPods, nodes: excluded_nodes.Nodes
) -> Iterator[tuple[Taint, list[NodeView], Explained]]:
    """Yield each taint that keeps the pod waiting, the nodes with it, and its owner.

    Only nodes that the pod could have otherwise count, as far as that is known.
    """
    message = entry.message or ""
    excluded_names = excluded_nodes.left_out(entry)
    meant = frozenset(nodes.meant_for(entry))
    groups = [
        (view, nodes.group[view.name]) for view in nodes.views if view.name not in excluded_names
    ]
    for taint, carriers, count in _met_taints(message, nodes.off(entry.tolerations), groups):
        explained = taints.explained(taint)
        if explained is None or not _may_keep(taint):
            continue
        at = [view for view in carriers if view.name in meant]
        keeps = bool(at)
        if not carriers:
            keeps = not excluded_names and _decides_alone(message, explained, count)
        if keeps:
            yield taint, at, explained


def _decides_alone(message: str, explained: Explained, count: int | None) -> bool:
    """Tell whether a taint that no known node carries keeps a pod waiting.

    Every pod without its toleration meets the control plane's, as long as there are other nodes;
    and on those another taint changes nothing.
    """
    return explained.owner.kind != "kubeadm" or _is_of_all_nodes(message, count)


def _may_keep(taint: Taint) -> bool:
    return taint.effect != taints.PREFER and taint.key != CORDON


def _is_of_all_nodes(message: str, count: int | None) -> bool:
    """Tell whether the scheduler met a taint on every node of its message."""
    whole = _ALL.match(message)
    return whole is not None and count == int(whole.group(1))


def _met_taints(
    message: str, off: list[tuple[Taint, ...]], nodes: list[tuple[NodeView, int]]
) -> Iterator[tuple[Taint, list[NodeView], int | None]]:
    """Yield each taint, the nodes that carry it, and on how many the scheduler met it.

    The taint is the one that the message names, or the nodes' own taints are used.

    off: of each group of nodes the taints that keep the pod away; nodes: each with the place of its
    group.
    """
    for reason in taints.parse_reasons(message):
        if reason.taint is None and reason.kind != "taints":
            continue
        carriers = _carriers(reason.taint, off, nodes)
        for taint, at in carriers.items():
            count = reason.nodes
            if reason.taint is None:
                count = len(at)
            yield taint, at, count
        if reason.taint is not None and not carriers:
            yield reason.taint, [], reason.nodes


def _carriers(
    target_taint: Taint | None, off: list[tuple[Taint, ...]], nodes: list[tuple[NodeView, int]]
) -> dict[Taint, list[NodeView]]:
    """Return the nodes with each taint that keeps the pod away.

    target_taint: the only taint that counts, where one is given
    """
    carriers: dict[Taint, list[NodeView]] = {}
    for view, group in nodes:
        for taint in off[group]:
            if target_taint is None or (taint.key, taint.value) == (
                target_taint.key,
                target_taint.value,
            ):
                carriers.setdefault(taint, []).append(view)
    return carriers


def _keeps(cluster: Cluster, kept: _Kept) -> Detection:
    owner, name = kept.explained.owner, one_line(kept.explained.taint, 400)
    names = sorted(kept.nodes)
    location = ""
    if names:
        location = f" of {and_others(names)}"
    severity: str | None = "info"
    if kept.plain and owner.kind != "lifecycle":
        severity = None
    host, node = None, None
    if len(kept.nodes) == 1:
        view = next(iter(kept.nodes.values()))
        host, node = wording.host_name(view), view.name
    advice, more = _advice(kept)
    return Detection(
        f"the taint {name}{location} excludes {waiting_pods.owners(kept.entries)}:"
        f" {waiting_pods.wait(kept.pods)}. The taint was set by {owner.who} and means:"
        f" {owner.means}{_reasons(kept)}",
        tuple(_kept_proofs(cluster, kept, names)),
        f"{advice}. Removed by: {owner.removed_by}. Not by: {owner.never}{more}",
        host=host,
        node=node,
        severity=severity,
    )


def _reasons(kept: _Kept) -> str:
    """Return the reasons of the conditions that a taint stands for, each once, as a clause."""
    taint = kept.explained.taint
    conditions = (
        taints.condition_of(taint, kept.nodes[name].conditions) for name in sorted(kept.nodes)
    )
    reasons = dict.fromkeys(filter(None, map(taints.reason_of, conditions)))
    return "".join(list(reasons)[:SHOWN])


def _kept_proofs(cluster: Cluster, kept: _Kept, names: list[str]) -> Iterator[EvidenceRef]:
    """Yield the nodes with the taint, the pods that wait, and what excludes other nodes."""
    owner = kept.explained.owner
    taint = kept.explained.taint
    carries = f"carries {one_line(taint, 400)}: {owner.means}"
    for name in names[:SHOWN]:
        condition = taints.condition_of(taint, kept.nodes[name].conditions)
        text = f"{carries}{taints.reason_of(condition)}; set by {owner.who}"
        yield EvidenceRef("api", cluster.api_host, object=f"Node {name}", text=text)
    for entry in kept.entries[:SHOWN]:
        message = one_line(entry.message, 300)
        yield EvidenceRef("api", cluster.api_host, object=_pods(entry), text=message)
    for reason in [reason for reason in kept.others if reason.nodes][:SHOWN]:
        yield EvidenceRef(
            "api",
            cluster.api_host,
            object=f"Nodes {and_others(list(reason.nodes or ()))}",
            text=f"excluded: {excluded_nodes.worded(reason)}",
        )


def _advice(kept: _Kept) -> tuple[str, str]:
    """Return what to do about a taint, and what else keeps its pods waiting."""
    if not kept.plain and kept.helpless:
        lacks = and_others([one_line(name, 120) for name in kept.helpless])
        advice = (
            f"a toleration alone does not help: no node with this taint has the {lacks} that"
            " these pods ask for (KM210)"
        )
        return advice, ""
    more = ""
    if not kept.plain:
        more = excluded_nodes.besides(kept.others)
    if kept.explained.owner.kind == "lifecycle":
        return "its owner decides", more
    if kept.explained.taint.key == UNINITIALISED:
        return EXTERNAL, more
    if kept.explained.owner.startup:
        return STARTUP_ADVICE, more
    advice = (
        "if these pods may run there, give them a toleration of it; if not, add or free another"
        " node"
    )
    return advice, more


def _pods(entry: PendingPods) -> str:
    names = [one_line(name, 253) for name in entry.names]
    pods = f"Pod {one_line(entry.namespace, 80)}/{', '.join(names)}"
    more = waiting_pods.count(entry) - len(names)
    if more > 0:
        return f"{pods} and {more} more"
    return pods


@cluster_check(
    "KM514",
    "Node is cordoned, fenced or not initialised",
    severity="warning",
    applies="Nodes that the API lists",
    cluster_needs=("nodes",),
)
def taken_out(cluster: Cluster) -> Iterator[CheckResult]:
    """KM514: report a node that is cordoned, or whose taint keeps it out on purpose or too long."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    missing, nodes = list(cluster.missing("nodes")), views(cluster)
    if not missing and not all(view.told for view in nodes):
        missing.append(_older(cluster))
    hits: list[Detection] = []
    for view in nodes:
        hits += (*_cordon(cluster, view), *_fences(cluster, view), *_unset(cluster, view))
        hits += unavailable_network.detections(cluster, view)
    if any(_lacks_age(cluster, view) for view in nodes):
        missing.append(cluster.missing_answer("nodes", "error"))
    yield CheckResult(tuple(hits), tuple(missing))


def _older(cluster: Cluster) -> Missing:
    # an older release collected it
    return cluster.missing_answer("nodes", "not_asked")


def _cordon(cluster: Cluster, view: NodeView) -> Iterator[Detection]:
    managed = view.ours
    if not view.cordoned or (managed is not None and not managed.held):
        return
    added = next((taint.added for taint in view.taints if taint.key == CORDON), None)
    since, text = wording.since(added), "spec.unschedulable is true"
    if added:
        text = f"spec.unschedulable is true, taint added {one_line(added, 40)}"
    severity: str | None = None
    if managed is None:
        owner = "a user"
        remedy = (
            "ask who cordoned it, and why. That user ends it with kubectl uncordon"
            f" {shell_name(view.name, 'NODE')}; kubemend does not"
        )
    else:
        owner = (
            f"a node_drain (run {one_line(managed.run, 40)}:"
            f" {one_line(managed.reason, 120)}) that an operator ends"
        )
        remedy = "uncordon it where it was drained: node_drain with state uncordoned"
        severity = "info"
    yield Detection(
        f"the node is cordoned by {owner}{since}: it takes no new pods",
        (EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=text),),
        remedy,
        host=wording.host_name(view),
        node=view.name,
        severity=severity,
    )


def _fences(cluster: Cluster, view: NodeView) -> Iterator[Detection]:
    for taint in view.taints:
        explained = taints.explained(taint)
        if explained is None or not explained.owner.fence or taint.key == CORDON:
            continue
        yield _fence(cluster, view, taint, explained.owner)


def _fence(cluster: Cluster, view: NodeView, taint: NodeTaint, owner: Owner) -> Detection:
    since = wording.since(taint.added)
    severity: str | None = "info"
    if owner.kind == "administrator":
        severity = None
    return Detection(
        f"the node is fenced by the taint {spelled(taint)}{since}: {owner.means}",
        (
            EvidenceRef(
                "api", cluster.api_host, object=f"Node {view.name}", text=f"set by {owner.who}"
            ),
        ),
        f"kubemend does not remove it. Removed by: {owner.removed_by}. Not by: {owner.never}",
        host=wording.host_name(view),
        node=view.name,
        severity=severity,
    )


def _unset(cluster: Cluster, view: NodeView) -> Iterator[Detection]:
    """Report a taint of a new node of a cloud that stays long after its registration."""
    age = ages.age(cluster, view.created, "nodes")
    if age is None or age < STARTUP_SECONDS:
        return
    for taint, owner in _of_cloud(view):
        yield _uninitialised(cluster, view, taint, owner)


def _lacks_age(cluster: Cluster, view: NodeView) -> bool:
    """Tell whether a Node has such a taint, and how old it is is not known."""
    return ages.age(cluster, view.created, "nodes") is None and any(_of_cloud(view))


def _of_cloud(view: NodeView) -> Iterator[tuple[NodeTaint, Owner]]:
    """Yield the taints that a cloud takes away from a new node, each with its owner."""
    for taint in view.taints:
        explained = taints.explained(taint)
        # That of an agent comes back with each restart of the agent.
        if explained is not None and explained.owner.startup and explained.owner.kind == "cloud":
            yield taint, explained.owner


def _uninitialised(cluster: Cluster, view: NodeView, taint: NodeTaint, owner: Owner) -> Detection:
    created, advice = f"{view.created:%Y-%m-%dT%H:%M:%SZ}", STARTUP_ADVICE
    text = f"carries {spelled(taint)}; made at {created}"
    proofs = [EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=text)]
    if taint.key == UNINITIALISED:
        advice = EXTERNAL
        proofs += _cloud_flag(view)
    return Detection(
        f"the node was created at {created} and is not initialised. Pods without a toleration of"
        f" its taint {spelled(taint)} do not start there: {owner.means}",
        tuple(proofs),
        f"{advice}. Removed by: {owner.removed_by}. Not by: {owner.never}",
        host=wording.host_name(view),
        node=view.name,
        because=system_pods.because(cluster, pod_roles.CLOUD),
    )


def _cloud_flag(view: NodeView) -> Iterator[EvidenceRef]:
    if view.host is not None and view.host.identity.cloud:
        text = f"--cloud-provider={one_line(view.host.identity.cloud, 40)}"
        yield EvidenceRef("process", view.host.host, object="kubelet", text=text)
