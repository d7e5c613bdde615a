# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notices of pods_stay_pending: about the requested pod, or why there is nothing to report.

The functions are pure, over untrusted data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...module_utils.shared.text import counted
from ..evidence.answers.cluster.pending import (
    BoundPods,
    GatedPods,
    Pending,
    PendingPods,
    UnseenPods,
)
from ..evidence.answers.cluster.pod import Pod, PodContainer, TimedPod
from ..evidence.document import UNFORESEEN, one_line, unforeseen
from ..faults.scheduling import lost_nodes, waiting_pods
from ..models.cluster import Cluster
from ..models.scheduling import excluded_nodes
from ..models.scheduling import message as scheduling_message

SYMPTOM = "pods_stay_pending"
NEEDED = ("pending", "nodes", "locks", "unmade", "pod")
_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]{1,300})" cannot (?P<verb>[a-z]{1,20})'
    r' resource "(?P<resource>[a-z./]{1,100})"'
    r'(?: in API group "(?P<group>[^"]{0,100})")?'
    r'(?P<scope> in the namespace "[^"]{1,100}"| at the cluster scope)?'
)


def render_sentences(
    clusters: Iterable[Cluster], symptom: str | None
) -> tuple[tuple[str, ...], str | None]:
    """Return (sentences, the sentence that the requested pod does not exist).

    For any other symptom the sentences are only about a Pending pod.
    """
    known_clusters = [cluster for cluster in clusters if cluster.key is not None]
    if symptom != SYMPTOM:
        return tuple(_pending_pod_sentences(known_clusters)), None
    sentences: list[str] = []
    absent: list[str] = []
    for cluster in known_clusters:
        record = (cluster.api or {}).get("pod") or {}
        if record.get("status") == "absent":
            absent.append(_absent(record))
        sentences += _symptom_sentences(cluster, _pod_or_error(cluster), bool(record))
    if known_clusters and len(absent) == len(known_clusters):
        return (*sentences, absent[0]), absent[0]
    return tuple(sentences), None


def _pending_pod_sentences(clusters: Iterable[Cluster]) -> Iterator[str]:
    """Yield a sentence about the requested pod of each cluster in which it is Pending."""
    for cluster in clusters:
        pod = _pod_or_error(cluster)
        if pod and _is_pending(cluster):
            yield pod


def _absent(record: Mapping[str, Any]) -> str:
    return one_line(f"kubemend_pod names a pod that does not exist: {record.get('error')}", 600)


def _pod_or_error(cluster: Cluster) -> str:
    try:
        return _pod(cluster)
    except UNFORESEEN as error:
        return f"nothing can be determined of the pod: {unforeseen(error)}"


def _symptom_sentences(cluster: Cluster, pod: str, is_asked: bool) -> list[str]:
    unanswered = _unanswered(cluster)
    if unanswered:
        return unanswered
    if pod:
        return [pod]
    if is_asked:
        return []
    return [_all(cluster)]


def _unanswered(cluster: Cluster) -> list[str]:
    """Return that the API is down or refuses the reading; nothing if it answered."""
    if cluster.api_status == "ok":
        return _denied(cluster)
    if cluster.api_status == "not_asked":
        return ["no control-plane host was asked for the API: which pods stay Pending is not known"]
    return [
        one_line(
            f"the API does not answer ({cluster.api_host}:"
            f" {cluster.api_reason or cluster.api_status}): which pods stay Pending is not"
            " known before it does; what the hosts themselves say is judged below",
            900,
        )
    ]


def _denied(cluster: Cluster) -> list[str]:
    records = {name: cluster.api.get(name) or {} for name in NEEDED}
    denied = [name for name in NEEDED if records[name].get("status") == "denied"]
    if not denied:
        return []
    rights: dict[str, None] = {}
    users: dict[str, None] = {}
    for name in denied:
        error = str(records[name].get("error") or "")
        match = _FORBIDDEN.search(error)
        if match is None:
            rights[one_line(f"{name} ({error})", 300)] = None
        else:
            rights[_right(match)] = None
            users[match["user"]] = None
    user = one_line(", ".join(users) or "the user of this kubeconfig", 300)
    source = one_line(records[denied[0]].get("source") or cluster.api_host, 300)
    return [
        one_line(
            f"RBAC is too narrow: {user} ({source}) lacks the right to"
            f" {', to '.join(rights)}; grant it, or name another kubeconfig with"
            " kubemend_kubeconfig",
            1200,
        )
    ]


def _right(match: re.Match[str]) -> str:
    resource = match["resource"]
    if match["group"]:
        resource += f".{match['group']}"
    return f"{match['verb']} {resource}{match['scope'] or ''}"


def _all(cluster: Cluster) -> str:
    """Return how many pods are Pending, and who has to act on them."""
    pending = cluster.typed(Pending)
    if pending.read is None:
        reason = (cluster.api.get("pending") or {}).get("error") or "not asked"
        return one_line(f"which pods are Pending is not known ({reason})", 600)
    if not pending.read and not cluster.cut("pending"):
        return "no pod is Pending"
    total = _total(pending.read, bool(cluster.cut("pending")))
    parts = ", ".join(f"{number} {text}" for text, number in _pending_counts(pending))
    return f"{total}: {parts or 'all of them about to go'}; judged are those that stay so"


