# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The capture of pods_stay_pending: the scheduler that leads, and what came of its cache's dump.

Pure, from evidence and from what was captured; the files are the action's. Whatever does not work
is a note: the diagnosis stands without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...module_utils.shared.klog_verbosity import of_argv
from ..evidence.answers.cluster.nodes import Nodes
from ..evidence.answers.cluster.pending import Pending, PendingPods
from ..evidence.document import one_line
from ..faults.control_plane import leader_election, leader_lease
from ..faults.scheduling import lost_nodes
from ..models.cluster import Cluster, Host
from ..models.control_plane import Process
from ..models.scheduling import cache_dump, node_tree
from ..models.scheduling import message as scheduling_message
from ..run import command_line
from .outcome import Became
from .plan import SCHEDULER, Plan, Target

DOCUMENT = "scheduler.json"
SYMPTOM = "pods_stay_pending"
SINCE = (1, 14)  # the releases whose sources were read: from these on each handles SIGUSR2
ORDER = (
    cache_dump.SHORT,
    cache_dump.LACKING,
    cache_dump.OPEN,
    cache_dump.WHOLE,
    cache_dump.UNKNOWN,
)
# what a message says of the nodes that a DaemonSet's pod is not meant for
ELSEWHERE = ("affinity", "node_name", "taint", "cordon")
MAX_MESSAGES, MAX_NAMES = 20, 10
OBSERVE, CHECK, GO = "observe", "check", "go"  # what the operator consented to


class _No(Exception):
    """The reason why nothing is captured of a cluster, as a clause."""


