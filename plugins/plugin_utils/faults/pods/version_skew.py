# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM608: check that no kubelet is newer than the API server that it asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ....module_utils.shared.text import counted
from ...evidence.answers.cluster.nodes import Node, Nodes
from ...evidence.answers.cluster.server import Server
from ...evidence.document import one_line
from ...models import pod_start
from ...models.api_node import and_others
from ...models.cluster import Cluster
from ...models.pod_start import Waiting
from ...models.result import EvidenceRef
from ...parsers import pflag
from ...parsers.pod_start_message import SERVICES
from ..base import CheckResult, Detection, cluster_check, without_kubernetes
from ..node import wording
from . import node_pods

SHOWN, API_SERVER = 5, "kube-apiserver"


@cluster_check(
    "KM608",
    "Kubelet is newer than the API server",
    severity="warning",
    applies="clusters whose API answers",
    needs=("manifests",),
    cluster_needs=("server", "nodes", "pod_start"),
)
def newer_kubelet(cluster: Cluster) -> Iterator[CheckResult]:
    """KM608: report kubelets of a minor release that is newer than that of the API server."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    missing = [*cluster.missing("server"), *cluster.missing("nodes")]
    server = _version(cluster.version)
    if not missing and server is None:
        missing = [cluster.missing_answer("server", "error")]
    hits: list[Detection] = []
    if server is not None:
        newer = [node for node in cluster.typed(Nodes).items if _is_newer(node, server)]
        waiting, newest = _waiting(cluster), _newest(cluster, server)
        hits = [
            _hit(cluster, node, waiting.get(node.name or "", ()))
            for node in newer
            if node.name in waiting or _is_newer(node, newest)
        ]
    yield CheckResult(tuple(hits), tuple(missing))


def _version(text: str | None) -> tuple[int, int] | None:
    return pflag.parse_version(text or "")


def _newest(cluster: Cluster, server: tuple[int, int]) -> tuple[int, int]:
    """Return the newest release of an API server: an upgrade goes from one to the next.

    Where a kubelet is newer than one of them, and not than another, the upgrade is under way.
    """
    planes = [host.control_plane for host in cluster.hosts if host.control_plane]
    files = [file for plane in planes for file in plane.files]
    versions = [file.version for file in files if file.component == API_SERVER and file.version]
    return max([server, *versions])


def _is_newer(node: Node, server: tuple[int, int]) -> bool:
    kubelet = _version(node.kubelet_version)
    return kubelet is not None and kubelet > server


def _waiting(cluster: Cluster) -> Mapping[str, Sequence[Waiting]]:
    """Return the pods of each node that wait because their kubelet has not read the Services."""
    rows: dict[str, list[Waiting]] = {}
    for row in pod_start.waiting(cluster):
        if row.trouble is not None and row.trouble.kind == SERVICES:
            rows.setdefault(row.node, []).append(row)
    return rows


def _hit(cluster: Cluster, node: Node, rows: Sequence[Waiting]) -> Detection:
    name, kubelet = one_line(node.name, 253), one_line(node.kubelet_version, 40)
    server = one_line(cluster.version, 40)
    host = wording.host_of(cluster, name)
    summary = (
        f"the kubelet ({kubelet}) is newer than the API server ({server}), which"
        " Kubernetes does not support"
    )
    if rows:
        pods = sum(row.pods for row in rows)
        owners = and_others([row.owner for row in rows])
        summary += (
            ": it cannot list Services there, so that"
            f" {counted(pods, 'of its pods does', 'of its pods do')} not start ({owners})"
        )
    url = one_line(cluster.typed(Server).url or "/version", 200)
    return Detection(
        summary,
        (
            EvidenceRef("api", cluster.api_host, object=f"Node {name}", text=f"kubelet {kubelet}"),
            EvidenceRef("api", cluster.api_host, object=url, text=f"API server {server}"),
            *(node_pods.proof(cluster, row) for row in rows[:SHOWN]),
        ),
        "upgrade the API servers first, all of them, or install a kubelet of their release on that"
        " node (kubeadm upgrade does it in that order); a kubelet may be older than the API"
        " server, and never newer",
        host=host,
        node=name,
        severity="critical" if rows else None,
    )
