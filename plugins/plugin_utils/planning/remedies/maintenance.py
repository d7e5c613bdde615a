# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remedies of what runs left behind, and the probe of a repaired cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....module_utils.shared.step_kinds import (
    ETCD_KINDS,
    LOAD_CERTIFICATES,
    PROBE,
    RECOVER,
    RENEW_CERTIFICATES,
    RESTORE_LEVELS,
    UNCORDON,
    UNLEND,
    kind_of,
)
from ...evidence import contract
from ...evidence.answers.cluster.server import Server
from ...evidence.answers.kubemend_journal import OpenStep
from ...evidence.answers.node.journal import Journal, RaisedLevel
from ...evidence.answers.node.kubelet import Kubelet
from ...models import cluster
from ...models.kubelet import dropin as kubelet_dropin
from .. import fencing
from ..plan import BELOW, Remedy, RemedyContext, Step, label
from .control_plane import new_step, no_way_back, node_guard


def recover(scene: RemedyContext) -> Step | None:
    """KM902: the node finishes or undoes what was interrupted, and verifies the component."""
    # What was interrupted may be the very reason why the kubelet is down; starting it again needs
    # no other component.
    unproven = contract.answer(scene.document, Journal).unproven
    is_local = any(map(_needs_no_api, unproven))
    is_of_etcd = bool(unproven) and all(step.remedy in ETCD_KINDS for step in unproven)
    blocked_by = None
    if is_of_etcd:  # it restarts nothing, and etcd may be the reason why no API server answers
        blocked_by = fencing.refusal(scene) if scene.cluster.api_status != "ok" else None
    elif not is_local:
        blocked_by = no_way_back(scene)
    return new_step(
        scene,
        RECOVER,
        "/var/lib/kubemend/journal",
        blocked_by,
        guard=node_guard(scene),
        diff="finish or undo what the journal left open\n",
        expect={"local": True} if is_local or is_of_etcd else None,
        limit=600,
    )


def _needs_no_api(step: OpenStep) -> bool:
    """Tell whether an interrupted step is ended without an API server, which it may bring back."""
    return step.component in BELOW or step.remedy in (RENEW_CERTIFICATES, LOAD_CERTIFICATES)


def restore_levels(scene: RemedyContext) -> Step | None:
    """KM903: the node from which levels were raised restores them.

    What was raised by a restart needs another.
    """
    raised = contract.answer(scene.document, Journal).levels or ()
    restarted = _restarted(raised)
    blocked_by, diff = (
        _only_by_hand(raised),
        "put back the log levels that captures raised from here",
    )
    if not restarted:
        return _restore_step(scene, blocked_by, 1, diff, limit=150, guard=None)
    return _restore_step(
        scene,
        blocked_by or no_way_back(scene),
        2,
        f"{diff}, with a restart of {', '.join(restarted)}",
        limit=150 + 900 * len(restarted),
        guard=node_guard(scene),
    )


def _restore_step(
    scene: RemedyContext, blocked_by: str | None, risk: int, diff: str, **more: Any
) -> Step:
    return new_step(
        scene,
        RESTORE_LEVELS,
        "log levels that a capture raised",
        blocked_by,
        risk,
        diff=diff + "\n",
        **more,
    )


def _restarted(raised: Sequence[RaisedLevel]) -> list[str]:
    """Return the components that restart when their levels are restored."""
    paths = [str(level.path) for level in raised if level.restart and not level.by_hand]
    return sorted({path.rpartition(" ")[2] for path in paths})


def _only_by_hand(raised: Sequence[RaisedLevel]) -> str | None:
    """Return what their operator has to do where no level can be restored, or None."""
    sentences = [level.by_hand for level in raised if level.by_hand]
    if len(sentences) < len(raised):
        return None
    return "; ".join(sentences) or None


def put_back(scene: RemedyContext) -> Step | None:
    """KM903: restore a level, remove a cordon, or the temporary arguments of a kubelet."""
    evidence = scene.finding.evidence
    if any(proof.path == kubelet_dropin.ENVIRONMENT for proof in evidence):
        return _remove_arguments(scene)
    if any(proof.kind == "api" for proof in evidence):
        return _uncordon(scene)
    return restore_levels(scene)


def _remove_arguments(scene: RemedyContext) -> Step:
    files = [{"path": kubelet_dropin.DROPIN}, {"path": kubelet_dropin.ENVIRONMENT}]
    words = list(kubelet_dropin.lent(contract.answer(scene.document, Kubelet)))
    return new_step(
        scene,
        UNLEND,
        kubelet_dropin.DROPIN,
        None,
        1,
        component="kubelet",
        concerned=[],
        guard=node_guard(scene),
        diff="".join(f"--- {file['path']}\n" for file in files),
        expect={"component": "kubelet", "words": words},
        change={"kind": "files", "path": kubelet_dropin.DROPIN, "files": files, "reload": True},
    )


def _uncordon(scene: RemedyContext) -> Step:
    cluster_model, node = scene.cluster, scene.finding.node
    return Step(
        label(cluster_model.api_host or "cluster", UNCORDON, node),
        cluster_model.api_host or "",
        "KM903",
        UNCORDON,
        1,
        f"cordon of {node}",
        node=node,
        limit=kind_of(UNCORDON).seconds,
        diff=f"{node} takes pods again\n",
        note="only once the node is ready",
        change={"kind": UNCORDON, "node": node, "cluster_uid": cluster_uid(cluster_model)},
    )


def probe(cluster_model: cluster.Cluster) -> Step:
    """Return the step that verifies a repaired cluster, where kubemend_probe asks for it."""
    blocked_by = None
    if cluster_model.api_status != "ok":
        blocked_by = "no API server answers: nothing can be probed"
    return Step(
        label(cluster_model.api_host or "cluster", PROBE),
        cluster_model.api_host or "",
        "KM113",
        PROBE,
        1,
        "Job in namespace kube-system",
        limit=kind_of(PROBE).seconds,
        blocked_by=blocked_by,
        diff=(
            "a Job in namespace kube-system that must get exactly one pod, removed again with it\n"
        ),
        change={"kind": PROBE, "cluster_uid": cluster_uid(cluster_model)},
    )


def cluster_uid(cluster_model: cluster.Cluster) -> str | None:
    """Return by what a step knows that it is the cluster of the plan."""
    return cluster_model.typed(Server).kube_system_uid


REMEDIES: dict[str, Remedy] = {
    "KM902": recover,
    "KM903": put_back,
}
