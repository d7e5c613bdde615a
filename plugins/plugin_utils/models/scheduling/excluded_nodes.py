# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes that each reason of a Pending pod excludes.

A scheduler's message counts them, Nodes tell which. Pure.

A node is only named where it is certain: by its own taints, its cordon, its labels, or because no
other one remains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ....module_utils.shared.text import counted
from ...evidence import memoize
from ...evidence.answers.cluster.api_pod import Toleration
from ...evidence.answers.cluster.pending import Pending, PendingPods
from ...evidence.document import one_line
from .. import taints
from ..api_node import NodeView, views
from ..cluster import Cluster
from ..taint_catalogue import CORDON
from ..taints import Taint
from . import message as scheduling_message
from .message import Reason
from .resource_offers import Lack, Offers

# Nodes of the control plane are left out on purpose, and are no reason why the others do not fit.
OF_CONTROL_PLANE = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/controlplane",
    "node-role.kubernetes.io/etcd",
    "CriticalAddonsOnly",
)
# A selector leaves nodes out on purpose; words that are not known say nothing of what else there
# is.
CHOSEN = frozenset({"affinity", "node_name", "pod_affinity"})
OTHER = frozenset({"unknown", "prefilter"})
UNREADY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
# By itself none of these keeps a pod off a node that is otherwise the pod's: the node is back once
# its kubelet is, or its cordon ends.
PASSING = (*UNREADY, CORDON)
_Tolerations = tuple[Toleration, ...] | None


@dataclass(frozen=True)
class Excluded:
    """Reason of one pod.

    count: of how many nodes, None where it is about the pod as such
    nodes: their names, None where they are not certain
    meant: whether it is no reason why the pod waits, because it is about nodes that the pod does
    not ask for, or that are not for it
    lack: what a resource lacks of which no node has enough at all
    unsaid: whether the scheduler does not report it, because it ends at the first reason of a node
    """

    kind: str
    text: str
    count: int | None
    nodes: tuple[str, ...] | None = None
    name: str = ""
    meant: bool = False
    lack: Lack | None = None
    unsaid: bool = False


