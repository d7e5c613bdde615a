# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what the API reports about nodes that do not come back: KM511 and KM512."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from ...evidence.answers.cluster.locks import LockObject
from ...evidence.answers.cluster.nodes import Condition, Taint
from ...evidence.document import one_line
from ...models import ages
from ...models.api_node import SHOWN, NodeView, and_others, views
from ...models.cluster import STALE_LOCK_SECONDS, Cluster, Host
from ...models.control_plane import Process
from ...models.moments import timestamp
from ...models.result import EvidenceRef, Missing
from ...models.taints import NO_EXECUTE, NO_SCHEDULE
from ..base import (
    CheckResult,
    Detection,
    causes,
    cluster_check,
    present,
    unknown,
    without_kubernetes,
)
from ..control_plane import leader_lease
from . import node_events, wording
from . import taints as node_taints

MANAGER = "kube-controller-manager"
ROLE = leader_lease.Role(
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
    explained_by=causes("KM115", "KM120", "KM122", "KM126")
    | causes("KM105", "KM107", "KM114", "KM116", "KM118", component="kube-controller-manager"),
)
def nobody_leads(cluster: Cluster) -> Iterator[CheckResult]:
    """KM511: report that no controller manager renews the lock, or that taints stay."""
    if cluster.key is None:
        yield without_kubernetes(component=MANAGER)
        return
    running = [(host, process) for host in cluster.hosts for process in _managers(host)]
    lock, hits, missing = leader_lease.judged(cluster, ROLE, running)
    leftover = [(view, taint) for view in views(cluster) for taint in _left(cluster, view)]
    if leftover and not hits:
        hits.append(_undone(cluster, leftover, lock))
    if hits:
        yield present(*hits, component=MANAGER)
    else:
        yield unknown(*missing, component=MANAGER)


def _managers(host: Host) -> list[Process]:
    if host.control_plane is None:
        return []
    return [
        process for process in host.control_plane.processes_of(MANAGER) if process.ours is not False
    ]


def _left(cluster: Cluster, view: NodeView) -> Iterator[Taint]:
    """Yield taints of the lifecycle controller that stay a minute after the kubelet is Ready."""
    since = timestamp((view.condition("Ready") or Condition()).since)
    if view.ready != "True" or since is None:
        return
    for taint in view.taints:
        added = timestamp(taint.added)
        # A taint without a time was set by hand a moment ago: the controller removes that within
        # seconds.
        of_controller = taint.key in LIFECYCLE and taint.effect in (NO_SCHEDULE, NO_EXECUTE)
        if of_controller and added is not None and _old(cluster, view, max(since, added)):
            yield taint


def _old(cluster: Cluster, view: NodeView, since: datetime) -> bool:
    if view.leased is not None and (view.leased - since).total_seconds() > leader_lease.LED_SECONDS:
        return True
    age = ages.age(cluster, since, "nodes")
    return age is not None and age > STALE_LOCK_SECONDS


def _undone(
    cluster: Cluster,
    leftover: list[tuple[NodeView, Taint]],
    lock: LockObject | None,
) -> Detection:
    names = list(dict.fromkeys(view.name for view, _taint in leftover))
    proofs = [
        EvidenceRef(
            "api",
            cluster.api_host,
            object=f"Node {view.name}",
            text=(
                f"Ready since {(view.condition('Ready') or Condition()).since}, and carries "
                f"{node_taints.spelled(taint)}, added {one_line(taint.added, 40)}"
            ),
        )
        for view, taint in leftover[:SHOWN]
    ]
    leader = one_line((lock and lock.holder) or "no known process", 120)
    return Detection(
        f"taints of the node lifecycle controller stay on {and_others(names)} although the kubelet"
        " posts Ready: that controller is not at work",
        tuple(proofs),
        f"read the log of the {MANAGER} that leads ({leader}), and see whether its --controllers"
        " leaves out nodelifecycle; removing the taint by hand repairs nothing",
        component=MANAGER,
    )


