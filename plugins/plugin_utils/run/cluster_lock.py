# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a cluster: each control-plane node is queried for itself; a majority decides.

The answers are in the run's report directory, one file a host. Whether the cluster is locked is a
pure function of them, and every step evaluates it again, so that no play can go on without.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...module_utils.shared.journal_names import RUN_ID
from ..evidence.document import MAX_REASON, file_name, one_line
from ..safe_io import atomic_file

FOLDER = "locks"
INITIAL = 0xEFFFFFFC  # the inode of the kernel's first PID namespace: this is no container
_HEX = re.compile(r"[0-9a-f]{32}\Z")


@dataclass(frozen=True)
class Held:
    """The answer of one node about its lock."""

    host: str
    cluster: str | None
    status: str  # ok, unreachable or error, as of every question to a node
    held: bool = False
    by: str | None = None  # the run that holds it, this one or another
    reason: str = ""
    machine: str | None = None
    pid: int | None = None
    remaining: int | None = None
    working: str | None = None  # a run whose step is running there, with or without a lock
    # whether it counts: a node that is only changed requires the lock of its own disk, and is no
    # part of the majority
    member: bool = True


def controller(pid: int) -> dict[str, Any]:
    """Return the identity of this controller.

    pid: ansible-playbook's main process
    """
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    machine = None
    if namespace == INITIAL:
        # An image may bring its machine id into every container that is made of it: it names no
        # machine there.
        machine = _read("/etc/machine-id")
    boot = f"{_read('/proc/sys/kernel/random/boot_id')}/{namespace}"
    return {
        "machine_id": machine,
        "host": os.uname().nodename,
        "boot_id": boot,
        "pid": pid,
        "started": _started(pid),
    }


def gone(owner: Mapping[str, Any], me: Mapping[str, Any]) -> bool:
    """Tell whether the process that a lock names is known to have ended.

    It was one of this machine, where it can be looked for.
    """
    if owner.get("boot_id") and owner.get("boot_id") == me["boot_id"]:
        pid = owner.get("pid")
        return not isinstance(pid, int) or _started(pid) != owner.get("started")
    # Before the last boot of this very machine. Machines that were cloned may share the id, rarely
    # the name too.
    return bool(owner.get("machine_id")) and all(
        owner.get(name) == me[name] for name in ("machine_id", "host")
    )


def without_gone(
    document: dict[str, Any], me: Mapping[str, Any], take: str | None = None
) -> dict[str, Any]:
    """Release the locks of evidence whose process has ended, or which the operator takes."""
    for name in ("journal", "work"):
        answer = document.get("collectors", {}).get(name) or {}
        lock = (answer.get("data") or {}).get("lock")
        if not isinstance(lock, dict) or not lock.get("held"):
            continue
        if lock.get("run_id") == take or gone(lock.get("controller") or {}, me):
            lock["held"] = False
    return document


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None


