# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notices of node_unreachable about each Node that is not Ready: since when, and its taints.

Pure.

A fault describes the host. A reader of the Node sees taints first, and may remove a taint of a
controller by hand, which returns at once, or an operator's own taint, which was meant.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..evidence.document import UNFORESEEN, one_line, shell_name, unforeseen
from ..models import taints
from ..models.api_node import SHOWN, NodeView, and_others, views
from ..models.cluster import Cluster
from ..models.taint_catalogue import Owner

SYMPTOM = "node_unreachable"
MAX_TAINTS, LONGEST = 8, 2000
OWNERS = {"lifecycle": "the node lifecycle controller"}  # who, in short


def render_sentences(clusters: Iterable[Cluster], symptom: str | None) -> tuple[str, ...]:
    """Return a sentence for each of the first Nodes that are not Ready or have a lifecycle taint.

    Lifecycle taints are those of the node lifecycle controller.
    """
    if symptom != SYMPTOM:
        return ()
    sentences: list[str] = []
    for cluster in clusters:
        try:
            sentences += _sentences(cluster)
        except UNFORESEEN as error:
            sentences.append(
                f"nothing can be determined of the taints of nodes: {unforeseen(error)}"
            )
    return tuple(sentences)


def _sentences(cluster: Cluster) -> list[str]:
    if cluster.key is None:
        return []
    troubled = [view for view in views(cluster) if _is_troubled(view)]
    sentences = [one_line(_sentence(view), LONGEST) for view in troubled[:SHOWN]]
    other_names = [view.name for view in troubled[SHOWN:]]
    if other_names:
        sentences.append(
            f"not Ready, or tainted by a controller, are {and_others(other_names)} too"
        )
    return sentences


def _is_troubled(view: NodeView) -> bool:
    if view.ready in ("False", "Unknown"):
        return True
    explained = filter(None, map(taints.explained, view.taints))
    return any(taint.owner.kind == "lifecycle" for taint in explained)


def _sentence(view: NodeView) -> str:
    command = f"kubectl describe node {shell_name(view.name, 'NODE')}"
    owned: dict[tuple[str, str, Owner], list[str]] = {}
    for explained in filter(None, map(taints.explained, view.taints[:MAX_TAINTS])):
        taint = explained.taint
        owned.setdefault((taint.key, taint.value, explained.owner), []).append(taint.effect)
    if owned:
        names = [_owned(view, *key, effects) for key, effects in owned.items()]
        return f"{_state(view)}. Only its owner removes a taint: {', '.join(names)}. See: {command}"
    if view.told:
        return f"{_state(view)}; it carries no taint. See: {command}"
    return f"{_state(view)}; it carries no taint that is known here. See: {command}"


def _state(view: NodeView) -> str:
    state = f"{view.name}: Ready is {view.ready}"
    condition = view.condition("Ready")
    if condition is not None and condition.since:
        state += f" since {one_line(condition.since, 40)}"
    if view.leased is not None and view.ready != "True":
        state += f"; its kubelet renewed its lease last at {view.leased:%Y-%m-%dT%H:%M:%SZ}"
    return state


def _owned(view: NodeView, key: str, value: str, owner: Owner, effects: Iterable[str]) -> str:
    owner_name, taint = OWNERS.get(owner.kind, owner.who), taints.Taint(key, value)
    reason = taints.reason_of(taints.condition_of(taint, view.conditions))
    return f"{taint} ({', '.join(effects)}) is of {owner_name}{reason}"
