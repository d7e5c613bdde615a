# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node_unreachable says of each Node that is not Ready: since when, and whose its taints are.

Pure.

A fault tells what is wrong on the host. Who looks at the Node sees taints first, and may take a
controller's away by hand, where it comes back at once, or somebody's own, which was meant.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..evidence.document import one_line
from ..faults import engine as judge
from ..models import taints
from ..models.api_node import SHOWN, NodeView, and_others, views
from ..models.cluster import Cluster
from ..models.taint_catalogue import Owner

SYMPTOM = "node_unreachable"
MAX_TAINTS, LONGEST = 8, 2000


def told(clusters: Iterable[Cluster], symptom: str | None) -> tuple[str, ...]:
    """A sentence for each of the first Nodes that are not Ready, or that carry a taint of the
    node lifecycle controller.
    """
    if symptom != SYMPTOM:
        return ()
    sentences: list[str] = []
    for cluster in clusters:
        try:
            sentences += _of_cluster(cluster)
        except judge.UNFORESEEN as error:
            sentences.append(
                f"nothing can be told of the taints of nodes: {judge.unforeseen(error)}"
            )
    return tuple(sentences)


def _of_cluster(cluster: Cluster) -> list[str]:
    away = (
        [view for view in views(cluster) if view.ready in ("False", "Unknown") or _held(view)]
        if cluster.key is not None
        else []
    )
    more = [view.name for view in away[SHOWN:]]
    return [
        *(one_line(_of(view), LONGEST) for view in away[:SHOWN]),
        *([f"not Ready, or tainted by a controller, are {and_others(more)} too"] if more else []),
    ]


def _held(view: NodeView) -> bool:
    return any(
        found.owner.kind == "lifecycle" for found in map(taints.explained, view.taints) if found
    )


def _of(view: NodeView) -> str:
    ready = view.condition("Ready") or {}
    since = f" since {one_line(ready['since'], 40)}" if ready.get("since") else ""
    lease = (
        f"; its kubelet renewed its lease last at {view.leased:%Y-%m-%dT%H:%M:%SZ}"
        if view.leased is not None and view.ready != "True"
        else ""
    )
    state = f"{view.name}: Ready is {view.ready}{since}{lease}"
    owned: dict[tuple[str, str, Owner], list[str]] = {}
    for found in [one for one in map(taints.explained, view.taints[:MAX_TAINTS]) if one]:
        owned.setdefault((found.taint.key, found.taint.value, found.owner), []).append(
            found.taint.effect
        )
    if not owned:
        return f"{state}; it carries no taint" + ("" if view.told else " that is known here")
    words = [
        f"{taints.Taint(key, value)} ({', '.join(effects)}), set by {owner.who}: {owner.means}. Who"
        f" takes it away: {owner.removed_by}. What must not: {owner.never}"
        for (key, value, owner), effects in owned.items()
    ]
    return f"{state}. It carries {'. And '.join(words)}"
