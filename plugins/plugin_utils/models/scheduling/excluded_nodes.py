# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes that each reason of a Pending pod excludes.

A scheduler's message counts them, Nodes tell which. Pure.

A node is only named where it is certain: by its own taints, its cordon, its labels, or because it
alone is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...evidence import memoize as remember
from ...evidence.document import one_line
from .. import taints
from ..api_node import NodeView, views
from ..cluster import Cluster
from ..taint_catalogue import CORDON
from ..taints import Taint
from . import message as scheduling_reasons
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
CHOSEN, OTHER = (
    frozenset({"affinity", "node_name", "pod_affinity"}),
    frozenset({"unknown", "prefilter"}),
)
UNREADY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
# By itself none of these keeps a pod off a node that is otherwise the pod's: the node is back once
# its kubelet is, or its cordon ends.
PASSING = (*UNREADY, CORDON)


@dataclass(frozen=True)
class Excluded:
    """A reason of one pod. count: of how many nodes, None where it is of the pod as such; nodes.

    Which, None where that is not certain.

    meant: it is no reason why the pod waits: it is of nodes that the pod does not ask for, or that
    are not for it. lack: of a resource of which no node has enough at all; unsaid: the scheduler
    does not say so, because it ends at the first reason of a node.
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
    """The Nodes of a cluster, looked at for many pods. Many nodes carry the same taints.

    These are a group, which is judged once.

    group: {node: the place of its taints in groups}.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.views = list(views(cluster))
        self.names = [view.name for view in self.views]
        places: dict[tuple[Taint, ...], int] = {}
        self.group = {
            view.name: places.setdefault(
                tuple(taints.read(one) or Taint("") for one in view.taints), len(places)
            )
            for view in self.views
        }
        self.groups = list(places)
        self._told = all(view.told for view in self.views)
        self._off: dict[str, list[tuple[Taint, ...]]] = {}
        self._of: dict[int, tuple[Mapping[str, Any], tuple[Excluded, ...]]] = {}
        full = (cluster.answer("pending") or {}).get("full")
        self.full = tuple(str(name) for name in full) if isinstance(full, (list, tuple)) else None
        self.offers = Offers(cluster)

    def off(self, tolerations: Any) -> list[tuple[Taint, ...]]:
        """Of each group the taints that keep a pod with these tolerations away."""
        key = repr(tolerations)
        if key not in self._off:
            self._off[key] = [
                tuple(taints.keeps_away(carried, tolerations)[0]) for carried in self.groups
            ]
        return self._off[key]

    def of(self, entry: Mapping[str, Any]) -> tuple[Excluded, ...]:
        """What keeps this pod waiting. Several faults ask for it.

        The entry is held, so that no other one can have its identity.
        """
        if id(entry) not in self._of:
            self._of[id(entry)] = entry, self._read(entry)
        return self._of[id(entry)][1]

    def _read(self, entry: Mapping[str, Any]) -> tuple[Excluded, ...]:
        message = scheduling_reasons.parse(entry.get("message"))
        found, wanted = (
            [one for reason in message.reasons for one in self._named(entry, reason)],
            self.wanted(entry),
        )
        complete = message.nodes == len(self.views) and not message.missing and message.whole
        if complete:
            found = _rest(found, self.names)
        names = [view.name for view in wanted]
        found = [
            part
            for one in found
            for part in (self._parted(entry, one, names) if one.kind == "resource" else [one])
        ]
        mine = frozenset(self.meant_for(entry))
        found = [
            replace(one, meant=one.meant or self._meant(entry, one, wanted, mine)) for one in found
        ]
        found = _left(found, names) if complete else found
        return (*found, *self._unsaid(entry, {one.kind for one in found}, names))

    def able(self, entry: Mapping[str, Any]) -> list[NodeView]:
        """Of the nodes that the pod asks for those with the devices that it asks for.

        All of them where none has, or where that is not known.
        """
        wanted = self.wanted(entry)
        without = frozenset().union(
            *(self.offers.without(entry, name) or () for name in self.offers.devices(entry))
        )
        return [view for view in wanted if view.name not in without] or wanted

    def meant_for(self, entry: Mapping[str, Any]) -> list[str]:
        """Of those the nodes that are no control plane's, which every pod without its toleration
        meets; all of them where there are no others.
        """
        able, off = self.able(entry), self.off(entry.get("tolerations"))
        others = [
            view.name
            for view in able
            if not any(taint.key in OF_CONTROL_PLANE for taint in off[self.group[view.name]])
        ]
        return others or [view.name for view in able]

    def helpless(self, entry: Mapping[str, Any], names: Sequence[str]) -> list[str]:
        """The devices without which the pod could not be on any of these nodes, whatever else
        keeps it off them.
        """
        return [
            name
            for name in self.offers.devices(entry)
            if names and set(names) <= (self.offers.without(entry, name) or frozenset())
        ]

    def _parted(self, entry: Mapping[str, Any], one: Excluded, wanted: list[str]) -> list[Excluded]:
        """A clause on a resource: nodes that have none are no reason as long as others do, as
        with a label that the pod asks for.
        """
        lack, without = (
            self.offers.lack(entry, one.name, wanted or self.names),
            self.offers.without(entry, one.name),
        )
        if without is None:
            return [replace(one, lack=lack)]
        nodes = (
            one.nodes
            if one.nodes is not None or len(without) != one.count
            else tuple(name for name in self.names if name in without)
        )
        if nodes is None or lack:
            return [replace(one, nodes=nodes, lack=lack)]
        parts = [
            (tuple(name for name in nodes if (name in without) is none), none)
            for none in (False, True)
        ]
        return [
            replace(one, nodes=part, count=len(part), meant=none) for part, none in parts if part
        ]

    def _unsaid(
        self, entry: Mapping[str, Any], said: Collection[str], wanted: list[str]
    ) -> Iterator[Excluded]:
        """Devices that no node has, where each node has a reason at which the scheduler ends before
        it looks for them.

        Of a node that it looks at for resources it names all that are short: one that it leaves out
        there is not its matter (an extender's, a driver's).
        """
        for name in self.offers.devices(entry) if not {"resource", "pods"} & set(said) else ():
            lack = self.offers.lack(entry, name, wanted or self.names)
            if lack:
                yield Excluded(
                    "resource",
                    f"the pod asks for {name}",
                    None,
                    tuple(wanted or self.names),
                    name,
                    lack=lack,
                    unsaid=True,
                )

    def wanted(self, entry: Mapping[str, Any]) -> list[NodeView]:
        """The nodes that the pod asks for, by its selector, or because a DaemonSet made it for one.

        All where that is not known.
        """
        targets = entry.get("targets")
        if isinstance(targets, (list, tuple)) and targets:
            named = {
                str(one[1]) for one in targets if isinstance(one, (list, tuple)) and len(one) == 2
            }
            return [view for view in self.views if view.name in named]
        off = left_out(entry)
        return [view for view in self.views if view.name not in off] if off else self.views

    def _named(self, entry: Mapping[str, Any], reason: Reason) -> list[Excluded]:
        one = Excluded(reason.kind, reason.text, reason.nodes, None, reason.name)
        if reason.kind == "taint":
            return self._tainted(entry, one)
        if reason.kind == "cordon":
            return [replace(one, nodes=tuple(view.name for view in self.views if view.cordoned))]
        if reason.kind == "unready" and "not ready" in reason.text:
            return [
                replace(one, nodes=tuple(view.name for view in self.views if view.ready != "True"))
            ]
        if reason.kind in ("affinity", "node_name") and isinstance(entry.get("off"), (list, tuple)):
            return [replace(one, nodes=tuple(str(name) for name in entry["off"]))]
        if reason.kind == "pods" and self.full is not None:
            return [replace(one, nodes=tuple(name for name in self.full if name in self.group))]
        return [one]

    def _tainted(self, entry: Mapping[str, Any], one: Excluded) -> list[Excluded]:
        """A clause on taints, by whose they are. 1.35 and newer do not tell which.

        The nodes' own do.
        """
        tolerations, found = entry.get("tolerations"), {}
        if tolerations is None or not self._told:
            return [
                replace(one, kind="unready" if one.name.split("=", 1)[0] in UNREADY else "taint")
            ]
        decides = [_decides(off, one.name) for off in self.off(tolerations)]
        for name in self.names:
            whose = decides[self.group[name]]
            if whose is not None:
                found.setdefault(whose, []).append(name)
        if one.name:
            return [
                replace(one, kind=kind, nodes=tuple(names))
                for (kind, _name), names in found.items()
            ] or [replace(one, kind="unready" if one.name.split("=", 1)[0] in UNREADY else "taint")]
        return [
            replace(one, kind=kind, name=name, count=len(names), nodes=tuple(names))
            for (kind, name), names in found.items()
        ] or [one]

    def _meant(
        self, entry: Mapping[str, Any], one: Excluded, wanted: list[NodeView], mine: frozenset[str]
    ) -> bool:
        if entry.get("targets") and one.kind in ("affinity", "node_name", "prefilter"):
            return True
        if (
            one.kind in ("affinity", "node_name")
            and isinstance(entry.get("off"), (list, tuple))
            and wanted
        ):
            return True  # there are others that it asks for: why it cannot have those is the reason
        if one.kind == "taint":
            return (
                one.name.split("=", 1)[0] in OF_CONTROL_PLANE
                if one.nodes is None
                else mine.isdisjoint(one.nodes)
            )
        if one.kind in ("cordon", "unready") and one.nodes:
            return not self._otherwise(entry, one)
        # up to 1.22 a full node counts as such before anybody looks at selectors
        if one.kind == "pods" and one.nodes:
            return set(one.nodes).isdisjoint(view.name for view in wanted)
        return False

    def _otherwise(self, entry: Mapping[str, Any], one: Excluded) -> bool:
        """Whether the pod asks for any of the nodes that are named, and would have it otherwise,
        as far as labels, devices and taints tell.
        """
        named = set(one.nodes or ())
        takes = [
            all(taint.key in PASSING for taint in off) for off in self.off(entry.get("tolerations"))
        ]
        return any(view.name in named and takes[self.group[view.name]] for view in self.able(entry))


