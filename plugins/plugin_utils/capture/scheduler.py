# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The capture of pods_stay_pending.

Whose scheduler leads and may be asked for its cache, and what came of it.

Pure, from evidence and from what was captured; the files are the action's. Whatever does not work
is a note: the diagnosis stands without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...module_utils.shared.klog_verbosity import of_argv
from ..evidence.document import one_line
from ..faults.control_plane import leader_election as election
from ..faults.control_plane import leader_lease as leading
from ..faults.scheduling import lost_nodes as scheduling_tree
from ..models.cluster import Cluster, Host
from ..models.control_plane import Process
from ..models.scheduling import cache_dump, node_tree
from ..models.scheduling import message as scheduling_reasons
from .outcome import Became
from .plan import REVERT, SCHEDULER, Plan, Target

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
    """Why nothing is captured of a cluster, as a clause."""


def choose(
    found: Iterable[Cluster], level: int, digits: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """(what is captured of each cluster's leading scheduler, a note for each cluster of which
    nothing is).
    """
    captures, notes = [], []
    for cluster in found:
        if cluster.key is None:
            continue
        try:
            entries = _entries(cluster)
            host, process = _leader(cluster, {str(entry.get("scheduler")) for entry in entries})
            captures.append(_capture(cluster, host, process, entries, level, digits))
        except _No as why:
            notes.append(
                f"kubemend_capture: nothing is captured of cluster {cluster.key[:digits]}, because"
                f" {why}"
            )
    if not captures and not notes:
        notes.append(
            "kubemend_capture: nothing is captured, because no host proved to which cluster it"
            " belongs"
        )
    return captures, notes


def _entries(cluster: Cluster) -> list[Mapping[str, Any]]:
    if cluster.missing("pending"):
        raise _No(
            "its API does not say which pods wait"
            f" ({one_line(cluster.api_reason or cluster.api_status)})"
        )
    entries = [
        entry
        for entry in cluster.rows("pending", "items")
        if scheduling_reasons.parse(entry.get("message")).nodes is not None
    ]
    if not entries:
        raise _No("no pod waits there of which a scheduler says on how many nodes it tried it")
    return entries


def _leader(cluster: Cluster, wanted: set[str]) -> tuple[Host, Process]:
    """The one process that placed these pods, proven; nobody else is ever sent anything."""
    running = [
        (host, item)
        for host in cluster.hosts
        if host.status == "ok" and host.control_plane
        for item in host.control_plane.of(SCHEDULER)
        if election.scheduler_names(item) & wanted
    ]
    if not running:
        raise _No(f"no {SCHEDULER} that serves them was found on its hosts")
    if len(running) > 1 or running[0][1].elect is not False:
        lock, running = leading.holding(cluster, running, SCHEDULER)
        if lock is None:
            raise _No(
                "nobody is seen to renew the schedulers' lock, so that it is not known who leads"
            )
        if len(running) != 1:
            what = "several schedulers" if running else "no scheduler"
            raise _No(
                f"the lock is held by {one_line(lock.get('holder'), 120)}, which is {what} of these"
                " hosts"
            )
    host, process = running[0]
    if not process.static:
        raise _No(
            f"{SCHEDULER} of {host.host} is no static pod, so that its log is not read here: send"
            f" SIGUSR2 to it (pid {process.pid}) by hand"
        )
    if process.version is None or process.version < SINCE:
        raise _No(
            f"the version of {SCHEDULER} of {host.host} is"
            f" {'not known' if process.version is None else one_line(process.release, 80)}, and"
            f" only of {SINCE[0]}.{SINCE[1]} and newer is it known that SIGUSR2 makes it dump its"
            " cache, and does not end it"
        )
    return host, process


def _capture(
    cluster: Cluster,
    host: Host,
    process: Process,
    entries: Iterable[Mapping[str, Any]],
    level: int,
    digits: int,
) -> dict[str, Any]:
    nodes = (
        None
        if cluster.missing("nodes") or cluster.cut("nodes")
        else sorted(str(item.get("name")) for item in cluster.rows("nodes", "items"))
    )
    heard: dict[str, dict[str, Any]] = {}
    for entry in entries:
        one = heard.setdefault(
            str(entry["message"]), {"message": str(entry["message"]), "waiting": [], "targets": []}
        )
        one["waiting"] += [f"{entry.get('namespace')}/{name}" for name in entry.get("names") or ()]
        one["targets"] += [target for _pod, target in scheduling_tree.targets(entry, nodes or ())]
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
    """The levels that can be raised, as the machinery of capture_logs has them."""
    captures = list(captures)
    targets = tuple(
        Target(
            one["host"],
            one["host"],
            SCHEDULER,
            f"level:{SCHEDULER}",
            one["former"],
            one["level"],
            one["node"],
        )
        for one in captures
        if one["offered"] == "offered" and one["former"] < one["level"]
    )
    return Plan(
        run_id,
        seconds,
        max((one["level"] for one in captures), default=0),
        (SCHEDULER,),
        targets,
        logging={one["host"]: (SCHEDULER,) for one in captures},
        begun=begun,
    )


def wish(one: Mapping[str, Any], seconds: int) -> str:
    """What will be done to a leader, or would be."""
    raised = (
        f"the log level of {SCHEDULER} of {one['host']} {one['former']} -> {one['level']} for"
        f" {seconds} s, where that needs no restart"
    )
    stays = f"the log level of {SCHEDULER} of {one['host']} stays at {one['former']}"
    return (
        f"{raised if one['former'] < one['level'] else stays}; SIGUSR2 to it (pid"
        f" {one['process']['pid']}), which leads and then logs its cache"
    )


def result(
    one: Mapping[str, Any],
    became: Became | None,
    lines: list[str],
    run_id: str,
    files: Mapping[str, str],
) -> dict[str, Any]:
    """What a capture came to, for the report.

    Additive in report.json as an item of scheduler_capture.
    """
    dump = cache_dump.parse(lines)
    found = _telling(one, dump, lines)
    return {
        "cluster": one["cluster"],
        "host": one["host"],
        "node": one["node"],
        "pid": one["process"]["pid"],
        "version": one["version"],
        "level": {
            "former": one["former"],
            "level": one["level"],
            "raised": bool(became and became.raised),
            "restored": became.restored if became else None,
            "reason": _level(one, became, run_id),
        },
        "dump": {"taken": dump.found, "whole": dump.whole, "reason": _dump(one, dump)},
        "nodes": {
            name: found[name]
            for name in ("api", "cached", "counted", "reasons", "not_cached", "only_cached")
        },
        "verdict": found["verdict"],
        "sentence": found["sentence"],
        "targets": found["targets"],
        "message": found["message"],
        "waiting": found["waiting"],
        "queue": len(dump.queue),
        "mismatch": [one_line(line, 300) for line in dump.mismatch[:MAX_NAMES]],
        "files": dict(files),
    }


def _telling(one: Mapping[str, Any], dump: cache_dump.Dump, lines: list[str]) -> dict[str, Any]:
    """The comparison with the message that proves most.

    Those that stand in the pods, and those that were logged meanwhile.
    """
    known = {heard["message"] for heard in one["heard"]}
    heard = [
        *one["heard"],
        *(
            {"message": said, "waiting": [], "targets": []}
            for said in cache_dump.messages(lines)[-MAX_MESSAGES:]
            if said not in known
        ),
    ]
    found = []
    for item in heard:
        compared = cache_dump.compare(one["nodes"], dump, item["message"], one["faulty"])
        # Where anything that it says may be of the node itself, that node may be one that it tried.
        elsewhere = all(
            reason.kind in ELSEWHERE for reason in scheduling_reasons.parse(item["message"]).reasons
        )
        named = (
            sorted(set(item["targets"]) & dump.names)[:MAX_NAMES]
            if compared.verdict == cache_dump.SHORT and elsewhere
            else []
        )
        more = f"; in the cache, and waited for: {', '.join(named)}" if named else ""
        found.append(
            {
                **vars(compared),
                "sentence": compared.sentence + more,
                "targets": named,
                "message": one_line(item["message"], 300),
                "waiting": item["waiting"][:MAX_NAMES],
            }
        )
    return min(found, key=lambda item: (ORDER.index(item["verdict"]), not item["targets"]))


def _level(one: Mapping[str, Any], became: Became | None, run_id: str) -> str:
    """Empty where it was raised and put back."""
    if one["former"] >= one["level"]:
        return f"it has level {one['former']} already"
    if became is None:
        return one["level_reason"] or "it was not asked"
    if became.restored is False:
        trying = (
            "a service there goes on trying, or take it back" if became.trying else "take it back"
        )
        return f"NOT PUT BACK: {became.reason}; {trying} with {REVERT}{run_id}"
    return became.reason


def _dump(one: Mapping[str, Any], dump: cache_dump.Dump) -> str:
    if one["sent_reason"] or not one["sent"]:
        return (
            one["sent_reason"]
            or (one["process_is"] if one["process_is"] != "ok" else "")
            or "it was not begun"
        )
    return (
        ""
        if dump.whole
        else "its log has no whole dump"
        if dump.found
        else "its log has none of it"
    )