def _started(pid: int) -> int | None:
    fields = (_read(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    if len(fields) > 19:
        return int(fields[19])
    return None


def note(report_dir: str, answer: Held) -> None:
    """Keep the answer of a node for the decision."""
    folder = Path(report_dir) / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    atomic_file.replace(folder / file_name(answer.host), [json.dumps(answer.__dict__)])


def noted(report_dir: str) -> tuple[Held, ...]:
    """Return the last answer of every node; unreadable answers count as not held."""
    answers = []
    for path in sorted((Path(report_dir) / FOLDER).glob("*.json")):
        try:
            answers.append(Held(**json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, TypeError):
            answers.append(Held(path.stem, None, "error", reason="its answer cannot be read"))
    return tuple(answers)


def parse_answer(  # noqa: PLR0913, PLR0917  (the columns of one answer)
    host: str,
    cluster: str | None,
    status: str,
    reason: str,
    answer: Mapping[str, Any],
    run_id: str,
    member: bool = True,
) -> Held:
    """Return a node's answer with every value checked, because records may be malformed."""
    if status != "ok":
        return Held(host, cluster, status, reason=one_line(reason, MAX_REASON), member=member)
    lock = _mapping(answer.get("lock"))
    owner, by = _mapping(lock.get("controller")), _run_id(lock.get("run_id"))
    has_lock, message = answer.get("held") is True and by == run_id, ""
    if not has_lock:
        message = one_line(answer.get("message") or "")
    return Held(
        host,
        cluster,
        "ok",
        has_lock,
        by,
        message,
        _machine_id(owner.get("machine_id")),
        _process_id(owner.get("pid")),
        _seconds(lock.get("remaining")),
        _run_id(answer.get("working")),
        member,
    )


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {}


def _run_id(value: Any) -> str | None:
    if isinstance(value, str) and RUN_ID.match(value):
        return value
    return None


def _machine_id(value: Any) -> str | None:
    if isinstance(value, str) and _HEX.match(value):
        return value
    return None


def _process_id(value: Any) -> int | None:
    if isinstance(value, int):
        return value
    return None


def _seconds(value: Any) -> int | None:
    if isinstance(value, (int, float)) and math.isfinite(value):
        return int(value)
    return None


def decide(answers: Iterable[Held], run_id: str, cluster: str | None = None) -> tuple[bool, str]:
    """Return whether this run holds the cluster, and a sentence: who does, or what is not known.

    A majority of the control-plane nodes that are expected decides. Where too many of them cannot
    be reached for one, and no other run holds any of the others, those others are enough: a run
    that could lock the silent ones could not be stopped from here at all, and the steps of this run
    have preconditions of their own.

    cluster: its nodes count; None where it is not known which node is of which. Then no majority
    outweighs another run: they may be of two clusters.
    """
    cluster_answers = [answer for answer in answers if _is_of(answer, cluster)]
    working = next((answer for answer in cluster_answers if answer.working), None)
    if working:
        return False, (
            f"run {working.working} is still at work on {working.host}:"
            f" {working.reason}; let it end, and run again"
        )
    expected = [answer for answer in cluster_answers if answer.member]
    locked = sum(answer.held for answer in expected)
    other_holders = _other_holders(expected, run_id)
    if other_holders and (cluster is None or 2 * locked <= len(expected)):
        return False, _held_by(other_holders)
    if 2 * locked > len(expected):
        return True, ""
    return _without_majority(expected, locked)


def _is_of(answer: Held, cluster: str | None) -> bool:
    return cluster is None or answer.cluster in (None, cluster)


def _other_holders(answers: list[Held], run_id: str) -> list[Held]:
    """Return the answers that name another run."""
    return [answer for answer in answers if not answer.held and answer.by not in (None, run_id)]


def _without_majority(expected: list[Held], locked: int) -> tuple[bool, str]:
    """Decide where less than a majority is locked, and by no other run."""
    silent = [answer.host for answer in expected if answer.status == "unreachable"]
    if locked and locked + len(silent) == len(expected):
        return True, (
            f"only {locked} of {len(expected)} control-plane nodes are locked: {', '.join(silent)}"
            " cannot be reached"
        )
    reasons = [
        f"{answer.host}: {answer.reason or 'not locked'}" for answer in expected if not answer.held
    ]
    reason = "; ".join(reasons) or "no control-plane node was asked; Ansible says above why"
    return False, (
        f"the cluster could not be locked ({locked} of {len(expected)} control-plane nodes):"
        f" {reason}"
    )


def cluster_of(answers: Iterable[Held], host: str) -> str | None:
    """Return the cluster of a host that was asked for its lock, as its evidence has it."""
    return next((answer.cluster for answer in answers if answer.host == host), None)


def holds(report_dir: str, run_id: str, host: str) -> tuple[bool, str]:
    """Decide for what is to be changed through this host."""
    answers = noted(report_dir)
    return decide(answers, run_id, cluster_of(answers, host))


def _held_by(holders: list[Held]) -> str:
    """Return who holds the cluster: the run with the most nodes."""
    runs = Counter(answer.by for answer in holders)
    first = max(holders, key=lambda answer: runs[answer.by])
    names = ", ".join(answer.host for answer in holders if answer.by == first.by)
    owner = f"controller {first.machine or 'unknown'}, process {first.pid or 'unknown'}"
    remaining = "though its time is over"
    if first.remaining:
        remaining = f"for {first.remaining} s more"
    return (
        f"run {first.by} holds the cluster ({names}; {owner}; {remaining}): let it end, or take its"
        f" lock with -e kubemend_take_lock={first.by}"
    )
