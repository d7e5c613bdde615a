# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pods_stay_pending says in a sentence.

Of the pod that was asked for, or why there is nothing to say.

Pure, over untrusted data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..evidence.document import one_line
from ..faults import engine as judge
from ..faults.scheduling import lost_nodes as scheduling_tree
from ..models.cluster import Cluster
from ..models.scheduling import excluded_nodes as excluded
from ..models.scheduling import message as scheduling_reasons

SYMPTOM = "pods_stay_pending"
NEEDED = ("pending", "nodes", "locks", "unmade", "pod")
_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]{1,300})" cannot (?P<verb>[a-z]{1,20}) resource "(?P<what>[a-z./]{1,100})"'
    r'(?: in API group "(?P<group>[^"]{0,100})")?'
    r'(?P<scope> in the namespace "[^"]{1,100}"| at the cluster scope)?'
)


def told(clusters: Iterable[Cluster], symptom: str | None) -> tuple[tuple[str, ...], str | None]:
    """(sentences, the one that says that the pod which was asked for does not exist).

    Of any other symptom only what is known of a Pending pod.
    """
    sentences: list[str] = []
    unknown: list[str] = []
    found = False
    for cluster in clusters:
        if cluster.key is None:
            continue
        try:
            about = _pod(cluster)
        except judge.UNFORESEEN as error:
            about = f"nothing can be told of the pod: {judge.unforeseen(error)}"
        if symptom != SYMPTOM:
            sentences += [about] if about and _is_pending(cluster) else []
            continue
        record = (cluster.api or {}).get("pod") or {}
        if record.get("status") == "absent":
            unknown.append(
                one_line(
                    f"kubemend_pod names a pod that does not exist: {record.get('error')}", 600
                )
            )
        else:
            found = True
        more = _unanswered(cluster)
        sentences += more or ([about] if about else [] if record else [_all(cluster)])
    if unknown and not found:
        return (*sentences, unknown[0]), unknown[0]
    return tuple(sentences), None


def _unanswered(cluster: Cluster) -> list[str]:
    """The API is down, or does not let us look."""
    if cluster.api_status != "ok":
        if cluster.api_status == "not_asked":
            return [
                "no control-plane host was asked for the API: which pods stay Pending is not known"
            ]
        return [
            one_line(
                f"the API does not answer ({cluster.api_host}:"
                f" {cluster.api_reason or cluster.api_status}): which pods stay Pending is not"
                " known before it does; what the hosts themselves say is judged below",
                900,
            )
        ]
    denied = [
        (name, str((cluster.api.get(name) or {}).get("error") or ""))
        for name in NEEDED
        if (cluster.api.get(name) or {}).get("status") == "denied"
    ]
    if not denied:
        return []
    rights, users = [], []
    for name, error in denied:
        match = _FORBIDDEN.search(error)
        if match is None:
            rights.append(one_line(f"{name} ({error})", 300))
            continue
        group = f".{match['group']}" if match["group"] else ""
        rights.append(f"{match['verb']} {match['what']}{group}{match['scope'] or ''}")
        users.append(match["user"])
    who = one_line(", ".join(dict.fromkeys(users)) or "the user of this kubeconfig", 300)
    source = one_line((cluster.api.get(denied[0][0]) or {}).get("source") or cluster.api_host, 300)
    return [
        one_line(
            f"RBAC is too narrow: {who} ({source}) lacks the right to"
            f" {', to '.join(dict.fromkeys(rights))}; grant it, or name another kubeconfig with"
            " kubemend_kubeconfig",
            1200,
        )
    ]


def _all(cluster: Cluster) -> str:
    """How many pods are Pending, and whose turn it is."""
    data = cluster.answer("pending")
    if not isinstance(data, Mapping) or not isinstance(data.get("read"), int):
        return one_line(
            "which pods are Pending was not told"
            f" ({(cluster.api.get('pending') or {}).get('error') or 'not asked'})",
            600,
        )
    if not data["read"] and not cluster.cut("pending"):
        return "no pod is Pending"

    def count(name: str) -> int:
        return sum(
            row["pods"] if isinstance(row.get("pods"), int) else 1
            for row in cluster.rows("pending", name)
        )

    parts = [
        (count("items"), "found no node"),
        (count("unseen"), "heard of no scheduler"),
        (count("gated"), "are held by scheduling gates"),
        (count("bound"), "wait for a kubelet to take them up"),
        (data.get("taken"), "were taken up by a kubelet (images, volumes: not the scheduler's)"),
    ]
    said = ", ".join(f"{number} {what}" for number, what in parts if number)
    more = ", the list was cut" if cluster.cut("pending") else ""
    return (
        f"{data['read']} pod{' is' if data['read'] == 1 else 's are'} Pending{more}:"
        f" {said or 'all of them about to go'}; judged are those that stay so"
    )


