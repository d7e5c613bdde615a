# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that somebody took out on purpose is not brought back by us unasked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.shared.consent import API_DOWN, FENCED
from ..models import control_plane, taints
from ..parsers import systemd_unit as kubelet_unit
from .plan import Scene

ALLOW = "-e kubemend_allow={0}"


def why(scene: Scene) -> str | None:
    """What forbids to mend this host, with what would allow it; None where nothing does."""
    allow = scene.consent.allow
    if masked(scene.document) and FENCED not in allow:
        return (
            f"the kubelet of {scene.finding.host} is masked, which somebody did on purpose;"
            f" {lifted(scene, FENCED)}"
        )
    silent = _silent(scene)
    if silent:
        return (
            None
            if API_DOWN in allow
            else (
                f"{silent}, so that nobody can tell whether the node was taken out on purpose;"
                f" {lifted(scene, API_DOWN)}"
            )
        )
    fence = None if FENCED in allow else _fence(scene)
    return f"{fence}; {lifted(scene, FENCED)}" if fence else None


def beside_mask(scene: Scene) -> str | None:
    """Another sign than a mask that somebody took the node out, or why none can be seen.

    No mask is taken away beside either.

    Whoever did both meant it. What the API has of the node must be known: nothing but that tells a
    mask left by mistake from one that was meant.
    """
    if scene.cluster.api_status == "ok" and scene.finding.node is None:
        return (
            f"which Node {scene.finding.host} is was not proven, so that nobody can tell whether it"
            " was taken out on purpose"
        )
    silent = _silent(scene)
    return (
        f"{silent}, so that nobody can tell whether the node was taken out on purpose"
        if silent
        else _fence(scene)
    )


def lifted(scene: Scene, word: str) -> str:
    """With what is allowed already: a variable that is given anew replaces what it was."""
    return f"allow it with {ALLOW.format(','.join(sorted({*scene.consent.allow, word})))}"


def masked(document: Mapping[str, Any]) -> bool:
    """Whether the kubelet's unit is masked."""
    return kubelet_unit.unit(control_plane.data(document, "kubelet").get("unit")).masked


def _silent(scene: Scene) -> str | None:
    """Why nobody knows what the API has of the node."""
    if scene.cluster.api_status != "ok":
        return "no API server answers" + (
            f" ({scene.cluster.api_reason})" if scene.cluster.api_reason else ""
        )
    return (
        None
        if scene.finding.node is None or _nodes(scene) is not None
        else "the API server did not list the nodes"
    )


def _nodes(scene: Scene) -> list[Mapping[str, Any]] | None:
    listed = scene.cluster.answer("nodes")
    items = listed.get("items") if isinstance(listed, Mapping) else None
    return (
        [one for one in items if isinstance(one, Mapping)]
        if isinstance(items, (list, tuple))
        else None
    )


def is_held(scene: Scene) -> bool:
    """Whether somebody cordoned the node, who is no run of ours.

    Then it stays cordoned, whatever is done to it.
    """
    return any(
        _is_held(one) for one in _nodes(scene) or () if one.get("name") == scene.finding.node
    )


def _is_held(node: Mapping[str, Any]) -> bool:
    cordon = node.get("cordon")
    return bool(node.get("unschedulable")) and not (
        isinstance(cordon, Mapping) and not cordon.get("held")
    )


def _fence(scene: Scene) -> str | None:
    node = scene.finding.node
    if node is None:
        return None
    found = next((one for one in _nodes(scene) or () if one.get("name") == node), None)
    if found is None:
        return f"the Node object of {node} is gone, as when somebody took it out of the cluster"
    if _is_held(found):
        return f"somebody cordoned {node}"
    carried = found.get("taints")
    fences = [
        one
        for one in map(taints.explained, carried if isinstance(carried, (list, tuple)) else ())
        if one and one.owner.fence
    ]
    # a cordon's taint stays with the cordon, ours among them
    fence = next((one for one in fences if one.taint.key != taints.CORDON), None)
    return f"{node} carries the taint {fence.taint} ({fence.owner.means})" if fence else None