@remember.last
def nodes_of(cluster: Cluster) -> Nodes:
    """The Nodes of this cluster, the same for all faults."""
    return Nodes(cluster)


def left_out(entry: Mapping[str, Any]) -> frozenset[str]:
    """Names of the nodes that a pod does not ask for; empty too where they are not known."""
    off = entry.get("off")
    return frozenset(map(str, off)) if isinstance(off, (list, tuple)) else frozenset()


def _decides(off: Sequence[Taint], name: str) -> tuple[str, str] | None:
    """(kind, taint) of what keeps a pod off a node with these taints, by a clause on the taint
    of this name, or on any; None where nothing does.
    """
    mine = [
        taint
        for taint in off
        if taint.key != CORDON and (not name or str(replace(taint, effect="")) == name)
    ]
    if not mine:
        return None
    # Of several taints the one that stays when the others have gone; who is not for the control
    # plane need not look further.
    found = next((taint for taint in mine if taint.key in OF_CONTROL_PLANE), None) or next(
        (taint for taint in mine if taint.key not in UNREADY), mine[0]
    )
    return ("unready", "") if found.key in UNREADY else ("taint", str(replace(found, effect="")))


def _rest(found: list[Excluded], names: list[str]) -> list[Excluded]:
    """The nodes that are left when all others are named, where each reason without names is of
    just as many.
    """
    known = [name for one in found for name in one.nodes or ()]
    named = set(known)
    exact = all(one.nodes is None or len(one.nodes) == one.count for one in found) and len(
        known
    ) == len(named)
    left = tuple(name for name in names if name not in named)
    if exact and left and all(one.count == len(left) for one in found if one.nodes is None):
        return [replace(one, nodes=left) if one.nodes is None else one for one in found]
    return found


