# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM525: check a kubelet that runs while its Node is not ready, or not there.

The API does not hear it, or the kubelet itself reports that it is not ready.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...evidence.answers.cluster.nodes import Condition
from ...evidence.document import one_line, shell_name
from ...models import ages, repeated_errors
from ...models.api_node import NodeView, views
from ...models.cluster import Cluster, Host
from ...models.result import EvidenceRef, Missing
from ...models.runtime_work import RuntimeWork
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes
from ..known_causes import explained
from . import agent_balancer, api_node, heartbeat_cause, registration
from . import identity as node_identity
from .agent_balancer import Obstacle

# Words of the condition Ready that name the network plugin, which is a fault of its own (KM519).
ELSEWHERE = ("network plugin", "networkplugin", "cni")
_RUNTIME = re.compile(
    r"container runtime is down|pleg is not healthy|container runtime status check|runtimeready"
)
LATE_RUNTIME = (
    "see what holds the runtime up: ps -eo pid,stat,wchan:32,comm | grep ' D' (processes that"
    " cannot go on), iostat -x 5 3, free -m, df of its folder, crictl ps (does it answer in"
    " seconds?), the number of containers, {log} and journalctl -k; where a runtime hangs again"
    " after it was restarted, look at the disk and at the release of runtime and kernel. A restart"
    " of the runtime is yours to do"
)
SUMMARY = 900  # characters of what a kubelet says and of what its node shows
EXPIRED = "KM120"  # of the server that a kubelet asks


@cluster_check(
    "KM525",
    "Kubelet runs, and its Node is missing or not ready",
    severity="critical",
    applies="Nodes that the API lists, and kubelets that are to have one",
    needs=("system", "kubelet", "api_way", "repeated_errors", "runtime"),
    cluster_needs=("nodes",),
    current_only=True,
    explained_by=causes("KM115", "KM120", "KM124", "KM125", "KM507", "KM518", "KM526")
    | causes("KM502", "KM508", "KM523", "KM536", "KM562", "KM607"),
    same_node=True,
)
def unheard(cluster: Cluster) -> Iterator[CheckResult]:
    """KM525: report a Node that is missing or not ready although its kubelet runs."""
    if cluster.key is None:
        yield without_kubernetes(component="kubelet")
        return
    renamed = _renamed_hosts(cluster)
    hits, missing = registration.without_node(cluster, renamed)
    missing += (*cluster.missing("nodes"), *cluster.cut("nodes"))
    for view in _away(cluster):
        host = view.host
        if host is None or host.status != "ok" or host.host in renamed:
            continue
        missing += host.missing("kubelet")
        if host.kubelet_started is None:
            continue  # it does not run: the reason is a fault of its own
        hit, lack = _evaluated(cluster, view, host)
        if hit is not None:
            hits.append(hit)
        if lack is not None:
            missing.append(lack)
    yield CheckResult(tuple(hits), tuple(missing), component="kubelet")


def _renamed_hosts(cluster: Cluster) -> set[str | None]:
    """Return the hosts whose node is not ready because of its name (KM509)."""
    return {hit.host for result in node_identity.renamed(cluster) for hit in result.hits}


def _away(cluster: Cluster) -> list[NodeView]:
    """Return the nodes that are not ready, without a group that KM512 reports once."""
    nodes = views(cluster)
    group = api_node.whole(cluster, [view for view in nodes if view.ready == "Unknown"])
    reported: set[str] = set()
    if group:
        reported = {view.name for view in group[1]}
    not_ready = [view for view in nodes if view.ready in ("False", "Unknown")]
    return [view for view in not_ready if view.name not in reported]


def _evaluated(
    cluster: Cluster, view: NodeView, host: Host
) -> tuple[Detection | None, Missing | None]:
    """Return the hit of a node with a kubelet that runs, or what is missing to decide it."""
    if view.ready == "False":
        # an older release collected it
        if (view.condition("Ready") or Condition()).message is None:
            return None, cluster.missing_answer("nodes", "not_asked")
        if _is_elsewhere(view, host):
            return None, None
    if ages.has_just_started(cluster, host) or ages.clocks(cluster).doubt:
        return None, Missing(host.host, "kubelet", "error")
    if view.ready == "Unknown":
        return _silent(cluster, view, host), None
    return _unwell(cluster, view, host), None


def _is_elsewhere(view: NodeView, host: Host) -> bool:
    """Tell whether another fault says why a kubelet is not ready: its runtime, or its network."""
    words = _words(view).lower()
    if _RUNTIME.search(words) is not None:
        return host.runtime_work.is_told
    return any(word in words for word in ELSEWHERE)


def _words(view: NodeView) -> str:
    ready = view.condition("Ready") or Condition()
    return one_line(": ".join(filter(None, (ready.reason, ready.message))), 300)


