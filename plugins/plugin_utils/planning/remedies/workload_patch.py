# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The patch of a workload whose pods are to be pinned and are not, as a step of a plan. Pure.

A workload gets a patch only if kubemend_expect_pinning selects it, and if kubemend_patch_workloads
asks for it: pods are never rolled out on a guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ....module_utils.shared.container_kinds import APP
from ....module_utils.shared.journal_names import WORKLOAD
from ....module_utils.shared.step_kinds import PATCH_WORKLOAD, kind_of
from ...evidence.answers.cluster.server import Server
from ...faults.resource_managers import unpinned_pods
from ...models import qos
from ...models.qos import Subject
from ..plan import PATCH, RemedyContext, Step, label

RISK = 3
PLURALS = {
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "CronJob": "cronjobs",
}
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z")


def patch(scene: RemedyContext) -> Step | None:
    """KM313, where it is asked for and the selector names it.

    The values of the finding's advice, in the object itself.
    """
    if PATCH not in scene.consent.wishes:
        return None
    subject = _subject(scene)
    if subject is None or not (subject.template or subject.pods[0]).expected:
        return None
    cluster, advice = scene.cluster, qos.advise(subject)
    step = Step(
        label(cluster.api_host or "cluster", PATCH_WORKLOAD, subject.title),
        cluster.api_host or "",
        scene.finding.code,
        PATCH_WORKLOAD,
        RISK,
        subject.title,
        limit=kind_of(PATCH_WORKLOAD).seconds,
    )
    change = _change(subject, scene)
    if advice.patch is None or change is None:
        reason = f"this evidence does not show {subject.title} as it must: collect it again"
        return replace(step, blocked_by=advice.text if advice.patch is None else reason)
    return replace(
        step, change=change, diff=json.dumps(advice.patch, indent=1) + "\n", note=advice.text
    )


def _subject(scene: RemedyContext) -> Subject | None:
    """Return the workload that the finding is of, or None."""
    title = scene.finding.component
    judged = unpinned_pods.judged(scene.cluster)
    return next((subject for subject in judged if subject.title == title), None)


def _change(subject: Subject, scene: RemedyContext) -> dict[str, Any] | None:
    template = subject.template
    if template is None or subject.kind not in PLURALS or not template.resources:
        return None
    if not all(NAME.match(name) for name in (subject.namespace, subject.name)):
        return None
    path = (
        f"/apis/{template.api_version}/namespaces/{subject.namespace}"
        f"/{PLURALS[subject.kind]}/{subject.name}"
    )
    return {
        "kind": PATCH_WORKLOAD,
        "path": subject.title,
        "real": WORKLOAD + path,
        "sha256": template.resources,
        "resources": _resources(qos.cure(template).values),
        "cluster_uid": scene.cluster.typed(Server).kube_system_uid,
    }


def _resources(
    values: Mapping[tuple[str, str], Mapping[str, str]],
) -> dict[str, dict[str, dict[str, str]]]:
    lists: dict[str, dict[str, dict[str, str]]] = {}
    for (role, name), sizes in values.items():
        lists.setdefault("containers" if role == APP else "initContainers", {})[name] = dict(sizes)
    return lists


REMEDIES = {"KM313": patch}