def choose(
    clusters: Iterable[Cluster], level: int, digits: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return (what is captured of each cluster's leading scheduler, notes).

    A note for each cluster of which nothing is captured.
    """
    captures, notes = [], []
    for cluster in clusters:
        if cluster.key is None:
            continue
        try:
            entries = _entries(cluster)
            host, process = _leader(cluster, {str(entry.scheduler) for entry in entries})
            captures.append(_capture(cluster, host, process, entries, level, digits))
        except _No as reason:
            notes.append(
                f"kubemend_capture: nothing is captured of cluster {cluster.key[:digits]}, because"
                f" {reason}"
            )
    if not captures and not notes:
        notes.append(
            "kubemend_capture: nothing is captured, because no host proved to which cluster it"
            " belongs"
        )
    return captures, notes


def _entries(cluster: Cluster) -> list[PendingPods]:
    if cluster.missing("pending"):
        raise _No(
            "its API does not say which pods wait"
            f" ({one_line(cluster.api_reason or cluster.api_status)})"
        )
    entries = [
        entry
        for entry in cluster.typed(Pending).items
        if scheduling_message.parse(entry.message).nodes is not None
    ]
    if not entries:
        raise _No("no pod waits there of which a scheduler says on how many nodes it tried it")
    return entries


def _leader(cluster: Cluster, names: set[str]) -> tuple[Host, Process]:
    """Return the one process that placed these pods, proven; no other is ever sent anything."""
    running = _running(cluster, names)
    if not running:
        raise _No(f"no {SCHEDULER} that serves them was found on its hosts")
    if len(running) > 1 or running[0][1].elect is not False:
        running = _holding(cluster, running)
    host, process = running[0]
    if not process.static:
        raise _No(
            f"{SCHEDULER} of {host.host} is no static pod, so that its log is not read here: send"
            f" SIGUSR2 to it (pid {process.pid}) by hand"
        )
    if process.version is None or process.version < SINCE:
        release = "not known" if process.version is None else one_line(process.release, 80)
        raise _No(
            f"the version of {SCHEDULER} of {host.host} is {release}, and"
            f" only of {SINCE[0]}.{SINCE[1]} and newer is it known that SIGUSR2 makes it dump its"
            " cache, and does not end it"
        )
    return host, process


def _running(cluster: Cluster, names: set[str]) -> list[tuple[Host, Process]]:
    """Return the schedulers of the cluster's hosts that serve one of these names."""
    schedulers = []
    for host in cluster.hosts:
        if host.status == "ok" and host.control_plane:
            schedulers += [
                (host, process)
                for process in host.control_plane.processes_of(SCHEDULER)
                if leader_election.scheduler_names(process) & names
            ]
    return schedulers


def _holding(cluster: Cluster, running: list[tuple[Host, Process]]) -> list[tuple[Host, Process]]:
    """Return the one scheduler that holds the lock, or raise _No."""
    lock, holders = leader_lease.holding(cluster, running, SCHEDULER)
    if lock is None:
        raise _No(
            "no process is seen to renew the schedulers' lock, so that it is not known who leads"
        )
    if len(holders) != 1:
        count = "several schedulers" if holders else "no scheduler"
        raise _No(
            f"the lock is held by {one_line(lock.holder, 120)}, which is {count} of these hosts"
        )
    return list(holders)


def _capture(
    cluster: Cluster,
    host: Host,
    process: Process,
    entries: Iterable[PendingPods],
    level: int,
    digits: int,
) -> dict[str, Any]:
    nodes = None
    if not cluster.missing("nodes") and not cluster.cut("nodes"):
        nodes = sorted(str(item.name) for item in cluster.typed(Nodes).items)
    heard: dict[str, dict[str, Any]] = {}
    for entry in entries:
        text = str(entry.message)
        message = heard.setdefault(text, {"message": text, "waiting": [], "targets": []})
        pods = [f"{entry.namespace}/{name}" for name in entry.names]
        message["waiting"] += pods
        message["targets"] += [target for _pod, target in lost_nodes.targets(entry, nodes or ())]
    return {
        "cluster": (cluster.key or "")[:digits],
        "host": host.host,
        "node": host.node,
        "version": process.release,
        "process": {
            "pid": process.pid,
            "started_at": process.started_at,
            "argv": list(process.argv),
        },
        "former": of_argv(process.argv),
        "level": level,
        "faulty": node_tree.defect(process.release),
        "nodes": nodes,
        "heard": list(heard.values())[:MAX_MESSAGES],
        "process_is": "",
        "offered": "",
        "level_reason": "",
        "sent": None,
        "sent_reason": "",
    }


def levels(captures: Iterable[Mapping[str, Any]], run_id: str, seconds: int, begun: float) -> Plan:
    """Return the levels that can be raised, as capture_logs has them."""
    captures = list(captures)
    targets = tuple(
        Target(
            capture["host"],
            capture["host"],
            SCHEDULER,
            f"level:{SCHEDULER}",
            capture["former"],
            capture["level"],
            capture["node"],
        )
        for capture in captures
        if capture["offered"] == "offered" and capture["former"] < capture["level"]
    )
    return Plan(
        run_id,
        seconds,
        max((capture["level"] for capture in captures), default=0),
        (SCHEDULER,),
        targets,
        logging={capture["host"]: (SCHEDULER,) for capture in captures},
        begun=begun,
    )


def wish(capture: Mapping[str, Any], seconds: int) -> str:
    """Return what will be done to a leader, or would be."""
    level = f"the log level of {SCHEDULER} of {capture['host']} stays at {capture['former']}"
    if capture["former"] < capture["level"]:
        level = (
            f"the log level of {SCHEDULER} of {capture['host']} {capture['former']} ->"
            f" {capture['level']} for {seconds} s, where that needs no restart"
        )
    return (
        f"{level}; SIGUSR2 to it (pid {capture['process']['pid']}), which leads and then logs its"
        " cache"
    )


def result(
    capture: Mapping[str, Any],
    became: Became | None,
    lines: list[str],
    run_id: str,
    files: Mapping[str, str],
) -> dict[str, Any]:
    """Return what a capture came to, for the report.

    It becomes an item of scheduler_capture in report.json.
    """
    dump = cache_dump.parse(lines)
    comparison = _telling(capture, dump, lines)
    return {
        "cluster": capture["cluster"],
        "host": capture["host"],
        "node": capture["node"],
        "pid": capture["process"]["pid"],
        "version": capture["version"],
        "level": {
            "former": capture["former"],
            "level": capture["level"],
            "raised": bool(became and became.raised),
            "restored": became.restored if became else None,
            "reason": _level(capture, became, run_id),
        },
        "dump": {"taken": dump.found, "whole": dump.whole, "reason": _dump(capture, dump)},
        "nodes": {
            name: comparison[name]
            for name in ("api", "cached", "counted", "reasons", "not_cached", "only_cached")
        },
        "verdict": comparison["verdict"],
        "sentence": comparison["sentence"],
        "targets": comparison["targets"],
        "message": comparison["message"],
        "waiting": comparison["waiting"],
        "queue": len(dump.queue),
        "mismatch": [one_line(line, 300) for line in dump.mismatch[:MAX_NAMES]],
        "files": dict(files),
    }


def _telling(capture: Mapping[str, Any], dump: cache_dump.Dump, lines: list[str]) -> dict[str, Any]:
    """Return the comparison with the message that proves most.

    The messages are those in the status of the pods, and those that the scheduler logged meanwhile.
    """
    known_messages = {heard["message"] for heard in capture["heard"]}
    logged = [
        {"message": message, "waiting": [], "targets": []}
        for message in cache_dump.messages(lines)[-MAX_MESSAGES:]
        if message not in known_messages
    ]
    comparisons = [_compared(capture, dump, item) for item in [*capture["heard"], *logged]]
    return min(comparisons, key=lambda item: (ORDER.index(item["verdict"]), not item["targets"]))


def _compared(
    capture: Mapping[str, Any], dump: cache_dump.Dump, item: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the comparison of the cache with one message."""
    compared = cache_dump.compare(capture["nodes"], dump, item["message"], capture["faulty"])
    targets: list[str] = []
    sentence = compared.sentence
    if compared.verdict == cache_dump.SHORT and _is_elsewhere(item["message"]):
        targets = sorted(set(item["targets"]) & dump.names)[:MAX_NAMES]
    if targets:
        sentence += f"; in the cache, and waited for: {', '.join(targets)}"
    return {
        **vars(compared),
        "sentence": sentence,
        "targets": targets,
        "message": one_line(item["message"], 300),
        "waiting": item["waiting"][:MAX_NAMES],
    }


def _is_elsewhere(message: str) -> bool:
    """Return whether all reasons of a message are of nodes that the pod is not meant for.

    If one of them may be of the node itself, the scheduler may have tried that node.
    """
    return all(reason.kind in ELSEWHERE for reason in scheduling_message.parse(message).reasons)


def _level(capture: Mapping[str, Any], became: Became | None, run_id: str) -> str:
    """Return the clause about the level, empty where it was raised and restored."""
    if capture["former"] >= capture["level"]:
        return f"it has level {capture['former']} already"
    if became is None:
        return capture["level_reason"] or "it was not asked"
    if became.restored is False:
        trying = (
            "a service there goes on trying, or take it back" if became.trying else "take it back"
        )
        return f"NOT PUT BACK: {became.reason}; {trying} with {command_line.revert(run_id)}"
    return became.reason


def _dump(capture: Mapping[str, Any], dump: cache_dump.Dump) -> str:
    """Return why there is no whole dump, empty where there is one."""
    if capture["sent_reason"]:
        return str(capture["sent_reason"])
    if not capture["sent"]:
        is_known = capture["process_is"] not in ("", "ok")
        return str(capture["process_is"]) if is_known else "it was not begun"
    if dump.whole:
        return ""
    return "its log has no whole dump" if dump.found else "its log has none of it"