def _of_runtime(host: Host) -> str:
    """Return what to do about a runtime that its kubelet does not hear in time."""
    work, obstacle = host.runtime_work, host.runtime_obstacle
    log = "the runtime's log"
    if work.unit:
        log = f"journalctl -u {shell_name(work.unit, 'UNIT')}"
    advice = LATE_RUNTIME.format(log=log)
    if obstacle is not None:
        return f"{obstacle.advice}; {advice}"
    return advice


def _silent(cluster: Cluster, view: NodeView, host: Host) -> Detection:
    way = host.api_way
    cause = _cause(cluster, host)
    since = one_line((view.condition("Ready") or Condition()).since or "", 40)
    text, ago = "Ready is Unknown", ""
    if since:
        text, ago = f"Ready is Unknown, since {since}", f" since {since}"
    started = f"the kubelet has been running since {host.kubelet_started:%Y-%m-%dT%H:%M:%SZ}"
    proofs = [
        EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=text),
        EvidenceRef("process", host.host, text=started),
    ]
    if way:
        result = one_line(way.error or "name, connection and certificate are well", 300)
        address = one_line(way.server, 200)
        proofs.append(EvidenceRef("http", host.host, object=address, text=result))
    proofs += cause.proofs
    if host.busy.clause and host.busy.clause in cause.clause:
        proofs += host.busy.proofs
    return Detection(
        f"the kubelet runs, and the API has heard nothing of it{ago}: {cause.clause}",
        tuple(proofs),
        cause.advice,
        host=host.host,
        node=view.name,
        component="kubelet",
        because=cause.because,
    )


def _cause(cluster: Cluster, host: Host) -> Obstacle:
    """Return why the API does not hear a kubelet: of its server, of its agent, or else."""
    server = heartbeat_cause.expired_server(cluster, host)
    if server is not None:
        return Obstacle(
            f"the certificate of its API server, on {server}, has expired",
            f"renew that certificate as {EXPIRED} of {server} describes",
            because=(EXPIRED,),
        )
    if heartbeat_cause.frozen(cluster) is None:
        balancer = agent_balancer.find(cluster, host)
        if balancer is not None:
            return balancer
    return Obstacle(*_reason(cluster, host))


def _reason(cluster: Cluster, host: Host) -> tuple[str, str]:
    """Return why the API does not hear a kubelet, and the advice for it."""
    frozen = heartbeat_cause.frozen(cluster)
    if frozen is not None:
        return frozen
    cause = _proxied(host)
    if cause is not None:
        return cause.clause, cause.advice
    if host.api_way and host.api_way.failed in heartbeat_cause.LOST:
        return heartbeat_cause.LOST[host.api_way.failed]
    if host.api_way:
        return _said(host)
    if host.statuses.get("api_way") == "timeout":
        return heartbeat_cause.SLOW
    return "whether it reaches the API was not looked at", heartbeat_cause.REACHED[1]


def _proxied(host: Host) -> registration.Cause | None:
    """Return that requests go to a proxy, unless the kubelet tells of something else."""
    error = host.node_error
    if host.api_way is None or host.api_way.failed:
        return None
    if error is not None and error.kind not in repeated_errors.NETWORK:
        return None
    return registration.proxied(host)


def _said(host: Host) -> tuple[str, str]:
    """Return what a kubelet that reaches the API repeats of its Node, and the advice for it."""
    error = host.node_error
    if error is None and host.busy.clause:
        reason = f"{heartbeat_cause.REACHED[0]}, and {host.busy.clause}"
        return reason, f"{host.busy.advice}; {heartbeat_cause.REACHED[1]}"
    if error is None:
        return heartbeat_cause.REACHED
    cause = ": ".join(filter(None, (error.clause, error.message)))
    return (
        f"{heartbeat_cause.REACHED[0]}, and the kubelet repeats: {cause}",
        error.advice or heartbeat_cause.REACHED[1],
    )


def _unwell(cluster: Cluster, view: NodeView, host: Host) -> Detection:
    message = _words(view) or "it does not say why"
    text, work = f"Ready is False: {message}", RuntimeWork()
    advice = "fix what it names; journalctl -u kubelet shows more"
    if _RUNTIME.search(message.lower()) is not None:
        work = host.runtime_work
        advice = _of_runtime(host)
    clauses = [message, *filter(None, (work.state,)), *work.signs]
    hit = Detection(
        "the kubelet runs, and says itself that the node is not ready:"
        f" {one_line('; '.join(clauses), SUMMARY)}",
        (
            EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=text),
            *work.proofs,
        ),
        advice,
        host=host.host,
        node=view.name,
        component="kubelet",
    )
    return explained(hit, ("kubelet",), (message,), view.kubelet)
