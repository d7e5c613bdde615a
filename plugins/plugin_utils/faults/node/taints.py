# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates about taints and cordons, KM513 and KM514. Nothing here removes any."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...evidence.document import one_line, shell_name
from ...models import taints
from ...models.api_node import SHOWN, NodeView, and_others, views
from ...models.cluster import Cluster
from ...models.result import Missing, Proof
from ...models.scheduling import excluded_nodes as excluded
from ...models.taints import Explained, Taint
from ..base import Hit, Outcome, cluster_check

# What the scheduler counts of nodes that a pod might otherwise have had.
_ALL = re.compile(r"^0/([0-9]{1,6}) nodes are available")
# Beside these a taint is what keeps a pod waiting.
_ITSELF = excluded.CHOSEN | excluded.OTHER | {"taint"}


@dataclass
class _Kept:
    """What one taint keeps away. plain: whether nothing else keeps some of these pods waiting.

    Helpless: devices that the nodes that carry it lack as well; others: what keeps these pods off
    other nodes.
    """

    explained: Explained
    nodes: dict[str, NodeView] = field(default_factory=dict)
    entries: list[Mapping[str, Any]] = field(default_factory=list)
    plain: bool = False
    helpless: list[str] = field(default_factory=list)
    others: tuple[excluded.Excluded, ...] = ()

    def take(self, entry: Mapping[str, Any], at: list[NodeView], nodes: excluded.Nodes) -> None:
        """A pod that it keeps off these nodes.

        What it would lack there as well no toleration brings.
        """
        self.nodes.update((view.name, view) for view in at)
        self.entries.append(entry)
        helpless = nodes.helpless(entry, [view.name for view in at])
        others = [
            one
            for one in nodes.of(entry)
            if not one.meant and not one.unsaid and one.kind not in _ITSELF
        ]
        self.plain = self.plain or (not others and not helpless)
        self.helpless += [name for name in helpless if name not in self.helpless]
        # A node that is not ready is told by its taint already.
        self.others = self.others or tuple(
            one for one in others if not one.nodes or not set(one.nodes) <= set(self.nodes)
        )

    @property
    def pods(self) -> int:
        return sum(_count(entry) for entry in self.entries)


def spelled(taint: Mapping[str, Any]) -> str:
    """A taint as kubectl writes it."""
    found = taints.read(taint)
    return one_line(found if found else "a taint that is none", 400)


@cluster_check(
    "KM513",
    "Pods are kept away by a taint",
    severity="warning",
    applies="pods that no scheduler finds a node for",
    cluster_needs=("pending", "nodes"),
    current_only=True,
)
def kept_away(cluster: Cluster) -> Iterator[Outcome]:
    """KM513: pods that no node takes because of taints that they do not tolerate."""
    if cluster.key is None:
        yield Outcome(applies=False, note="no Kubernetes found on these hosts")
        return
    missing = [*cluster.missing("pending"), *cluster.missing("nodes")]
    nodes = excluded.nodes_of(cluster)
    if not missing and not all(view.told for view in nodes.views):
        missing.append(_older(cluster))
    if not missing:
        missing += cluster.cut("pending")
    found: dict[Taint, _Kept] = {}
    for entry in cluster.rows("pending", "items"):
        for taint, at, explained in _matter(entry, nodes):
            found.setdefault(taint, _Kept(explained)).take(entry, at, nodes)
    yield Outcome(
        tuple(_keeps(cluster, found[taint]) for taint in sorted(found, key=str)), tuple(missing)
    )


