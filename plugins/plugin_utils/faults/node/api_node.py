# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API says of nodes that do not come back, KM511 to KM514.

The literals, and who is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ...evidence.document import one_line
from ...models import ages
from ...models.api_node import SHOWN, NodeView, and_others, views
from ...models.cluster import STALE_LOCK_SECONDS, Cluster, Host, timestamp
from ...models.result import Missing, Proof
from ...models.taints import NO_EXECUTE, NO_SCHEDULE
from ..base import Hit, Outcome, causes, cluster_check
from ..control_plane import leader_lease as leading
from . import taints as node_taints

MANAGER = "kube-controller-manager"
ROLE = leading.Role(
    MANAGER,
    "controller manager",
    "no taint of a node is set or taken away, and a node that died meanwhile still reads Ready",
)
LIFECYCLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@cluster_check(
    "KM511",
    "No controller manager leads",
    severity="critical",
    applies="clusters whose controller managers take a lock",
    needs=("instances", "manifests"),
    cluster_needs=("locks", "nodes"),
    current_only=True,
    explained_by=causes("KM115")
    | causes("KM105", "KM107", "KM114", component="kube-controller-manager"),
)
def nobody_leads(cluster: Cluster) -> Iterator[Outcome]:
    """KM511: nobody renews the controller managers' lock, or what their leader does to taints is
    not done.
    """
    if cluster.key is None:
        yield Outcome(applies=False, component=MANAGER, note="no Kubernetes found on these hosts")
        return
    running = [
        (host, item)
        for host in cluster.hosts
        if host.control_plane
        for item in host.control_plane.of(MANAGER)
        if item.ours is not False
    ]
    lock, hits, missing = leading.judged(cluster, ROLE, running)
    left = [(view, taint) for view in views(cluster) for taint in _left(cluster, view)]
    if left and not hits:
        hits.append(_undone(cluster, left, lock))
    yield Outcome(tuple(hits), () if hits else tuple(missing), component=MANAGER)


def _left(cluster: Cluster, view: NodeView) -> Iterator[Mapping[str, Any]]:
    """Taints of the node lifecycle controller that stay although the kubelet has been posting
    Ready for more than a minute.
    """
    since = timestamp((view.condition("Ready") or {}).get("since"))
    if view.ready != "True" or since is None:
        return
    for taint in view.taints:
        added = timestamp(taint.get("added"))
        # Without a time it is somebody's own of a moment ago: the controller takes that away within
        # seconds.
        theirs = taint.get("key") in LIFECYCLE and taint.get("effect") in (NO_SCHEDULE, NO_EXECUTE)
        if theirs and added is not None and _old(cluster, view, max(since, added)):
            yield taint


def _old(cluster: Cluster, view: NodeView, since: datetime) -> bool:
    if view.leased is not None and (view.leased - since).total_seconds() > leading.LED_SECONDS:
        return True
    age = ages.age(cluster, since, "nodes")
    return age is not None and age > STALE_LOCK_SECONDS


def _undone(
    cluster: Cluster, left: list[tuple[NodeView, Mapping[str, Any]]], lock: Mapping[str, Any] | None
) -> Hit:
    names = list(dict.fromkeys(view.name for view, _taint in left))
    proofs = [
        Proof(
            "api",
            cluster.api_host,
            object=f"Node {view.name}",
            text=(
                f"Ready since {(view.condition('Ready') or {}).get('since')}, and carries "
                f"{node_taints.spelled(taint)}, added {one_line(taint.get('added'), 40)}"
            ),
        )
        for view, taint in left[:SHOWN]
    ]
    leader = one_line((lock or {}).get("holder") or "nobody that is known", 120)
    return Hit(
        f"taints of the node lifecycle controller stay on {and_others(names)} although the kubelet"
        " posts Ready: that controller is not at work",
        tuple(proofs),
        f"read the log of the {MANAGER} that leads ({leader}), and see whether its --controllers"
        " leaves out nodelifecycle; taking the taint away by hand mends nothing",
        component=MANAGER,
    )


