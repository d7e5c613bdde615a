# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of an address in front of the API servers, such as keepalived's or kube-vip's."""

from __future__ import annotations

from . import paths
from .cluster import Evidence


def load_balancer(
    evidence: Evidence,
    address: str,
    port: int = 6443,
    error: str | None = None,
    failed: str = "connection",
) -> None:
    """Let every kubelet and admin.conf use this address, and kubeadm's record name it.

    error: what a connection to it says, where it cannot be used. The API servers themselves stay
    as they are. failed: what of the way fails: name, connection or certificate.
    """
    server = f"https://{address}:{port}"
    for host in evidence.hosts:
        kubeconfig = evidence.data(host, "kubelet")["kubeconfig"]
        way = evidence.data(host, "api_way")
        kubeconfig["text"] = kubeconfig["text"].replace(way["server"], server)
        way.update(server=server, address=address, error=error, failed=error and failed)
    config = evidence.data(paths.API, "kubeadm_config")
    lines = config["text"].split("\n")
    config["text"] = "\n".join(
        f"controlPlaneEndpoint: {address}:{port}"
        if line.startswith("controlPlaneEndpoint:")
        else line
        for line in lines
    )
    for document in evidence.api if error else ():
        reason = f"/etc/kubernetes/admin.conf ({server}): {error}"
        document.update(status="error", reason=reason)
        for record in document["collectors"].values():
            record.update(status="error", data=None, source=None, error=reason)
