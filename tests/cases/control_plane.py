# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macros of the control plane: components that end, an API that does not answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    pod_start,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    component_end,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared.text import one_line

from . import clock, paths
from .cluster import Evidence

REFUSED = "dial tcp {address}: connect: connection refused"
# A kubelet from 1.20 on.
PROBED = (
    'I0209 21:45:30.623850    1316 kuberuntime_manager.go:707] "Message for Container of pod"'
    ' containerName="{component}" containerStatusID={{Type:containerd ID:{id}}}'
    ' pod="kube-system/{component}-{host}" containerMessage="Container {component} failed liveness'
    ' probe, will be restarted"'
)


def component_ended(
    evidence: Evidence,
    host: str,
    component: str,
    lines: Iterable[str] = (),
    running: bool = False,
    restarts: int = 0,
    lasted: float = 2,
    ago: float = 60,
    kubelet: str | None = None,
) -> None:
    """Let a component's static pod end again and again, the last log with these lines.

    running: whether it has just been started again. lasted, ago: how long it ran, and when it
    ended, in seconds.
    """
    if not running:
        gone(evidence, host, component)
    last = evidence.now - ago
    pod = f"kube-system_{component}-{host}_{'0' * 32}"
    row = {
        "component": component,
        "running": running,
        "restart": restarts,
        "begun": evidence.now - 86400,
        "path": f"{component_end.PODS}/{pod}/{component}/{restarts}.log",
        "first": last - lasted,
        "last": last,
        "lines": _cut(list(lines)),
        "kubelet": kubelet,
    }
    rows = evidence.data(host, "component_end").setdefault("components", [])
    rows[:] = [other for other in rows if other["component"] != component]
    rows.append(row)


def oom_killed(
    evidence: Evidence,
    host: str,
    component: str,
    restarts: int,
    lasted: float,
    ago: float,
    kernel: Iterable[str],
) -> None:
    """Let the kernel kill each start of a component's static pod but the one that runs.

    kernel: its lines about each of them, {id} for its container. lasted, ago: how long a start ran,
    and when the last one ended, in seconds.
    """
    containers, lines = [], []
    pod = next(
        row["pod_uid"]
        for row in evidence.data(host, "instances")["processes"]
        if row["component"] == component
    )
    ended = evidence.now - ago - restarts * (lasted + ago)
    created = evidence.now - 86400
    for attempt in range(restarts + 2):
        row: dict[str, Any] = {"component": component, "id": f"{attempt:064x}", "sandbox": "a" * 64}
        row |= {"pod_uid": pod, "attempt": attempt, "created": created, "started": created}
        row |= {"state": "exited", "finished": ended, "exit_code": 137, "reason": "OOMKilled"}
        if attempt > restarts:
            row |= {"state": "running", "finished": None, "exit_code": None, "reason": None}
        else:
            lines += [f"{ended:.6f} {host} kernel: {line.format(id=row['id'])}" for line in kernel]
        containers.append(row)
        created, ended = ended + ago / 2, ended + lasted + ago
    evidence.data(host, "component_restart").update(
        since=evidence.now - 4200,
        runtime_started=evidence.now - 86400,
        containers=containers,
        unread=None,
        runtime={"lines": [], "oldest": None, "error": None},
        kubelet={"lines": [], "oldest": None, "error": None},
        kernel={"lines": lines, "oldest": None, "error": None},
    )
    for process in evidence.data(host, "instances")["processes"]:
        if process["component"] == component:
            process["started_at"] = containers[-1]["started"]


def probe_killed(
    evidence: Evidence, host: str, component: str, restarts: int, lasted: float, ago: float
) -> None:
    """Let the kubelet end each start of a component's static pod, as its liveness probe fails.

    lasted, ago: how long a start ran, and when the last one ended, in seconds.
    """
    oom_killed(evidence, host, component, restarts, lasted, ago, [])
    data, lines = evidence.data(host, "component_restart"), []
    for row in data["containers"]:
        if row["state"] == "exited":
            row["reason"] = "Error"
            ended = f"{row['finished'] - 12:.6f} {host} kubelet[1316]: "
            lines.append(ended + PROBED.format(host=host, **row))
    data["kubelet"]["lines"] = lines


