# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in KM609 that docker answers too late, and which release of it is known for that."""

from __future__ import annotations

import re
from dataclasses import replace

from ...evidence.document import one_line
from ...models.api_node import views
from ...models.cluster import Cluster
from ...models.result import EvidenceRef
from ..base import Detection

# The releases that the images of EKS of November 2020 have, and what these thereafter had again.
_RELEASE = re.compile(r"docker\W{1,3}19\.0?3\.13\b", re.IGNORECASE)
_KNOWN = (
    "; docker 19.03.13 is known for this with containerd 1.4.0 below it, which hangs where probes"
    " of pods run a command"
)
_KNOWN_ADVICE = (
    "containerd --version on the node: where it is 1.4.0, cordon the node, install containerd 1.3.2"
    " (Amazon Linux 2: yum downgrade containerd-1.3.2-1.amzn2) or take an image of EKS that is"
    " newer than v20201112, and reboot it: pods that do not end keep a drain from its end. See"
    " https://github.com/awslabs/amazon-eks-ami/issues/563. Else "
)


def with_late_docker(cluster: Cluster, hit: Detection, node: str) -> Detection:
    """Return a hit with what dockerd of its node says of clients that have given up."""
    host = cluster.node_hosts.get(node)
    if host is None or not host.unheard_docker:
        return hit
    view = next((view for view in views(cluster) if view.name == node), None)
    is_known = view is not None and _RELEASE.match(view.runtime or "") is not None
    clause = "; docker answers so late that who asked it has gone"
    proof = EvidenceRef("log", host.host, object="dockerd", text=one_line(host.unheard_docker, 600))
    hit = replace(hit, summary=f"{hit.summary}{clause}", evidence=(*hit.evidence, proof))
    if not is_known:
        return hit
    return replace(hit, summary=f"{hit.summary}{_KNOWN}", remedy=f"{_KNOWN_ADVICE}{hit.remedy}")