def _total(count: int, is_cut: bool) -> str:
    total = counted(count, "pod is Pending", "pods are Pending")
    if is_cut:
        total += ", the list was cut"
    return total


def _pending_counts(pending: Pending) -> list[tuple[str, int]]:
    counts = (
        ("found no node", sum(map(waiting_pods.count, pending.items))),
        ("heard of no scheduler", sum(map(waiting_pods.count, pending.unseen or ()))),
        ("are held by scheduling gates", sum(map(waiting_pods.count, pending.gated or ()))),
        ("wait for a kubelet to take them up", sum(map(waiting_pods.count, pending.bound or ()))),
        (
            "were taken up by a kubelet (images, volumes: not the scheduler's)",
            pending.taken,
        ),
    )
    return [(text, number) for text, number in counts if number]


def _is_pending(cluster: Cluster) -> bool:
    pod = cluster.typed(Pod).pod
    return pod is not None and pod.phase == "Pending"


def _pod(cluster: Cluster) -> str:
    """Return what is known of the requested pod; empty if none was requested or is known."""
    requested_pod = cluster.typed(Pod)
    if not requested_pod.name:
        return ""
    place = f"{one_line(requested_pod.namespace, 80)}/{one_line(requested_pod.name, 253)}"
    pod = requested_pod.pod
    if pod is None:
        return f"pod {place} is no more: only events are left of it, in its timeline below"
    node = ", without a node"
    if pod.node:
        node = f", on node {one_line(pod.node, 253)}"
    if pod.phase != "Pending":
        return f"pod {place} is not Pending: its phase is {one_line(pod.phase, 20)}{node}"
    return f"pod {place} is Pending{node}: {_pending_reason(cluster, pod)}"


def _pending_reason(cluster: Cluster, pod: TimedPod) -> str:
    reason = next(_asked_reasons(cluster, cluster.typed(Pending)), None)
    if reason is not None:
        return reason
    if pod.node:
        return f"its kubelet has taken it up ({_containers(pod)}); that is no scheduler's matter"
    return "nothing is known of why"


def _asked_reasons(cluster: Cluster, pending: Pending) -> Iterator[str]:
    """Yield what the rows of the requested pod tell, those of a scheduler's message first."""
    yield from (_refused(cluster, row) for row in pending.items if row.asked)
    yield from (_gated(row) for row in pending.gated or () if row.asked)
    yield from (_unseen(row) for row in pending.unseen or () if row.asked)
    yield from (_bound(row) for row in pending.bound or () if row.asked)


def _refused(cluster: Cluster, row: PendingPods) -> str:
    reasons = excluded_nodes.nodes_of(cluster).reasons_of(row)
    since = f"since {one_line(row.since, 40)} {one_line(row.scheduler, 120)} says"
    if not reasons:
        return f"{since}: {one_line(row.message, 600)}"
    parts = [_excluded(reason) for reason in reasons]
    message = scheduling_message.parse(row.message)
    # Other schedulers do not mention nodes that they need not try.
    if message.missing and lost_nodes.may_lose(cluster):
        parts.append(
            f"it says nothing of {message.missing} of {counted(message.nodes or 0, 'node')}:"
            " whether one is lost,"
            " KM202 shows"
        )
    return f"{since} " + "; ".join(parts)


def _excluded(reason: excluded_nodes.Excluded) -> str:
    text = one_line(reason.text, 160)
    if reason.name and reason.name not in reason.text:
        text += f" {one_line(reason.name, 160)}"
    nodes = one_line(excluded_nodes.spelled(reason.nodes, reason.count), 600)
    return f"{text}: {nodes}{_relevance(reason)}"


def _relevance(reason: excluded_nodes.Excluded) -> str:
    """Return whether a reason matters, and whether it can end by itself."""
    if not reason.lack:
        return " (as it should be)" if reason.meant else ""
    if reason.lack.most:
        return " (no node that it asks for is large enough, in use or not)"
    return " (no node that it asks for has any, in use or not)"


def _gated(row: GatedPods) -> str:
    gates = (one_line(gate, 120) for gate in row.gates)
    return "scheduling gates hold it: " + ", ".join(gates)


def _unseen(row: UnseenPods) -> str:
    return f"no scheduler has reported on it; its schedulerName is {one_line(row.scheduler, 253)}"


def _bound(row: BoundPods) -> str:
    return (
        f"it waits for the kubelet of {one_line(row.node, 253)} to take it up, since"
        f" {one_line(row.since, 40)}"
    )


def _containers(pod: TimedPod) -> str:
    waiting = [
        f"{one_line(container.name, 80)}: {one_line(_state(container), 80)}"
        for container in pod.containers
        if container.state != "running"
    ]
    return ", ".join(waiting[:5]) or "it says no more"


def _state(container: PodContainer) -> str | None:
    return (container.now and container.now.reason) or container.state