def gone(evidence: Evidence, host: str, component: str) -> None:
    """Remove a component's process from a host, and its answers."""
    instances = evidence.data(host, "instances")
    instances["processes"] = _without(instances["processes"], component)
    if evidence.record(host, "component_http")["status"] == "ok":
        http = evidence.data(host, "component_http")
        http["components"] = _without(http["components"], component)


def api_down(evidence: Evidence, error: str = REFUSED) -> None:
    """Let no API server answer: the API's collectors and the way of every kubelet fail."""
    for document in evidence.api:
        address = f"{document['address']}:6443"
        reason = f"/etc/kubernetes/admin.conf (https://{address}): {error.format(address=address)}"
        document.update(status="error", reason=reason)
        for record in document["collectors"].values():
            record.update(status="error", data=None, source=None, error=reason)
    for host in evidence.hosts:
        way = evidence.data(host, "api_way")
        way.update(failed="connection", error="[Errno 111] Connection refused")


def etcd_silent(evidence: Evidence, host: str, error: str) -> None:
    """Let the etcd of a host not answer."""
    record = evidence.record(host, "etcd")
    data = record["data"] or {}
    data.update(endpoint=None, cluster_id=None, members=[], error=error)
    data.update(status=None, alarms=None, health=None)
    record.update(status="error", data=data, error=error)


def _cut(lines: list[str]) -> list[str]:
    lines = [line[: component_end.LONGEST] for line in lines]
    if len(lines) <= component_end.BEGUN + component_end.KEPT:
        return lines
    return lines[: component_end.BEGUN] + lines[-component_end.KEPT :]


def _without(rows: list[dict[str, Any]], component: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["component"] != component]


def waiting_pods(
    evidence: Evidence,
    node: str,
    pods: int,
    state: str | None = None,
    message: str = "",
    event: tuple[str, str] | None = None,
    owners: int = 2,
    minutes: int = 30,
) -> None:
    """Let pods of a node be Pending that its kubelet has accepted.

    state: what kubectl shows of them, with the container's message; without it they are only
    counted. event: the reason and the message of the kubelet's event about each of them.
    """
    pending = evidence.data(paths.API, "pending")
    pending["total"] = pending["read"] = pending["total"] + pods
    pending["taken"] += pods
    evidence.node(node)
    if state is None:
        return
    answer = evidence.data(paths.API, "pod_start")
    event = event and (event[0], one_line(event[1], pod_start.MAX_TEXT))
    since, last = clock.iso(evidence.now - 60 * minutes), clock.iso(evidence.now - 30)
    for number in range(owners):
        count = pods // owners + (number < pods % owners)
        names = [f"app-{number}-{index}" for index in range(min(3, count))]
        row = {"node": node, "namespace": "default", "owner": f"ReplicaSet/app-{number}"}
        row |= {"state": state, "pods": count, "names": names, "since": since, "message": message}
        row["times"] = [since] * min(count, pod_start.MAX_TIMES)
        if event:
            row["event"] = {"reason": event[0], "message": event[1], "last": last}
        answer["pods"].append(row)
    answer["nodes"].append({"node": node, "waiting": pods, "states": {state: pods, "Running": 20}})
    _counted(evidence, node, state, pods)
    if event:
        row = {"node": node, "reason": event[0], "message": event[1], "pod": "default/app-0-0"}
        row |= {"count": 10 * pods, "pods": pods, "waiting": pods, "first": since, "last": last}
        answer["events"].append(row)


def _counted(evidence: Evidence, node: str, state: str, pods: int) -> None:
    """Add pods to those that the API has of a node in this state."""
    rows = evidence.data(paths.API, "pod_states")["nodes"]
    states = next(row["states"] for row in rows if row["node"] == node)
    states[state] = states.get(state, 0) + pods
