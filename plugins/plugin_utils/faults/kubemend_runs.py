# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what kubemend's own runs left, and hosts that are no nodes: KM903 and KM905."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..models import node_hosts
from ..models.cluster import Cluster, Host
from ..models.result import EvidenceRef, Missing
from .base import CheckResult, Detection, cluster_check, node_check, present, unknown
from .control_plane import manifests
from .resource_managers import state_files


@node_check(
    "KM903",
    "Leftover cordon or log level of kubemend",
    severity="warning",
    applies=(
        "hosts from which a capture raised log levels, nodes that a run cordoned, and kubelets"
        " that a reset lent arguments"
    ),
    risk=1,
    needs=("journal",),
    cluster=manifests.cordon_left,
)
def _left_behind(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM903: report log verbosities and kubelet arguments that a run left."""
    lent = state_files.lent(host, document)
    for outcome in manifests.left_behind(host, document):
        if lent:
            yield outcome._replace(hits=(*outcome.hits, lent), applies=True)
        else:
            yield outcome


@cluster_check(
    "KM905",
    "Not a Kubernetes node",
    severity="warning",
    applies="every host that the run asked",
    needs=("kubelet", "installer"),
)
def not_a_node(cluster: Cluster) -> Iterator[CheckResult]:
    """KM905: report a machine that no API names as a Node, and that has nothing of Kubernetes."""
    strange = {host.host for host in node_hosts.not_nodes(cluster)}
    named = {host.host for host in cluster.node_hosts.values() if host is not None}
    for host in cluster.hosts:
        if host.host in strange:
            yield present(_stranger(host), host=host.host)
        elif host.host in named or node_hosts.is_node(host) is not None:
            yield CheckResult(host=host.host)
        else:
            missing = host.missing("installer", absent_is_answer=False)
            not_asked = Missing(host.host, "installer", "not_asked")
            yield unknown(*(missing or (not_asked,)), host=host.host)


def _stranger(host: Host) -> Detection:
    group = ""
    if host.groups:
        group = ", although the inventory has it in a group of the cluster"
    return Detection(
        f"{host.host} does not look like a Kubernetes node: no kubelet process, unit, package or"
        f" /var/lib/kubelet{group}",
        (EvidenceRef("file", host.host, path="/var/lib/kubelet", text="does not exist"),),
        "name the hosts of the cluster with -i, kubemend_hosts or the inventory's groups; nothing"
        " else was judged of this machine",
        host.host,
    )