def _left(found: list[Excluded], wanted: list[str]) -> list[Excluded]:
    """Of the nodes that the pod asks for those that no named reason is of.

    Where one reason has no names, it is that one's.
    """
    unnamed = [
        one for one in found if not one.meant and one.nodes is None and one.count is not None
    ]
    named = {name for one in found for name in one.nodes or ()}
    left = tuple(name for name in wanted if name not in named)
    if len(unnamed) != 1 or not left or (unnamed[0].count or 0) < len(left):
        return found
    return [replace(one, nodes=left) if one is unnamed[0] else one for one in found]


def spelled(names: Sequence[str] | None, count: int | None) -> str:
    """The nodes of a reason, in words."""
    if names:
        return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return "the pod as such" if count is None else f"{count} node{'' if count == 1 else 's'}"


def spared(
    told: Collection[Excluded], mine: Collection[Excluded]
) -> Iterator[tuple[str, list[str]]]:
    """(why, which) of the nodes that are left out on purpose, each once.

    In the order in which a scheduler looks, selectors after taints.
    """
    named = {name for one in mine for name in one.nodes or ()}
    for one in sorted(
        (one for one in told if one.meant and one.nodes),
        key=lambda one: (one.kind in CHOSEN, one.kind == "resource"),
    ):
        names = [name for name in one.nodes or () if name not in named]
        named.update(names)
        if names:
            yield worded(one), names


def worded(one: Excluded) -> str:
    """A reason in the scheduler's words, with what newer ones leave out of them."""
    if one.kind == "unready":
        return "node(s) were not ready"
    return one_line(
        one.text + (f" {one.name}" if one.name and one.name not in one.text else ""), 200
    )


def besides(others: Sequence[Excluded]) -> str:
    """Of a reason that is not the only one: what else there is, for the end of an advice.

    Empty where there is nothing.
    """
    told = list(
        dict.fromkeys(
            f"{worded(one)} ({one_line(spelled(one.nodes, one.count), 200)})" for one in others
        )
    )[:5]
    return (
        f". Beside it: {'; '.join(told)}. A pod needs one node of which no reason is left"
        if told
        else ""
    )