def _matter(
    entry: Mapping[str, Any], nodes: excluded.Nodes
) -> Iterator[tuple[Taint, list[NodeView], Explained]]:
    """(taint, nodes that it keeps from the pod, whose it is).

    Those of nodes that the pod could have otherwise, as far as that is known.
    """
    message, off, mine = (
        str(entry.get("message") or ""),
        excluded.left_out(entry),
        frozenset(nodes.meant_for(entry)),
    )
    whole, asked = _ALL.match(message), [view for view in nodes.views if view.name not in off]
    for taint, carry, count in _named(
        message,
        nodes.off(entry.get("tolerations")),
        [(view, nodes.group[view.name]) for view in asked],
    ):
        explained = taints.explained(taint)
        if (
            explained is None
            or taint.effect == taints.PREFER
            or taint.key == taints.CORDON
            or (off and not carry)
        ):
            continue
        at = [view for view in carry if view.name in mine]
        # Every pod without its toleration meets the control plane's, as long as there are other
        # nodes; and on those another taint changes nothing.
        if (carry and not at) or (
            not carry
            and explained.owner.kind == "kubeadm"
            and not (whole and count == int(whole.group(1)))
        ):
            continue
        yield taint, at, explained


def _named(
    message: str, off: list[tuple[Taint, ...]], nodes: list[tuple[NodeView, int]]
) -> Iterator[tuple[Taint, list[NodeView], int | None]]:
    """(taint, the nodes that carry it, on how many the scheduler met it).

    As the message names it, or as the nodes' own taints tell.

    off: of each group of nodes the taints that keep the pod away; nodes: each with the place of its
    group.
    """
    for told in taints.told(message):
        if told.taint is None and told.kind != "taints":
            continue
        carried: dict[Taint, list[NodeView]] = {}
        mine = [
            [
                one
                for one in group
                if told.taint is None or (one.key, one.value) == (told.taint.key, told.taint.value)
            ]
            for group in off
        ]
        for view, place in nodes:
            for one in mine[place]:
                carried.setdefault(one, []).append(view)
        for taint, at in carried.items():
            yield taint, at, told.nodes if told.taint is not None else len(at)
        if told.taint is not None and not carried:
            yield told.taint, [], told.nodes


def _keeps(cluster: Cluster, kept: _Kept) -> Hit:
    owner, name, where = (
        kept.explained.owner,
        one_line(kept.explained.taint, 400),
        sorted(kept.nodes),
    )
    who = "1 pod waits" if kept.pods == 1 else f"{kept.pods} pods wait"
    carries = f"carries {name}: {owner.means}; set by {owner.who}"
    proofs = [
        Proof("api", cluster.api_host, object=f"Node {node}", text=carries)
        for node in where[:SHOWN]
    ]
    proofs += [
        Proof(
            "api", cluster.api_host, object=_pods(entry), text=one_line(entry.get("message"), 300)
        )
        for entry in kept.entries[:SHOWN]
    ]
    proofs += [
        Proof(
            "api",
            cluster.api_host,
            object=f"Nodes {and_others(list(one.nodes))}",
            text=f"excluded: {excluded.worded(one)}",
        )
        for one in kept.others
        if one.nodes
    ][:SHOWN]
    only = next(iter(kept.nodes.values())) if len(kept.nodes) == 1 else None
    severity = None if kept.plain and owner.kind != "lifecycle" else "info"
    advice = (
        "its owner decides"
        if owner.kind == "lifecycle"
        else (
            "if these pods belong there, give them a toleration of it; if not, they need another"
            " node"
        )
    )
    more = ""
    if not kept.plain:
        more = excluded.besides(kept.others)
    if not kept.plain and kept.helpless:
        lacks = and_others([one_line(name, 120) for name in kept.helpless])
        advice, more = (
            (
                f"a toleration alone does not help: no node with this taint has the {lacks} that"
                " these pods ask for (KM210)"
            ),
            "",
        )
    return Hit(
        f"the taint {name}"
        + (f" of {and_others(where)}" if where else "")
        + f" keeps {_owners(kept)} away: {who}; set by {owner.who}: {owner.means}",
        tuple(proofs),
        f"{advice}. Who takes it away: {owner.removed_by}. What must not: {owner.never}{more}",
        host=only.host.host if only and only.host else None,
        node=only.name if only else None,
        severity=severity,
    )


