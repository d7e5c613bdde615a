# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM525, a kubelet that runs while its Node is not ready.

Unheard by the API, or unwell by its own word.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...evidence.document import one_line
from ...models import ages, writes
from ...models.api_node import NodeView, views
from ...models.cluster import Cluster, Host
from ...models.result import Missing, Proof
from ..base import Hit, Outcome, causes, cluster_check
from . import api_node as node_api
from . import identity as node_identity

SLOW = (
    "it found no way to the server of its kubeconfig in 10 s",
    (
        "most likely its name is not resolved: look at the resolver of the node (/etc/resolv.conf),"
        " and at /etc/hosts"
    ),
)
YOUNG = 60.0  # seconds: a kubelet that has just started posts within these
# Words of the condition Ready that name the runtime or the network plugin: faults of their own.
ELSEWHERE = ("pleg", "runtime", "network plugin", "networkplugin", "cni")
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
    "the server of its kubeconfig answers there",
    (
        "read what it says of its lease and its Node (journalctl -u kubelet): a client certificate"
        " that the API refuses, another name than its Node's, or a call to the runtime that never"
        " ends"
    ),
)


@cluster_check(
    "KM525",
    "Kubelet runs, and its Node is not ready",
    severity="critical",
    applies="Nodes that the API lists",
    needs=("kubelet", "api_way"),
    cluster_needs=("nodes",),
    current_only=True,
    explained_by=causes("KM115", "KM507", "KM518", "KM526"),
)
def unheard(cluster: Cluster) -> Iterator[Outcome]:
    """KM525: a Node that is not ready although its host answers and its kubelet runs."""
    if cluster.key is None:
        yield Outcome(applies=False, component="kubelet", note="no Kubernetes found on these hosts")
        return
    missing, hits, everybody = list(cluster.missing("nodes")), [], views(cluster)
    group = node_api.whole(cluster, [view for view in everybody if view.ready == "Unknown"])
    told = {view.name for view in group[1]} if group else set()  # once, by KM512
    away = [
        view for view in everybody if view.ready in ("False", "Unknown") and view.name not in told
    ]
    # KM509 is why
    renamed = (
        {hit.host for outcome in node_identity.renamed(cluster) for hit in outcome.hits}
        if away
        else set()
    )
    for view in away:
        host = view.host
        if host is None or host.status != "ok" or host.host in renamed:
            continue
        missing += host.missing("kubelet")
        if host.kubelet_started is None:
            continue  # it does not run: why is a fault of its own
        if view.ready == "False" and not isinstance(
            (view.condition("Ready") or {}).get("message"), str
        ):
            # an older release collected it
            missing.append(Missing(cluster.api_host or "cluster API", "nodes", "not_asked"))
            continue
        if view.ready == "False" and any(word in _words(view).lower() for word in ELSEWHERE):
            continue
        if _young(cluster, host) or ages.clocks(cluster).doubt:
            missing.append(Missing(host.host, "kubelet", "error"))
        else:
            hits.append((_silent if view.ready == "Unknown" else _unwell)(cluster, view, host))
    yield Outcome(tuple(hits), tuple(missing), component="kubelet")


def _young(cluster: Cluster, host: Host) -> bool:
    """Whether its kubelet started within the last minute, by the clocks of both hosts as far as
    their difference is known.
    """
    age = ages.age_of(cluster, host.kubelet_started, host, "nodes")
    return age is not None and age[0] < YOUNG and age[1] > -YOUNG


def _words(view: NodeView) -> str:
    ready = view.condition("Ready") or {}
    return one_line(
        ": ".join(str(part) for part in (ready.get("reason"), ready.get("message")) if part), 300
    )


def _silent(cluster: Cluster, view: NodeView, host: Host) -> Hit:
    way = host.api_way
    if writes.refused(cluster):
        words, cure = FROZEN
    elif way:
        words, cure = LOST.get(str(way.get("failed")), REACHED)
    else:
        words, cure = (
            SLOW
            if host.statuses.get("api_way") == "timeout"
            else ("whether it reaches the API was not looked at", REACHED[1])
        )
    since = one_line((view.condition("Ready") or {}).get("since") or "", 40)
    proofs = [
        Proof(
            "api",
            cluster.api_host,
            object=f"Node {view.name}",
            text=f"Ready is Unknown{f', since {since}' if since else ''}",
        ),
        Proof(
            "process", host.host, text=f"the kubelet has been running since {host.kubelet_started}"
        ),
    ]
    if way:
        proofs.append(
            Proof(
                "http",
                host.host,
                object=one_line(way.get("server"), 200),
                text=one_line(way.get("error") or "name, connection and certificate are well", 300),
            )
        )
    return Hit(
        f"the kubelet of {view.name} runs, and the API has heard nothing of"
        f" it{f' since {since}' if since else ''}: {words}",
        tuple(proofs),
        cure,
        host=host.host,
        node=view.name,
        component="kubelet",
    )


def _unwell(cluster: Cluster, view: NodeView, host: Host) -> Hit:
    said = _words(view) or "it does not say why"
    return Hit(
        f"the kubelet of {view.name} runs, and says itself that the node is not ready: {said}",
        (
            Proof(
                "api", cluster.api_host, object=f"Node {view.name}", text=f"Ready is False: {said}"
            ),
        ),
        "mend what it names; journalctl -u kubelet tells more",
        host=host.host,
        node=view.name,
        component="kubelet",
    )