class Nodes:
    """Nodes of a cluster, read for many pods.

    Many nodes carry the same taints. These are a group, which is evaluated once. group: {node: the
    index of its taints in groups}.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.views = list(views(cluster))
        self.names = [view.name for view in self.views]
        places: dict[tuple[Taint, ...], int] = {}
        self.group: dict[str, int] = {}
        for view in self.views:
            carried = tuple(taints.read(taint) or Taint("") for taint in view.taints)
            self.group[view.name] = places.setdefault(carried, len(places))
        self.groups = list(places)
        self._known = all(view.told for view in self.views)
        self._off: dict[_Tolerations, list[tuple[Taint, ...]]] = {}
        self._of: dict[int, tuple[PendingPods, tuple[Excluded, ...]]] = {}
        self.full = cluster.typed(Pending).full
        self.offers = Offers(cluster)

    def off(self, tolerations: _Tolerations) -> list[tuple[Taint, ...]]:
        """Return for each group the taints that keep a pod with these tolerations away."""
        if tolerations not in self._off:
            self._off[tolerations] = [
                tuple(taints.keeps_away(carried, tolerations)[0]) for carried in self.groups
            ]
        return self._off[tolerations]

    def reasons_of(self, entry: PendingPods) -> tuple[Excluded, ...]:
        """Return what keeps this pod waiting. Several faults query it.

        The entry is kept, so that no other one can have its identity.
        """
        if id(entry) not in self._of:
            self._of[id(entry)] = entry, self._read(entry)
        return self._of[id(entry)][1]

    def _read(self, entry: PendingPods) -> tuple[Excluded, ...]:
        message = scheduling_message.parse(entry.message)
        reasons: list[Excluded] = []
        for clause in message.reasons:
            reasons += self._named(entry, clause)
        complete = message.nodes == len(self.views) and not message.missing and message.whole
        if complete:
            reasons = _rest(reasons, self.names)
        names = [view.name for view in self.requested_nodes(entry)]
        parts: list[Excluded] = []
        for reason in reasons:
            parts += self._parted(entry, reason, names)
        parts = self._with_meaning(entry, parts)
        if complete:
            parts = _left(parts, names)
        return (*parts, *self._unsaid(entry, {part.kind for part in parts}, names))

    def able(self, entry: PendingPods) -> list[NodeView]:
        """Return those of the requested nodes that have the requested devices.

        It is all of them where none has, or where that is not known.
        """
        requested_nodes = self.requested_nodes(entry)
        without = frozenset().union(
            *(self.offers.without(entry, name) or () for name in self.offers.devices(entry))
        )
        return [view for view in requested_nodes if view.name not in without] or requested_nodes

    def meant_for(self, entry: PendingPods) -> list[str]:
        """Return those of the able nodes that are not the control plane's, or all without others.

        Every pod without its toleration meets the control plane's taint.
        """
        able, off = self.able(entry), self.off(entry.tolerations)
        other_names = [
            view.name for view in able if not _is_control_plane(off[self.group[view.name]])
        ]
        return other_names or [view.name for view in able]

    def helpless(self, entry: PendingPods, names: Sequence[str]) -> list[str]:
        """Return the devices without which the pod could not be on any of these nodes."""
        if not names:
            return []
        return [
            name
            for name in self.offers.devices(entry)
            if set(names) <= (self.offers.without(entry, name) or frozenset())
        ]

    def _with_meaning(self, entry: PendingPods, reasons: list[Excluded]) -> list[Excluded]:
        """Mark the reasons that are about nodes that are not for the pod."""
        requested_nodes, intended = self.requested_nodes(entry), frozenset(self.meant_for(entry))
        return [
            replace(
                reason, meant=reason.meant or self._meant(entry, reason, requested_nodes, intended)
            )
            for reason in reasons
        ]

    def _parted(
        self, entry: PendingPods, reason: Excluded, requested_names: list[str]
    ) -> list[Excluded]:
        """Divide a clause on a resource: nodes with none are no reason as long as others have some.

        It is the same with a label that the pod asks for.
        """
        if reason.kind != "resource":
            return [reason]
        lack = self.offers.lack(entry, reason.name, requested_names or self.names)
        without = self.offers.without(entry, reason.name)
        if without is None:
            return [replace(reason, lack=lack)]
        nodes = reason.nodes
        if nodes is None and len(without) == reason.count:
            nodes = tuple(filter(without.__contains__, self.names))
        if nodes is None or lack:
            return [replace(reason, nodes=nodes, lack=lack)]
        return _divided(reason, nodes, without)

    def _unsaid(
        self, entry: PendingPods, kinds: Collection[str], requested_names: list[str]
    ) -> Iterator[Excluded]:
        """Yield devices that no node has, where the scheduler ends before it checks them.

        Once the scheduler checks a node's resources, its message names all that are short. A device
        that it omits then is not its matter, but an extender's or a driver's.
        """
        if {"resource", "pods"} & set(kinds):
            return
        for name in self.offers.devices(entry):
            lack = self.offers.lack(entry, name, requested_names or self.names)
            if lack:
                text, nodes = f"the pod asks for {name}", tuple(requested_names or self.names)
                yield Excluded("resource", text, None, nodes, name, lack=lack, unsaid=True)

    def requested_nodes(self, entry: PendingPods) -> list[NodeView]:
        """Return the nodes that the pod asks for, by its selector or as a DaemonSet's pod.

        It is all of them where that is not known.
        """
        if entry.targets:
            names = {target for _pod, target in entry.targets}
            return [view for view in self.views if view.name in names]
        off = left_out(entry)
        if not off:
            return self.views
        return [view for view in self.views if view.name not in off]

    def _named(self, entry: PendingPods, reason: Reason) -> list[Excluded]:
        """Return a clause with the names of its nodes, as far as they are certain."""
        excluded = Excluded(reason.kind, reason.text, reason.nodes, None, reason.name)
        if reason.kind == "taint":
            return self._tainted(entry, excluded)
        return [replace(excluded, nodes=self._names_of(entry, reason))]

    def _names_of(self, entry: PendingPods, reason: Reason) -> tuple[str, ...] | None:
        if reason.kind == "cordon":
            return tuple(view.name for view in self.views if view.cordoned)
        if reason.kind == "unready" and "not ready" in reason.text:
            return tuple(view.name for view in self.views if view.ready != "True")
        if reason.kind in ("affinity", "node_name") and entry.off is not None:
            return entry.off
        if reason.kind == "pods" and self.full is not None:
            return tuple(filter(self.group.__contains__, self.full))
        return None

    def _tainted(self, entry: PendingPods, reason: Excluded) -> list[Excluded]:
        """Divide a clause on taints by the taint.

        1.35 and newer do not name it. The nodes' own do.
        """
        tolerations = entry.tolerations
        nodes: dict[tuple[str, str], list[str]] = {}
        if tolerations is not None and self._known:
            nodes = self._nodes_by_taint(tolerations, reason.name)
        if nodes and reason.name:
            return [
                replace(reason, kind=kind, nodes=tuple(names))
                for (kind, _name), names in nodes.items()
            ]
        if nodes:
            return [
                replace(reason, kind=kind, name=name, count=len(names), nodes=tuple(names))
                for (kind, name), names in nodes.items()
            ]
        if _taint_key(reason) in UNREADY:
            return [replace(reason, kind="unready")]
        return [reason]

    def _nodes_by_taint(
        self, tolerations: _Tolerations, name: str
    ) -> dict[tuple[str, str], list[str]]:
        nodes: dict[tuple[str, str], list[str]] = {}
        decides = [_decides(off, name) for off in self.off(tolerations)]
        for node in self.names:
            taint = decides[self.group[node]]
            if taint is not None:
                nodes.setdefault(taint, []).append(node)
        return nodes

    def _meant(
        self,
        entry: PendingPods,
        reason: Excluded,
        requested_nodes: list[NodeView],
        intended: frozenset[str],
    ) -> bool:
        """Return whether a reason is about nodes that are not for the pod."""
        if entry.targets and reason.kind in ("affinity", "node_name", "prefilter"):
            return True
        if reason.kind in ("affinity", "node_name"):
            # there are others that it asks for: why it cannot have those is the reason
            return bool(requested_nodes) and entry.off is not None
        if reason.kind == "taint":
            return _is_taint_meant(reason, intended)
        if not reason.nodes:
            return False
        if reason.kind in ("cordon", "unready"):
            return not self._otherwise(entry, reason)
        # up to 1.22 a full node counts as such before selectors are checked
        return reason.kind == "pods" and set(reason.nodes).isdisjoint(
            view.name for view in requested_nodes
        )

    def _otherwise(self, entry: PendingPods, reason: Excluded) -> bool:
        """Return whether the pod could be on a named node without this reason.

        Labels, devices and taints decide, as far as they are known.
        """
        names = set(reason.nodes or ())
        takes = [all(taint.key in PASSING for taint in off) for off in self.off(entry.tolerations)]
        return any(view.name in names and takes[self.group[view.name]] for view in self.able(entry))


@memoize.last
def nodes_of(cluster: Cluster) -> Nodes:
    """Return the Nodes of this cluster, the same for all faults."""
    return Nodes(cluster)


def _is_control_plane(off: Sequence[Taint]) -> bool:
    return any(taint.key in OF_CONTROL_PLANE for taint in off)


def _taint_key(reason: Excluded) -> str:
    return reason.name.partition("=")[0]


def _is_taint_meant(reason: Excluded, intended: frozenset[str]) -> bool:
    if reason.nodes is None:
        return _taint_key(reason) in OF_CONTROL_PLANE
    return intended.isdisjoint(reason.nodes)


def left_out(entry: PendingPods) -> frozenset[str]:
    """Return the nodes that a pod does not ask for; empty too where they are not known."""
    return frozenset(entry.off or ())


def _decides(off: Sequence[Taint], name: str) -> tuple[str, str] | None:
    """Return (kind, taint) of what keeps a pod off a node with these taints, or None.

    name: the taint of the clause; empty for any.
    """
    candidates = [taint for taint in off if taint.key != CORDON and _is_named(taint, name)]
    if not candidates:
        return None
    # Of several taints the one that stays when the others have gone; a pod that is not for the
    # control plane needs no further reason.
    control_plane = (taint for taint in candidates if taint.key in OF_CONTROL_PLANE)
    lasting = (taint for taint in candidates if taint.key not in UNREADY)
    taint = next(control_plane, None) or next(lasting, candidates[0])
    if taint.key in UNREADY:
        return "unready", ""
    return "taint", str(replace(taint, effect=""))


def _is_named(taint: Taint, name: str) -> bool:
    return not name or str(replace(taint, effect="")) == name


def _divided(reason: Excluded, nodes: Sequence[str], without: Collection[str]) -> list[Excluded]:
    having = tuple(name for name in nodes if name not in without)
    lacking = tuple(name for name in nodes if name in without)
    parts = []
    if having:
        parts.append(replace(reason, nodes=having, count=len(having), meant=False))
    if lacking:
        parts.append(replace(reason, nodes=lacking, count=len(lacking), meant=True))
    return parts


def _rest(reasons: list[Excluded], names: list[str]) -> list[Excluded]:
    """Name the nodes that remain when all others are named.

    Each reason without names must be about just as many.
    """
    counts = Counter(name for reason in reasons for name in reason.nodes or ())
    remaining = tuple(name for name in names if name not in counts)
    if not remaining or max(counts.values(), default=1) > 1:
        return reasons
    if any(reason.count != _size(reason.nodes, remaining) for reason in reasons):
        return reasons
    return [_with_nodes(reason, remaining) for reason in reasons]


def _size(nodes: Sequence[str] | None, remaining: Sequence[str]) -> int:
    """Return the number of a reason's nodes; one without names has those that remain."""
    if nodes is None:
        return len(remaining)
    return len(nodes)


