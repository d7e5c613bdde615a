# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Levels that only a restart raises.

A restart is the same step as a repair's, where the operator allowed it by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from ..evidence import contract
from ..evidence.document import UNFORESEEN, unforeseen
from ..faults import engine as fault_engine
from ..models import cluster as model_cluster
from ..models import control_plane, membership, writes
from ..models.result import EvidenceRef, Finding
from ..planning.plan import Consent, RemedyContext, Step
from ..planning.remedies import control_plane as remedie_control_plane
from . import kubelet_verbosity
from .plan import Target

CODE = "capture"
ALLOWED = "capture_restart"
SERVER = "kube-apiserver"
WHOLE = "an API server is restarted for a log only while the rest of the control plane is whole"
# Upstream 1.18.0 to 1.18.7 can lose a node (KM201): a restart is the cure, and would destroy the
# proof. Vendors' builds count as theirs.
FORGETS = re.compile(r"v?1\.18\.([0-7]([^0-9].*)?|\d+[^0-9].*)\Z")


def add(
    targets: Iterable[tuple[Target, str]],
    documents: Iterable[Mapping[str, Any]],
    allow: Iterable[str],
    run_id: str,
) -> tuple[tuple[Target, ...], tuple[str, ...]]:
    """Return targets with the step that raises each by a restart, and a sentence for each other.

    targets: each with why nothing less would do.
    """
    restart_targets: list[Target] = []
    refused: list[str] = []
    api: list[Mapping[str, Any]] = []
    nodes: dict[str, Mapping[str, Any]] = {}
    for document in documents:
        if document.get("kind") == "cluster":
            api.append(document)
        else:
            nodes[document["host"]] = contract.checked(document)
    hosts = [fault_engine.extract(document) for document in nodes.values()]
    clusters_by_host = {
        host.host: cluster
        for cluster in fault_engine.assembled(hosts, api)
        for host in cluster.hosts
    }
    for target, missing in targets:
        try:
            reason, step = _step(
                target, nodes[target.on], clusters_by_host[target.on], frozenset(allow), run_id
            )
        except UNFORESEEN as error:
            reason, step = unforeseen(error), None
        if step is None:
            refused.append(
                f"{target.component} of {target.on} stays at level {target.former}: {missing};"
                f" {reason}"
            )
        else:
            # its own host alone is needed
            restart_targets.append(replace(target, step=step, host=target.on))
    return tuple(restart_targets), tuple(refused)


def _step(
    target: Target,
    document: Mapping[str, Any],
    cluster: model_cluster.Cluster,
    allow: frozenset[str],
    run_id: str,
) -> tuple[str, dict[str, Any] | None]:
    """Return (why not, None), or ("", what apply_step does on the node)."""
    # what is restarted may not come back as it was, and its leader cannot renew
    if writes.refused(cluster):
        return writes.refusal_text(cluster), None
    if ALLOWED not in allow:
        return (
            (
                "only a restart raises it, which is no means of looking: consent with -e"
                " kubemend_allow=capture_restart"
            ),
            None,
        )
    step: Step | str
    if target.component == "kubelet":
        step = _kubelet(target, document, cluster, allow, run_id)
    else:
        step = _static(target, document, cluster, allow)
    if isinstance(step, str):
        return step, None
    if step.blocked_by:
        return str(step.blocked_by), None
    return "", {
        **asdict(step),
        "id": f"raise-{target.component}",
        "code": [CODE],
        "expect": {**(step.expect or {}), "component": target.component},
    }


def _scene(
    target: Target,
    document: Mapping[str, Any],
    cluster: model_cluster.Cluster,
    allow: frozenset[str],
    path: str | None,
) -> RemedyContext:
    finding = Finding(
        CODE,
        "info",
        cluster.key,
        target.on,
        target.component,
        "",
        target.node,
        evidence=(EvidenceRef("file", target.on, path=path),),
    )
    return RemedyContext(finding, cluster, document, Consent(2, allow))


def _kubelet(
    target: Target,
    document: Mapping[str, Any],
    cluster: model_cluster.Cluster,
    allow: frozenset[str],
    run_id: str,
) -> Step:
    return kubelet_verbosity.raise_kubelet(
        _scene(target, document, cluster, allow, None), target.level, run_id
    )


def _static(
    target: Target,
    document: Mapping[str, Any],
    cluster: model_cluster.Cluster,
    allow: frozenset[str],
) -> Step | str:
    """Return the step by the manifest, or why there is none."""
    if target.component == "kube-scheduler" and FORGETS.match(str(cluster.version or "")):
        return (
            f"a scheduler of {cluster.version} can lose a node (KM201): a restart would cure that"
            " and destroy the proof"
        )
    lonely = _lonely(target, cluster) if target.component == SERVER else ""
    if lonely:
        return lonely
    plane = control_plane.extract(document)
    files = plane.files if plane else ()
    uses = sorted(
        (use for use in files if use.component == target.component), key=lambda use: not use.usual
    )
    if not uses:
        return "it runs from no manifest of the static pod folder: raise it where it is defined"
    return remedie_control_plane.set_flag(
        _scene(target, document, cluster, allow, uses[0].path), uses[0].path, "v", str(target.level)
    )


def _lonely(target: Target, cluster: model_cluster.Cluster) -> str:
    """Return why this API server may not go away for a while, empty where it may.

    No other one, or less than the whole control plane besides it.
    """
    unseen = membership.unseen(cluster)
    if unseen:
        return (
            f"{WHOLE}, and {', '.join(unseen)} was not looked at: run without --limit, on an"
            " inventory with every master"
        )
    if not membership.beside(cluster, target.on):
        return (
            "it is the only API server that is known, and the only one of a cluster is never"
            " restarted for a log"
        )
    own_prefix = f"{SERVER} of {target.on} "
    gone = [member for member in membership.lost(cluster) if not member.startswith(own_prefix)]
    return f"{WHOLE}: {', '.join(gone)}" if gone else ""