def _count(entry: Mapping[str, Any]) -> int:
    pods = entry.get("pods")
    return pods if isinstance(pods, int) and not isinstance(pods, bool) else 1


def _pods(entry: Mapping[str, Any]) -> str:
    names, more = (
        [one_line(name, 253) for name in entry.get("names") or ()],
        _count(entry) - len(entry.get("names") or ()),
    )
    return f"Pod {one_line(entry.get('namespace'), 80)}/{', '.join(names)}" + (
        f" and {more} more" if more > 0 else ""
    )


def _owners(kept: _Kept) -> str:
    named = dict.fromkeys(
        f"{one_line(entry.get('owner') or 'Pod/' + str((entry.get('names') or ['?'])[0]), 300)} "
        f"(namespace {one_line(entry.get('namespace'), 80)})"
        for entry in kept.entries
    )
    return and_others(list(named))


@cluster_check(
    "KM514",
    "Node is cordoned or fenced",
    severity="warning",
    applies="Nodes that the API lists",
    cluster_needs=("nodes",),
)
def taken_out(cluster: Cluster) -> Iterator[Outcome]:
    """KM514: a node that somebody cordoned, or that carries a taint by which somebody took it
    out.
    """
    if cluster.key is None:
        yield Outcome(applies=False, note="no Kubernetes found on these hosts")
        return
    missing, nodes = list(cluster.missing("nodes")), views(cluster)
    if not missing and not all(view.told for view in nodes):
        missing.append(_older(cluster))
    hits = [hit for view in nodes for hit in (*_cordon(cluster, view), *_fences(cluster, view))]
    yield Outcome(tuple(hits), tuple(missing))


def _older(cluster: Cluster) -> Missing:
    # an older release collected it
    return Missing(cluster.api_host or "cluster API", "nodes", "not_asked")


def _cordon(cluster: Cluster, view: NodeView) -> Iterator[Hit]:
    if not view.cordoned or (view.ours is not None and not view.ours.get("held")):
        return
    added = next((one.get("added") for one in view.taints if one.get("key") == taints.CORDON), None)
    since = f" since {one_line(added, 40)}" if added else ""
    if view.ours is not None:
        who = (
            f"a node_drain (run {one_line(view.ours.get('run'), 40)}:"
            f" {one_line(view.ours.get('reason'), 120)}) that somebody comes back for"
        )
        remedy = "whoever drained it uncordons it: node_drain with state uncordoned"
    else:
        who = "somebody"
        remedy = (
            f"ask who cordoned it, and why; kubectl uncordon {shell_name(view.name, 'NODE')} by"
            " them ends it. Nothing here removes it"
        )
    yield Hit(
        f"{view.name} is cordoned by {who}{since}: it takes no new pods",
        (
            Proof(
                "api",
                cluster.api_host,
                object=f"Node {view.name}",
                text="spec.unschedulable is true"
                + (f", taint added {one_line(added, 40)}" if added else ""),
            ),
        ),
        remedy,
        host=view.host.host if view.host else None,
        node=view.name,
        severity="info" if view.ours is not None else None,
    )


def _fences(cluster: Cluster, view: NodeView) -> Iterator[Hit]:
    for taint in view.taints:
        explained = taints.explained(taint)
        if explained is None or not explained.owner.fence or taint.get("key") == taints.CORDON:
            continue
        owner, added = explained.owner, taint.get("added")
        yield Hit(
            f"{view.name} is fenced by the taint {spelled(taint)}"
            + (f" since {one_line(added, 40)}" if added else "")
            + f": {owner.means}",
            (
                Proof(
                    "api", cluster.api_host, object=f"Node {view.name}", text=f"set by {owner.who}"
                ),
            ),
            f"nothing here removes it. Who takes it away: {owner.removed_by}. What must not:"
            f" {owner.never}",
            host=view.host.host if view.host else None,
            node=view.name,
            severity=None if owner.kind == "administrator" else "info",
        )