@cluster_check(
    "KM512",
    "Node is down",
    severity="critical",
    applies="Nodes that the API lists",
    cluster_needs=("nodes",),
    current_only=True,
    explained_by=causes("KM115"),
)
def node_down(cluster: Cluster) -> Iterator[Outcome]:
    """KM512: the kubelet of a node has fallen silent, and its host does not answer either."""
    if cluster.key is None:
        yield Outcome(applies=False, note="no Kubernetes found on these hosts")
        return
    hits: list[Hit] = []
    missing = list(cluster.missing("nodes"))
    gone = [view for view in views(cluster) if view.ready in ("False", "Unknown")]
    for view in gone:
        if view.host is None:
            missing.append(Missing(view.name, "inventory", "absent"))
        elif view.host.status == "unreachable":
            hits.append(_down(cluster, view, view.host))
        elif view.host.status != "ok":
            missing.append(Missing(view.host.host, "host", view.host.status))
    if not missing and any(view.ready is None for view in views(cluster)):
        missing.append(Missing(cluster.api_host or "cluster API", "nodes", "not_asked"))
    hits += _cut_off(cluster, [view for view in gone if view.ready == "Unknown"])
    yield Outcome(tuple(hits), tuple(missing))


def _down(cluster: Cluster, view: NodeView, host: Host) -> Hit:
    ready = view.condition("Ready") or {}
    since = ready.get("since") or next(
        (
            taint.get("added")
            for taint in view.taints
            if taint.get("key") in LIFECYCLE and taint.get("added")
        ),
        None,
    )
    proofs = [
        Proof(
            "api",
            cluster.api_host,
            object=f"Node {view.name}",
            text=f"Ready is {view.ready}"
            + (f", {one_line(ready['reason'], 80)}" if ready.get("reason") else "")
            + (f", since {one_line(since, 40)}" if since else ""),
        ),
        Proof("log", host.host, text=one_line(host.reason, 200) or host.status),
    ]
    says = (
        "its kubelet posts nothing"
        if view.ready == "Unknown"
        else "its kubelet said that it is not ready"
    )
    return Hit(
        f"{view.name} is down"
        + (f" since {one_line(since, 40)}" if since else "")
        + f": {says}, and its host does not answer",
        tuple(proofs),
        "look at the machine itself (power, console, the hypervisor or cloud), then at the network"
        " between; its pods are evicted when their tolerations of node.kubernetes.io/unreachable"
        " end (5 min by default). Only where the machine is known to be off, the taint"
        " node.kubernetes.io/out-of-service=nodeshutdown:NoExecute (1.24 and newer) frees its"
        " volumes",
        host=host.host,
        node=view.name,
    )


def whole(cluster: Cluster, gone: list[NodeView]) -> tuple[str, list[NodeView]] | None:
    """(what it is, its nodes) of a whole group that the API does not hear although all its
    kubelets run.
    """
    well = [
        view
        for view in gone
        if view.host is not None
        and view.host.status == "ok"
        and view.host.kubelet_started is not None
    ]
    everybody = views(cluster)
    groups = [("every worker", [view for view in everybody if not view.control_plane])]
    groups += [
        (f"every node of zone {zone}", [view for view in everybody if view.zone == zone])
        for zone in sorted({view.zone for view in well if view.zone})
    ]
    return next(
        (
            group
            for group in groups
            if len(group[1]) > 1
            and all(any(view.name == one.name for one in well) for view in group[1])
        ),
        None,
    )


def _cut_off(cluster: Cluster, gone: list[NodeView]) -> list[Hit]:
    """What lies between such a group and the API is the fault, once, and not so many nodes."""
    group = whole(cluster, gone)
    if group is None:
        return []
    title, members = group
    proofs = [
        Proof(
            "api",
            cluster.api_host,
            object=f"Node {view.name}",
            text=f"Ready is Unknown; the kubelet runs on {view.host.host}",
        )
        for view in members[:SHOWN]
        if view.host is not None
    ]
    return [
        Hit(
            f"{title} ({len(members)}: {and_others([view.name for view in members])}) is NotReady"
            " at once although their kubelets run",
            tuple(proofs),
            "do not repair the nodes one by one: look at what lies between them and the API (the"
            " load balancer or address in the kubelets' kubeconfig, DNS, firewall, the API servers'"
            " certificate)",
            component="kube-apiserver",
        )
    ]