@cluster_check(
    "KM512",
    "Node is down",
    severity="critical",
    applies="Nodes that the API lists",
    cluster_needs=("nodes", "object_events"),
    current_only=True,
    explained_by=causes("KM115"),
)
def node_down(cluster: Cluster) -> Iterator[CheckResult]:
    """KM512: report a node whose kubelet is silent, and whose host does not answer either."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    gone = [view for view in views(cluster) if view.ready in ("False", "Unknown")]
    results = [_host_result(cluster, view) for view in gone]
    hits = [result for result in results if isinstance(result, Detection)]
    missing = list(cluster.missing("nodes"))
    missing += [result for result in results if isinstance(result, Missing)]
    if not missing and any(view.ready is None for view in views(cluster)):
        missing.append(cluster.missing_answer("nodes", "not_asked"))
    hits += _cut_off(cluster, [view for view in gone if view.ready == "Unknown"])
    yield CheckResult(tuple(hits), tuple(missing))


def _host_result(cluster: Cluster, view: NodeView) -> Detection | Missing | None:
    """Return the hit of a node whose host does not answer either, or what is missing of the host.

    It is None if the host answers.
    """
    host = view.host
    if host is None:
        return Missing(view.name, "inventory", "absent")
    if host.status == "unreachable":
        return _down(cluster, view, host)
    if host.status != "ok":
        return Missing(host.host, "host", host.status)
    return None


def _down(cluster: Cluster, view: NodeView, host: Host) -> Detection:
    ready = view.condition("Ready") or Condition()
    time = ready.since or next(_lifecycle_times(view), None)
    text, since = f"Ready is {view.ready}", wording.since(time)
    if ready.reason:
        text += f", {one_line(ready.reason, 80)}"
    if since:
        text += f",{since}"
    state = "its kubelet said that it is not ready"
    if view.ready == "Unknown":
        state = "its kubelet posts nothing"
    return Detection(
        f"{state}{since}, and its host does not answer"
        f"{node_events.before_silence(cluster, view.name)}",
        (
            EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=text),
            EvidenceRef("log", host.host, text=one_line(host.reason, 200) or host.status),
        ),
        "look at the machine itself (power, console, the hypervisor or cloud), then at the network"
        " between; its pods are evicted when their tolerations of node.kubernetes.io/unreachable"
        " end (5 min by default). Only where the machine is known to be off, the taint"
        " node.kubernetes.io/out-of-service=nodeshutdown:NoExecute (1.24 and newer) frees its"
        " volumes",
        host=host.host,
        node=view.name,
    )


def _lifecycle_times(view: NodeView) -> Iterator[str]:
    for taint in view.taints:
        if taint.key in LIFECYCLE and taint.added:
            yield taint.added


def whole(cluster: Cluster, gone: list[NodeView]) -> tuple[str, list[NodeView]] | None:
    """Return a whole group that the API does not hear although all its kubelets run, or None."""
    running = [view for view in gone if _runs(view)]
    names = {view.name for view in running}
    for title, members in _groups(views(cluster), running):
        if len(members) > 1 and all(view.name in names for view in members):
            return title, members
    return None


def _groups(
    nodes: Sequence[NodeView], running: list[NodeView]
) -> Iterator[tuple[str, list[NodeView]]]:
    """Yield title and nodes of each group that may be cut off: the workers, and each zone."""
    yield "every worker", [view for view in nodes if not view.control_plane]
    for zone in sorted({view.zone for view in running if view.zone}):
        yield f"every node of zone {zone}", [view for view in nodes if view.zone == zone]


def _runs(view: NodeView) -> bool:
    if view.host is None or view.host.status != "ok":
        return False
    return view.host.kubelet_started is not None


def _cut_off(cluster: Cluster, gone: list[NodeView]) -> list[Detection]:
    """Report once the connection between such a group and the API, and not each of its nodes."""
    group = whole(cluster, gone)
    if group is None:
        return []
    title, members = group
    proofs = [
        EvidenceRef(
            "api",
            cluster.api_host,
            object=f"Node {view.name}",
            text=f"Ready is Unknown; the kubelet runs on {view.host.host}",
        )
        for view in members[:SHOWN]
        if view.host is not None
    ]
    return [
        Detection(
            f"{title} ({len(members)}: {and_others([view.name for view in members])}) is NotReady"
            " at once although their kubelets run",
            tuple(proofs),
            "do not repair the nodes one by one: look at what lies between them and the API (the"
            " load balancer or address in the kubelets' kubeconfig, DNS, firewall, the API servers'"
            " certificate)",
            component="kube-apiserver",
        )
    ]