def _with_nodes(reason: Excluded, nodes: tuple[str, ...]) -> Excluded:
    if reason.nodes is None:
        return replace(reason, nodes=nodes)
    return reason


def _left(reasons: list[Excluded], requested_names: list[str]) -> list[Excluded]:
    """Give the requested nodes without a named reason to the only reason without names."""
    unnamed = [index for index, reason in enumerate(reasons) if _is_unnamed(reason)]
    names = {name for reason in reasons for name in reason.nodes or ()}
    remaining = tuple(name for name in requested_names if name not in names)
    if len(unnamed) != 1 or not remaining:
        return reasons
    reason = reasons[unnamed[0]]
    if (reason.count or 0) < len(remaining):
        return reasons
    return [
        *reasons[: unnamed[0]],
        replace(reason, nodes=remaining),
        *reasons[unnamed[0] + 1 :],
    ]


def _is_unnamed(reason: Excluded) -> bool:
    return not reason.meant and reason.nodes is None and reason.count is not None


def spelled(names: Sequence[str] | None, count: int | None) -> str:
    """Return the nodes of a reason as text."""
    if names and len(names) > 20:
        return f"{', '.join(names[:20])} and {len(names) - 20} more"
    if names:
        return ", ".join(names)
    if count is None:
        return "the pod as such"
    return counted(count, "node")


