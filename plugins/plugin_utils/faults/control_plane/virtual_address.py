# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in KM178 that kube-vip asks for its lease at the address that it has to take itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...evidence.document import one_line
from ...models import kube_vip
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.kube_vip import KubeVip
from ...models.pod_errors import PodError
from ...models.result import EvidenceRef

SHOWN = 3
_LEASE = re.compile(
    r"https://(\[[0-9A-Fa-f:.]+\]|[^\s/:]{1,253}):\d{1,5}/\S{0,200}/leases/([\w.-]{1,253})"
)


@dataclass(frozen=True)
class Asking:
    """The kube-vip of one host, and the error that it repeats of its lease."""

    host: Host
    vip: KubeVip
    row: PodError
    lease: str

    @property
    def proof(self) -> EvidenceRef:
        """Return the line that says it."""
        name = f"{self.row.namespace}/{self.row.pod}"
        text, path = self.row.message, self.row.path
        return EvidenceRef("log", self.host.host, path=path, object=name, text=text)


def asking(cluster: Cluster, address: str) -> tuple[Asking, ...]:
    """Return those that ask for their lease at an address that they have to hold themselves."""
    rows = (_asking(host, address) for host in cluster.hosts)
    return tuple(row for row in rows if row is not None)


def _asking(host: Host, address: str) -> Asking | None:
    vip = host.kube_vip
    if vip is None or vip.address != address or not vip.kubeconfig:
        return None
    for row in host.pod_errors.rows:
        match = _LEASE.search(row.message)
        if match is None or kube_vip.NAME not in row.pod:
            continue
        if match.group(1).strip("[]") == address:
            return Asking(host, vip, row, one_line(match.group(2), 253))
    return None


def clause(rows: tuple[Asking, ...]) -> str:
    """Return that nothing can take the address, as the end of a sentence."""
    names = and_others([row.host.host for row in rows])
    first = rows[0]
    reason = f"; its {first.vip.kubeconfig} names it"
    if first.vip.takes_server:
        reason += (
            f", and {kube_vip.TAKES_SERVER} of kube-vip asks that server, where others ask the"
        )
        reason += " API server of their own node"
    return (
        f". kube-vip of {names}, which is to take that address, asks for its lease {first.lease} at"
        f" that same address, so that it never gets it{reason}"
    )


def advice(rows: tuple[Asking, ...]) -> str:
    """Return how kube-vip gets to ask the API server of its own node."""
    first = rows[0]
    release = ""
    if first.vip.takes_server:
        release = (
            ". Or take v1.2.3 of kube-vip, which asks for kubernetes:6443 again: its manifest then"
            " needs hostAliases with kubernetes at 127.0.0.1"
        )
    return (
        f"in {first.vip.path} of each control-plane node set below env - name: kubernetes_addr,"
        " value: https://ADDRESS:6443, with ADDRESS that of the node itself, which its API server's"
        f" certificate has; the kubelet starts kube-vip again{release}. Where that takes too long,"
        f" by hand on one control-plane node: ip address add {first.vip.address}/32 dev INTERFACE"
    )
