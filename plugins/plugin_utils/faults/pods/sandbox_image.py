# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM605: check that a node has the image of the sandbox, which each pod needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ....module_utils.shared.text import times
from ...evidence.answers.cluster.pod_start import PodEvents, PodStart
from ...evidence.document import ends, one_line
from ...models import ages, known_defects, pod_start
from ...models.cluster import Cluster, Host
from ...models.repeated_errors import SandboxImage
from ...models.result import EvidenceRef, Missing
from ...models.sandbox_setting import SandboxSetting
from ...parsers import component_log, pod_start_message
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes
from ..dropped_settings import of_sandbox, with_dropped
from ..node import wording
from . import node_pods

TIMES = 3  # a registry that does not answer once is no fault
_IMAGE = re.compile(
    r"(?:(?:sandbox image|pulling image|pull image|infra image) \\?\"?|docker://)"
    r"([A-Za-z0-9_./:@-]*[A-Za-z0-9])",
    re.IGNORECASE,
)

_NAME = re.compile(r"[A-Za-z0-9_./:@-]{1,253}")


@cluster_check(
    "KM605",
    "Image of the sandbox is missing",
    severity="critical",
    applies="Nodes that the API lists, and kubelets and runtimes that write to journald",
    needs=("repeated_errors",),
    cluster_needs=("pod_start", "nodes"),
    current_only=True,
    same_node=True,
    explained_by=causes("KM523"),
)
def no_sandbox_image(cluster: Cluster) -> Iterator[CheckResult]:
    """KM605: report nodes whose runtime has no image for sandboxes and cannot pull it."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    by_node, missing = _events(cluster)
    hits = [_by_events(cluster, node, rows) for node, rows in sorted(by_node.items())]
    hosts = (host for host in cluster.hosts if (host.node or host.host) not in by_node)
    hits += [_by_log(host, error) for host in hosts if (error := host.sandbox_image) is not None]
    yield CheckResult(tuple(hits), tuple(missing))


def _events(cluster: Cluster) -> tuple[dict[str, list[PodEvents]], list[Missing]]:
    """Return the current events of each node about that image, and what is missing to judge."""
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
    return by_node, missing


def _by_events(cluster: Cluster, name: str, rows: Sequence[PodEvents]) -> Detection:
    node, row = one_line(name, 253), rows[0]
    text = f"{times(row.count)}, last {one_line(row.last, 40)}: {ends(row.message, 600)}"
    about = f"Pod {one_line(row.pod, 320)}"
    proof = EvidenceRef("api", cluster.api_host, object=about, text=text)
    host = next((host for host in cluster.hosts if host.node == row.node), None)
    return _hit(row.message, proof, (wording.host_of(cluster, node), node), host)


def _by_log(host: Host, error: SandboxImage) -> Detection:
    """Return the hit of what a node's own journal has: static pods need no API server."""
    proof = EvidenceRef("log", host.host, object=error.source, text=ends(error.line, 600))
    place = (host.host, host.node)
    return _hit(component_log.text(error.line), proof, place, host)


def _hit(
    message: str,
    proof: EvidenceRef,
    place: tuple[str | None, str | None],
    host: Host | None,
) -> Detection:
    """Return the hit of a message.

    place: (host, node)
    host: None where it was not audited
    """
    setting = host.sandbox_setting if host is not None else None
    image = _image(message, setting)
    reason = pod_start_message.pull(message)
    because = f", because {reason.what}" if reason is not None else ""
    ignored, advice = _unread_registry(host, message)
    hit = Detection(
        f"no new pod starts: the runtime lacks the image of the sandbox ({image}"
        f"{_set_by(setting, image)}), and"
        f" cannot pull it{because}{ignored}",
        (proof,),
        f"{advice}pull it on that node (crictl pull {image}), or bring it there (ctr -n k8s.io"
        " images import, with CRI-O: podman load, with docker: docker load); or name an image that"
        " the node reaches in the runtime's configuration (sandbox_image, pinned_images.sandbox,"
        " pause_image; with docker --pod-infra-container-image of the kubelet or of cri-dockerd)"
        " and restart it; see what removed it: image collectors besides the kubelet take what no"
        " container names",
        host=place[0],
        node=place[1],
    )
    kind = reason.kind if reason is not None else ""
    return with_dropped(hit, place[0], of_sandbox(host, image, kind))


def _image(message: str, setting: SandboxSetting | None) -> str:
    """Return the image of sandboxes, which not all messages of CRI-O name."""
    match = _IMAGE.search(message)
    if match is not None:
        return match.group(1)[:253]
    if setting is not None and _NAME.fullmatch(setting.image):
        return setting.image
    return "IMAGE"


def _unread_registry(host: Host | None, message: str) -> tuple[str, str]:
    """Return that containerd asks no mirror that its configuration names, and what to do (KM536).

    Both are empty where its release takes these names over.
    """
    defect = known_defects.UNREAD_REGISTRY
    if host is None or not host.releases.without_runtimes:
        return "", ""
    version = dict(host.releases.of_node).get(known_defects.CONTAINERD)
    is_shown = any(row.is_in(known_defects.WAITING, message) for row in defect.symptoms)
    if not is_shown or not defect.has(version):
        return "", ""
    path = host.releases.without_runtimes
    return (
        f". containerd {version} asks no mirror that {path} names (KM536)",
        f"where it names one, {defect.advice}; else ",
    )


def _set_by(setting: SandboxSetting | None, image: str) -> str:
    """Return what sets the image of sandboxes on a host, as a clause, or ""."""
    if setting is None or not setting.place:
        return ""
    if setting.image in (image, image.partition("@")[0]):
        return f", which {one_line(setting.place, 200)} sets"
    return f"; {one_line(setting.place, 200)} sets {one_line(setting.image, 200)}"
