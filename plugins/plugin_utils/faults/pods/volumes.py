# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM606: check whether pods wait for a volume that is still attached to another node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ....module_utils.shared.text import times
from ...evidence.answers.cluster.pod_start import Attachment, PodEvents, PodStart
from ...evidence.document import ends, one_line, shell_name
from ...models import ages
from ...models.api_node import NodeView, and_others, views
from ...models.cluster import Cluster
from ...models.result import EvidenceRef, Missing
from ...parsers import pod_start_message
from ...parsers.known_message import EVENT
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes
from ..known_causes import explained
from ..node import wording
from . import node_pods

# The attach-detach controller detaches a volume of a node that is gone or not ready after six
# minutes.
WAITED_SECONDS = 420
_PLACES = (EVENT, "csi", "cloud")  # who writes why a volume is not detached
_VOLUME = re.compile(r'for volume \\?"([^"\\]+)\\?"')


@cluster_check(
    "KM606",
    "Volume is still attached to another node",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pod_start", "nodes"),
    current_only=True,
    explained_by=causes("KM115", "KM512"),
)
def attached_elsewhere(cluster: Cluster) -> Iterator[CheckResult]:
    """KM606: report volumes that pods wait for while another node holds them."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    answer = cluster.typed(PodStart)
    rows = [row for row in answer.events if _is_disputed(row)]
    missing = [*cluster.missing("nodes"), *node_pods.missing_rows(cluster)]
    hits = []
    for row in rows:
        waited = ages.age(cluster, row.first)
        if waited is None:
            missing.append(cluster.missing_answer("pod_start", "error"))
        elif waited >= WAITED_SECONDS and _is_held(cluster, row, answer.attachments):
            hits.append(_hit(cluster, row, answer.attachments))
    if hits and answer.attachments is None:
        missing.append(Missing(cluster.api_host or "cluster API", "pod_start", "denied"))
    yield CheckResult(tuple(hits), tuple(dict.fromkeys(missing)))


def _is_disputed(row: PodEvents) -> bool:
    trouble = pod_start_message.trouble(row.reason, row.message)
    return (
        bool(row.waiting)
        and trouble is not None
        and trouble.kind == (pod_start_message.MULTI_ATTACH)
    )


def _is_held(cluster: Cluster, row: PodEvents, attachments: Sequence[Attachment] | None) -> bool:
    """Tell whether another node has the volume, or whether that is not known.

    The event stays after the volume was detached, while its pod waits for something else.
    """
    if attachments is None or cluster.cut("pod_start"):
        return True
    return bool(_holders(row, attachments))


def _holders(row: PodEvents, attachments: Sequence[Attachment] | None) -> list[Attachment]:
    volume = _volume(row)
    holders = [item for item in attachments or () if item.volume == volume and item.attached]
    return [item for item in holders if item.node != row.node]


def _hit(cluster: Cluster, row: PodEvents, attachments: Sequence[Attachment] | None) -> Detection:
    volume, node, holders = _volume(row), one_line(row.node, 253), _holders(row, attachments)
    by_name = {view.name: view for view in views(cluster)}
    nodes = [f"{one_line(item.node, 253)} ({_state(by_name.get(item.node))})" for item in holders]
    place = "another node"
    if nodes:
        place = and_others(nodes)
    host = wording.host_of(cluster, node)
    text = f"{one_line(row.reason, 80)}, {times(row.count)}: {ends(row.message, 400)}"
    hit = Detection(
        f"{one_line(row.pod, 320)} waits on {node} for the volume {volume}. It is still attached to"
        f" {place}",
        (
            EvidenceRef("api", cluster.api_host, object=f"Pod {one_line(row.pod, 320)}", text=text),
            *(_proof(cluster, item) for item in holders),
        ),
        _advice(holders, by_name),
        host=host,
        node=node,
        component=volume,
    )
    return explained(hit, _PLACES, [item.error for item in holders if item.error])


def _volume(row: PodEvents) -> str:
    match = _VOLUME.search(row.message)
    if match is None:
        return "?"
    return one_line(match.group(1), 253)


def _state(view: NodeView | None) -> str:
    if view is None:
        return "no longer a node of this cluster"
    if view.ready != "True":
        return f"Ready is {one_line(view.ready, 20)}"
    return "Ready"


def _proof(cluster: Cluster, item: Attachment) -> EvidenceRef:
    text = f"attached to {one_line(item.node, 253)} by {one_line(item.attacher, 120)}"
    if item.deleted:
        text += f", to be detached since {one_line(item.deleted, 40)}"
    if item.error:
        text += f": {ends(item.error, 300)}"
    name = f"VolumeAttachment {one_line(item.name, 253)}"
    return EvidenceRef("api", cluster.api_host, object=name, text=text)


def _advice(holders: Sequence[Attachment], by_name: dict[str, NodeView]) -> str:
    """Return what ends it: a wrong detach damages the volume, so that a person decides."""
    for item in holders:
        view, node = by_name.get(item.node), shell_name(item.node, "NODE")
        driver = shell_name(item.attacher, "the driver")
        if view is None:
            return (
                f"make sure that the machine of {node} is off, then kubectl delete volumeattachment"
                f" {shell_name(item.name, 'NAME')}; see the log of the attacher of {driver} if it"
                " stays"
            )
        if view.ready != "True":
            return (
                f"make sure that the machine of {node} is off, then kubectl taint node {node}"
                " node.kubernetes.io/out-of-service=nodeshutdown:NoExecute (Kubernetes 1.24 and"
                " newer), and take the taint away once it is back; a volume that two machines write"
                " is damaged"
            )
    return (
        "see which pod on that node still uses the volume (kubectl get pods -o wide); of a"
        " Deployment with a volume for one node, strategy Recreate ends the old pod first"
    )
