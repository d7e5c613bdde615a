# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM605: check that a node has the image of the sandbox, which each pod needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...evidence.answers.cluster.pod_start import PodEvents, PodStart
from ...evidence.document import ends, one_line
from ...models import ages, pod_start
from ...models.cluster import Cluster
from ...models.result import EvidenceRef
from ...parsers import pod_start_message
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes
from ..node import wording
from . import node_pods

TIMES = 3  # a registry that does not answer once is no fault
_IMAGE = re.compile(
    r"(?:sandbox image|pulling image|pull image|infra image) \\?\"?([A-Za-z0-9_./:@-]+)",
    re.IGNORECASE,
)


@cluster_check(
    "KM605",
    "Image of the sandbox is missing",
    severity="critical",
    applies="clusters whose API answers",
    cluster_needs=("pod_start", "nodes"),
    current_only=True,
    same_node=True,
    explained_by=causes("KM115", "KM523"),
)
def no_sandbox_image(cluster: Cluster) -> Iterator[CheckResult]:
    """KM605: report nodes whose runtime has no image for sandboxes and cannot pull it."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    missing = node_pods.missing_rows(cluster)
    by_node: dict[str, list[PodEvents]] = {}
    for row in cluster.typed(PodStart).events:
        trouble = pod_start_message.trouble(row.reason, row.message)
        if not row.waiting or trouble is None or trouble.kind != pod_start_message.SANDBOX_IMAGE:
            continue
        ago = ages.age(cluster, row.last)
        if ago is None:
            missing.append(cluster.missing_answer("pod_start", "error"))
        elif ago <= pod_start.CURRENT_SECONDS and row.count >= TIMES:
            by_node.setdefault(row.node, []).append(row)
    hits = [_hit(cluster, node, rows) for node, rows in sorted(by_node.items())]
    yield CheckResult(tuple(hits), tuple(missing))


def _hit(cluster: Cluster, name: str, rows: Sequence[PodEvents]) -> Detection:
    node, row = one_line(name, 253), rows[0]
    host = wording.host_of(cluster, node)
    match = _IMAGE.search(row.message)
    image = match.group(1)[:253] if match else "IMAGE"
    reason = pod_start_message.pull(row.message)
    text = f"{row.count} times, last {one_line(row.last, 40)}: {ends(row.message, 600)}"
    because = f", because {reason.what}" if reason is not None else ""
    return Detection(
        f"no new pod starts: the runtime lacks the image of the sandbox ({image}), and"
        f" cannot pull it{because}",
        (EvidenceRef("api", cluster.api_host, object=f"Pod {one_line(row.pod, 320)}", text=text),),
        f"pull it on that node (crictl pull {image}), or bring it there (ctr -n k8s.io images"
        " import); or name an image that the node reaches in the runtime's configuration"
        " (sandbox_image, pinned_images.sandbox, pause_image) and restart the runtime; see what"
        " removed it: image collectors besides the kubelet take what no container names",
        host=host,
        node=node,
    )
