# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What else the cluster tells of why one of its own pods ends: its probe, and the node's proxy."""

from __future__ import annotations

import re
from collections.abc import Collection

from ...evidence.answers.cluster.pod_start import PodStart
from ...evidence.document import ends, one_line
from ...models.cluster import Cluster
from ...models.system_pods import EndedPod
from ...parsers.known_message import Known

QUOTED = 300
LIVENESS = re.compile(r"^(?:Liveness|Startup) probe ")
# The address of the Service kubernetes, which kube-proxy of the node translates.
SERVICE_ADDRESSES = frozenset(("service-address-not-reached", "calico-datastore-not-reached"))


def failed_probe(cluster: Cluster, pod: EndedPod) -> str:
    """Return why the kubelet ends a container that does not tell a reason itself, or ""."""
    if pod.reading is not None or pod.known is not None:
        return ""
    rows = [
        row
        for row in cluster.typed(PodStart).unhealthy or ()
        if (row.namespace, row.pod, row.container) == (pod.namespace, pod.pod, pod.container)
        and LIVENESS.match(row.message)
    ]
    newest = max(rows, key=lambda row: row.last or "", default=None)
    return "" if newest is None else ends(one_line(newest.message, 2000), QUOTED)


def without_proxy(row: Known | None, proxies: Collection[EndedPod]) -> str:
    """Return that kube-proxy of the node ends, for a pod that needs the address of a Service.

    proxies: those of the node that end again and again
    """
    if row is None or row.id not in SERVICE_ADDRESSES or not proxies:
        return ""
    return (
        "; kube-proxy of that node, which makes this address work, ends again and again itself:"
        " that comes first"
    )