def spared(
    reasons: Collection[Excluded], pending: Collection[Excluded]
) -> Iterator[tuple[str, list[str]]]:
    """Yield (why, names) of the nodes that are excluded on purpose, each once.

    The order is that of a scheduler, selectors after taints.
    """
    named = {name for reason in pending for name in reason.nodes or ()}
    meant = [reason for reason in reasons if reason.meant and reason.nodes]
    meant.sort(key=lambda reason: (reason.kind in CHOSEN, reason.kind == "resource"))
    for reason in meant:
        names = [name for name in reason.nodes or () if name not in named]
        named.update(names)
        if names:
            yield worded(reason), names


def worded(reason: Excluded) -> str:
    """Return a reason in the scheduler's words, with what newer ones omit."""
    if reason.kind == "unready":
        return "node(s) were not ready"
    if reason.name and reason.name not in reason.text:
        return one_line(f"{reason.text} {reason.name}", 200)
    return one_line(reason.text, 200)


def besides(other_reasons: Sequence[Excluded]) -> str:
    """Return the other reasons for the end of an advice; empty where there are none."""
    if not other_reasons:
        return ""
    texts = (
        f"{worded(reason)} ({one_line(spelled(reason.nodes, reason.count), 200)})"
        for reason in other_reasons
    )
    reasons = "; ".join(list(dict.fromkeys(texts))[:5])
    return f". In addition: {reasons}. A pod needs one node of which no reason is left"
