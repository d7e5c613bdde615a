# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The remedy of a node that the scheduler has lost, KM202.

The one that leads is restarted, while another takes over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ....module_utils.shared.consent import SCHEDULER_PAUSE
from ....module_utils.shared.step_kinds import RESTART_LEADER
from ...evidence.answers.cluster.server import Server
from ...evidence.document import one_line
from ...faults.scheduling import lost_nodes
from ...models.api_node import and_others
from ...models.scheduling import node_tree
from .. import fencing
from ..plan import Remedy, RemedyContext, Step, all_of
from . import control_plane

NOTE = (
    "it returns when nodes join unevenly again, until the schedulers are upgraded ({cures}); a"
    " restart leaves nothing to revert"
)


def restart_leader(scene: RemedyContext) -> Step:
    """Return one step for all nodes that the scheduler lost: they come back together."""
    cluster, finding = scene.cluster, scene.finding
    note = NOTE.format(cures=lost_nodes.CURES)
    lock, host, ready = lost_nodes.leader(cluster)
    free = lost_nodes.unled(cluster)
    if free:
        reason = (
            f"{lost_nodes.SCHEDULER} of {and_others(free)} runs with --leader-elect=false and"
            " places pods whichever leads, so that which one lost the node is not known: repair"
            " KM101 first, or restart that one by hand where no other runs"
        )
        return control_plane.new_step(
            scene, RESTART_LEADER, finding.component or "", reason, note=note
        )
    if lock is None or host is None:
        clause = (
            f"its lock names {one_line(lock.holder or 'no process', 120)}"
            if lock
            else "no lock shows"
        )
        return control_plane.new_step(
            scene,
            RESTART_LEADER,
            finding.component or "",
            f"which scheduler leads is not known ({clause}): restart that one by hand",
            note=note,
        )
    there = replace(
        scene,
        finding=replace(finding, host=host.host, node=host.node, evidence=()),
        document=scene.of(host.host),
    )
    step = control_plane.restart(there, config=False)
    change = {
        "kind": RESTART_LEADER,
        "lock": {"kind": lock.kind, "name": lock.name},
        "holder": lock.holder,
        "node": host.node,
        "pods": lost_nodes.waiting(cluster),
        "cluster_uid": cluster.typed(Server).kube_system_uid,
    }
    return replace(
        step,
        id=step.id.replace("-restart", "-restart-leader"),
        remedy=RESTART_LEADER,
        node=finding.node,
        change=change,
        note="; ".join(filter(None, (note, step.note))),
        blocked_by=all_of(step.blocked_by, _version(there, host.host), _alone(there, ready)),
        diff=step.diff + _placements(lost_nodes.waiting(cluster)),
    )


def _placements(pods: Iterable[Sequence[str]]) -> str:
    """Return the lines of the diff about the pods that get their nodes."""
    return "".join(f"  {namespace}/{pod} gets its node {node}\n" for namespace, pod, node in pods)


def _version(scene: RemedyContext, host: str) -> str | None:
    """Return why this scheduler is not restarted: only one that has the defect is."""
    control_planes = [item.control_plane for item in scene.cluster.hosts if item.host == host]
    planes = [plane for plane in control_planes if plane]
    running = [process for plane in planes for process in plane.processes_of(lost_nodes.SCHEDULER)]
    if all(node_tree.defect(process.release) for process in running):
        return None
    return f"the scheduler of {host} is not known to lose nodes"


def _alone(scene: RemedyContext, ready: bool) -> str | None:
    if ready or SCHEDULER_PAUSE in scene.consent.allow:
        return None
    return (
        "no other healthy kube-scheduler is known that could take over while that of"
        f" {scene.finding.host} starts again: no pod would be placed meanwhile;"
        f" {fencing.lifted(scene, SCHEDULER_PAUSE)}"
    )


REMEDIES: dict[str, Remedy] = {"KM202": restart_leader}
