# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The deletion of pods that a kubelet rejected, once what rejected them is gone."""

from __future__ import annotations

from collections.abc import Sequence

from ....module_utils.shared.step_kinds import CLEAN_UP, kind_of
from ....module_utils.shared.text import counted
from ...models import devices
from ...models.devices import Node, Pod
from ...models.pod_acceptance import accepted_since, served_again
from ..plan import Remedy, RemedyContext, Step, label
from .maintenance import cluster_uid

# The faults that are read from the rejected pods themselves: they remain as long as these pods do.
# Whether their cause is gone shows what the kubelet has accepted since.
TOLD_BY_PODS = frozenset(("KM205", "KM321", "KM322", "KM328", "KM329", "KM330", "KM331"))


def clean_up(scene: RemedyContext) -> Step | None:
    """KM320: delete the node's rejected pods, where kubemend_cleanup_rejected asks for it.

    A pod stays if a Job would get another try for it, or if what rejected it may still be there.
    """
    if CLEAN_UP not in scene.consent.wishes:
        return None
    cluster_model = scene.cluster
    node = {item.name: item for item in devices.nodes(cluster_model)}[str(scene.finding.node)]
    # What makes surplus pods also makes them compete: with its repair, the others end too.
    needs = tuple(code for code in scene.finding.because if code not in TOLD_BY_PODS)
    pods = node.rejected if needs else _over(node)
    return Step(
        label(cluster_model.api_host or "cluster", "clean-up", node.name),
        cluster_model.api_host or "",
        "KM320",
        CLEAN_UP,
        1,
        f"rejected pods of {node.name}",
        limit=kind_of(CLEAN_UP).seconds,
        node=node.name,
        blocked_by=None if pods else _still_there(scene.finding.because),
        diff=_diff(pods or node.rejected),
        note=_note(node, pods),
        change={
            "kind": CLEAN_UP,
            "cluster_uid": cluster_uid(cluster_model),
            "pods": [_identity(pod) for pod in pods],
        },
        needs=needs,
    )


def _diff(pods: Sequence[Pod]) -> str:
    return "".join(f"- Pod {pod.name}\n" for pod in pods)


def _over(node: Node) -> list[Pod]:
    """Return the pods of which the evidence shows that the kubelet would not reject such now."""
    return [pod for pod in node.rejected if accepted_since(node, pod) or served_again(node, pod)]


def _still_there(causes: Sequence[str]) -> str:
    names = f" ({' and '.join(causes)})" if causes else ""
    return (
        f"nothing shows that what rejected these pods{names} is gone: the node runs no later pod"
        " that asks for as much; their owners would make others, which fail alike. Repair the"
        " cause, then run again"
    )


def _note(node: Node, pods: Sequence[Pod]) -> str:
    note = "pods of a Job that has not ended, and of owners that are not Kubernetes' own, stay"
    if pods and len(pods) < len(node.rejected):
        note = (
            f"{counted(len(node.rejected) - len(pods), 'pod stays', 'pods stay')}, because the"
            f" cause may still be there; {note}"
        )
    if node.count > len(node.rejected):
        listed = len(node.rejected)
        note = f"the newest {listed} of {node.count}, run again for the rest; {note}"
    return note


def _identity(pod: Pod) -> dict[str, str]:
    namespace, _slash, name = pod.name.partition("/")
    return {"namespace": namespace, "name": name, "uid": pod.uid}


REMEDIES: dict[str, Remedy] = {"KM320": clean_up}
