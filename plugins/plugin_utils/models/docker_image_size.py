# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why docker of a node tells no size of an image, by its release. Pure.

The text is the same for an image without its data and for a docker that is too new for what asks
it: up to API 1.43 docker answers with VirtualSize, which dockershim and cri-dockerd before 0.3.10
read. See Mirantis/cri-dockerd#299.
"""

from __future__ import annotations

from dataclasses import replace

from ..evidence.answers.cluster.nodes import Nodes
from ..parsers import pod_start_message, release_number
from ..parsers.pod_start_message import Trouble
from .cluster import Cluster

ROW = "image-without-size"  # of known messages, which names both
DOCKER = "docker://"
FIRST = "25.0"
MISFIT, NO_DATA = pod_start_message.DOCKER_TOO_NEW, pod_start_message.IMAGE_WITHOUT_DATA
_SOURCE = "https://github.com/Mirantis/cri-dockerd/issues/299"


def with_release(cluster: Cluster, node: str | None, trouble: Trouble | None) -> Trouble | None:
    """Return a trouble with the one of both causes that the docker of its node has, if known."""
    if trouble is None or not trouble.kind.endswith(f" {ROW}"):
        return trouble
    runtime = _runtime(cluster, node)
    number, first = release_number.parse(runtime), release_number.parse(FIRST)
    if number is None or first is None:
        return trouble
    if number < first:
        return replace(
            trouble,
            kind=NO_DATA,
            what=(
                f"docker {runtime} of that node has their image without its data: a pull was cut"
                " off, or its store was damaged by a power cut or a full disk"
            ),
        )
    return replace(
        trouble,
        kind=MISFIT,
        what=(
            f"docker {runtime} of that node reports no size of an image to what asks it, dockershim"
            " or a cri-dockerd before 0.3.10 (K3s has one of its own)"
        ),
        cure=(
            "update cri-dockerd to 0.3.10 or later (K3s to 1.26.14, 1.27.11, 1.28.7, 1.29.2 or"
            " later; a kubelet with dockershim to 1.24 or later with cri-dockerd), or install"
            f" Docker 24 on that node, and keep it from being upgraded (see {_SOURCE})"
        ),
    )


def _runtime(cluster: Cluster, node: str | None) -> str:
    """Return the release of the docker of a node, or ""."""
    items = cluster.typed(Nodes).items
    versions = (item.runtime_version or "" for item in items if node and item.name == node)
    version = next(versions, "")
    return version.removeprefix(DOCKER) if version.startswith(DOCKER) else ""