def _is_pending(cluster: Cluster) -> bool:
    return _map(_map(cluster.answer("pod")).get("pod")).get("phase") == "Pending"


def _pod(cluster: Cluster) -> str:
    """What is known of the pod that was asked for; empty where none was, or where nobody knows."""
    data = _map(cluster.answer("pod"))
    place, pod = (
        f"{one_line(data.get('namespace'), 80)}/{one_line(data.get('name'), 253)}",
        _map(data.get("pod")),
    )
    if not data.get("name"):
        return ""
    if not pod:
        return f"pod {place} is no more: only events are left of it, in its timeline below"
    node = f", on node {one_line(pod['node'], 253)}" if pod.get("node") else ", without a node"
    if pod.get("phase") != "Pending":
        return f"pod {place} is not Pending: its phase is {one_line(pod.get('phase'), 20)}{node}"
    for name, tell in (
        ("items", _refused),
        ("gated", _gated),
        ("unseen", _unseen),
        ("bound", _bound),
    ):
        for row in cluster.rows("pending", name):
            if row.get("asked"):
                return f"pod {place} is Pending{node}: {tell(cluster, row)}"
    if pod.get("node"):
        return (
            f"pod {place} is Pending{node}: its kubelet has taken it up ({_container(pod)}); that"
            " is no scheduler's matter"
        )
    return f"pod {place} is Pending{node}: nothing is known of why"


def _refused(cluster: Cluster, row: Mapping[str, Any]) -> str:
    reasons = excluded.nodes_of(cluster).of(row)
    since = f"since {one_line(row.get('since'), 40)} {one_line(row.get('scheduler'), 120)} says"
    if not reasons:
        return f"{since}: {one_line(row.get('message'), 600)}"
    parts = [
        f"{one_line(one.text, 160)}{' ' + one_line(one.name, 160) if one.name and one.name not in one.text else ''}:"
        f" {one_line(excluded.spelled(one.nodes, one.count), 600)}{_about(one)}"
        for one in reasons
    ]
    message = scheduling_reasons.parse(row.get("message"))
    # others leave out of their words what they need not try
    if message.missing and scheduling_tree.may_lose(cluster):
        parts.append(
            f"it says nothing of {message.missing} of {message.nodes} nodes: whether one is lost,"
            " KM202 tells"
        )
    return f"{since} " + "; ".join(parts)


def _about(one: excluded.Excluded) -> str:
    """Of a reason whether it matters, and whether it can end by itself."""
    if one.lack:
        return (
            f" (no node that it asks for {'is large enough' if one.lack.most else 'has any'}, in"
            " use or not)"
        )
    return " (as it should be)" if one.meant else ""


def _gated(_cluster: Cluster, row: Mapping[str, Any]) -> str:
    return "scheduling gates hold it: " + ", ".join(
        one_line(gate, 120) for gate in row.get("gates") or ()
    )


def _unseen(_cluster: Cluster, row: Mapping[str, Any]) -> str:
    return f"no scheduler has said anything of it; it wants {one_line(row.get('scheduler'), 253)}"


def _bound(_cluster: Cluster, row: Mapping[str, Any]) -> str:
    return (
        f"it waits for the kubelet of {one_line(row.get('node'), 253)} to take it up, since"
        f" {one_line(row.get('since'), 40)}"
    )


def _container(pod: Mapping[str, Any]) -> str:
    containers = pod.get("containers")
    waits = [
        f"{one_line(one.get('name'), 80)}:"
        f" {one_line(_map(one.get('now')).get('reason') or one.get('state'), 80)}"
        for one in (containers if isinstance(containers, list) else ())
        if isinstance(one, Mapping) and one.get("state") != "running"
    ]
    return ", ".join(waits[:5]) or "it tells no more"


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
