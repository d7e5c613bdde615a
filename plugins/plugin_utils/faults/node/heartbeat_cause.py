# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps the API from hearing a kubelet that runs, each with its advice."""

from __future__ import annotations

from ...models import writes
from ...models.certificates import API
from ...models.cluster import Cluster, Host

Reason = tuple[str, str]
SLOW = (
    "it found no way to the server of its kubeconfig in 10 s",
    (
        "most likely its name is not resolved: look at the resolver of the node (/etc/resolv.conf),"
        " and at /etc/hosts"
    ),
)
LOST = {
    "name": (
        "it does not find the server of its kubeconfig",
        "look at /etc/hosts and the resolver of the node, and at the name itself",
    ),
    "connection": (
        "it gets no connection to the server of its kubeconfig",
        (
            "look at what lies between: address, route, firewall, load balancer, or a server that"
            " is no more; a kubelet with a proxy goes another way"
        ),
    ),
    "certificate": (
        "it cannot trust the server of its kubeconfig",
        (
            "compare the clocks (timedatectl), then the time and the names of the server's"
            " certificate, and the CA of the kubeconfig"
        ),
    ),
}
FROZEN = (
    "nothing that it says is stored, because the cluster accepts no writes",
    f"first repair what keeps the cluster from writing ({writes.CODE}), then audit this node again",
)
REACHED = (
    "not the network, because the node reaches the server of the kubelet's kubeconfig",
    (
        "read what it says of its lease and its Node (journalctl -u kubelet): a client certificate"
        " that the API refuses, another name than its Node's, or a call to the runtime that never"
        " ends"
    ),
)


def frozen(cluster: Cluster) -> Reason | None:
    """Return the reason where the cluster accepts no writes, else None."""
    if writes.refused(cluster):
        return FROZEN
    return None


def expired_server(cluster: Cluster, host: Host) -> str | None:
    """Return the host whose API server a kubelet does not trust since its certificate has expired.

    The result is None where the kubelet has another reason, or its server is no host of the run.
    """
    way = host.api_way
    if way is None or way.failed != "certificate":
        return None
    for server in cluster.hosts:
        use = server.certificates and server.certificates.file(API, "tls-cert-file")
        if not use or server.certificates is None or server.certificates.now is None:
            continue
        if use.leaf.ends <= server.certificates.now and way.address in server.names:
            return server.host
    return None
