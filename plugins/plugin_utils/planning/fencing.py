# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node was taken out on purpose: such a node is not repaired without consent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.shared.consent import API_DOWN, FENCED
from ..evidence import contract
from ..evidence.answers.cluster.nodes import Node, Nodes
from ..evidence.answers.node.kubelet import Kubelet
from ..models import taints
from ..models.taint_catalogue import CORDON
from ..parsers import systemd_unit
from .plan import RemedyContext

ALLOW = "-e kubemend_allow={0}"


def refusal(scene: RemedyContext) -> str | None:
    """Return what forbids changes on this host, with what would allow them, or None."""
    allow = scene.consent.allow
    if masked(scene.document) and FENCED not in allow:
        return (
            f"the kubelet of {scene.finding.host} is masked, which was done on purpose;"
            f" {lifted(scene, FENCED)}"
        )
    silent = _silent(scene)
    if silent and API_DOWN in allow:
        return None
    if silent:
        return (
            f"{silent}, so that it is unknown whether the node was taken out on purpose;"
            f" {lifted(scene, API_DOWN)}"
        )
    fence = None if FENCED in allow else _fence(scene)
    return f"{fence}; {lifted(scene, FENCED)}" if fence else None


def beside_mask(scene: RemedyContext) -> str | None:
    """Return another sign than a mask that the node was taken out, or why none can be seen.

    No mask is removed where there is one: both were meant. What the API has of the node must be
    known, for nothing else distinguishes a forgotten mask from one that was meant.
    """
    if scene.cluster.api_status == "ok" and scene.finding.node is None:
        return (
            f"which Node {scene.finding.host} is was not proven, so that it is unknown whether it"
            " was taken out on purpose"
        )
    silent = _silent(scene)
    if silent:
        return f"{silent}, so that it is unknown whether the node was taken out on purpose"
    return _fence(scene)


def lifted(scene: RemedyContext, word: str) -> str:
    """Return how to allow it, with what is allowed already: a variable replaces its value."""
    return f"allow it with {ALLOW.format(','.join(sorted({*scene.consent.allow, word})))}"


def masked(document: Mapping[str, Any]) -> bool:
    """Return whether the kubelet's unit is masked."""
    unit = contract.answer(document, Kubelet).unit
    return unit is not None and systemd_unit.unit(unit).masked


def _silent(scene: RemedyContext) -> str | None:
    """Return why it is not known what the API has of the node, or None."""
    if scene.cluster.api_status != "ok":
        if scene.cluster.api_reason:
            return f"no API server answers ({scene.cluster.api_reason})"
        return "no API server answers"
    if scene.finding.node is None or scene.cluster.answered(Nodes):
        return None
    return "the API server did not list the nodes"


def _nodes(scene: RemedyContext) -> tuple[Node, ...]:
    return scene.cluster.typed(Nodes).items


def is_held(scene: RemedyContext) -> bool:
    """Return whether an operator or a tool cordoned the node, and no run of kubemend.

    Then it stays cordoned, whatever is done to it.
    """
    nodes = [node for node in _nodes(scene) if node.name == scene.finding.node]
    return any(_is_held(node) for node in nodes)


def _is_held(node: Node) -> bool:
    if not node.unschedulable:
        return False
    return node.cordon is None or bool(node.cordon.held)


def _fence(scene: RemedyContext) -> str | None:
    """Return by which sign in the API the node was taken out, or None."""
    name = scene.finding.node
    if name is None:
        return None
    node = next((item for item in _nodes(scene) if item.name == name), None)
    if node is None:
        return f"the Node object of {name} is gone, as after its removal from the cluster"
    if _is_held(node):
        return f"another client cordoned {name}"
    fence = _fencing_taint(node)
    return f"{name} carries the taint {fence.taint} ({fence.owner.means})" if fence else None


def _fencing_taint(node: Node) -> taints.Explained | None:
    """Return the first taint with which its owner takes a node out, or None."""
    for taint in map(taints.explained, node.taints or ()):
        # a cordon's taint stays with the cordon, kubemend's among them
        if taint and taint.owner.fence and taint.taint.key != CORDON:
            return taint
    return None
