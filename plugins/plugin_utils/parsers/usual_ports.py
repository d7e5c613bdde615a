# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which program of a cluster's node usually listens at a port. Pure.

The ports are those of Kubernetes' page "Ports and Protocols" and of its components' defaults, and
those that networks and exporters document for themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_OWNERS: Mapping[int, str] = {
    179: "of a program that speaks BGP (BIRD of Calico, kube-router, MetalLB with FRR)",
    2379: "of etcd, for its clients",
    2380: "of etcd, for its peers",
    2381: "of etcd, for its metrics",
    4240: "of Cilium, for its health checks",
    5473: "of Typha of Calico",
    6443: "of kube-apiserver",
    9099: "of Felix of Calico, for its health",
    9100: "of node-exporter",
    10248: "of the kubelet, for its health",
    10249: "of kube-proxy, for its metrics",
    10250: "of the kubelet",
    10255: "of the kubelet, read-only",
    10256: "of kube-proxy, for its health",
    10257: "of kube-controller-manager",
    10258: "of a cloud controller manager",
    10259: "of kube-scheduler",
}
_PORT = re.compile(r":(\d{1,5})$")


def clause(address: str) -> str:
    """Return whose port that of an address usually is, as a sentence, or ""."""
    port = _PORT.search(address)
    if port is None:
        return ""
    owner = _OWNERS.get(int(port.group(1)))
    if owner is None:
        return ""
    return f"Port {port.group(1)} is usually that {owner}"
