# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds a cluster. Each control-plane node is asked for itself; a majority decides.

The answers lie in the run's report folder, one file a host. Whether the cluster is held is a pure
function of them, and every step asks it again, so that no play can go on without.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...module_utils.shared.journal_names import RUN_ID
from ..evidence import document as evidence
from ..safe_io import atomic_file as private_files

FOLDER = "locks"
INITIAL = 0xEFFFFFFC  # the inode of the kernel's first PID namespace: this is no container
_HEX = re.compile(r"[0-9a-f]{32}\Z")


@dataclass(frozen=True)
class Held:
    """What one node said of its lock."""

    host: str
    cluster: str | None
    status: str  # ok, unreachable or error, as of every question to a node
    held: bool = False
    by: str | None = None  # the run that holds it, ours or another
    reason: str = ""
    machine: str | None = None
    pid: int | None = None
    remaining: int | None = None
    working: str | None = None  # a run whose step is under way there, with or without a lock
    # whether it counts: a node that is only changed demands the lock of its own disk, and is no
    # part of the majority
    member: bool = True


def controller(pid: int) -> dict[str, Any]:
    """Who we are, for other controllers: `pid` is ansible-playbook's main process."""
    namespace = os.stat("/proc/self/ns/pid").st_ino
    # An image may bring its machine id into every container that is made of it: it names no machine
    # there.
    machine = _read("/etc/machine-id") if namespace == INITIAL else None
    boot = f"{_read('/proc/sys/kernel/random/boot_id')}/{namespace}"
    return {
        "machine_id": machine,
        "host": os.uname().nodename,
        "boot_id": boot,
        "pid": pid,
        "started": _started(pid),
    }


def gone(owner: Mapping[str, Any], me: Mapping[str, Any]) -> bool:
    """Whether the process that a lock names is known to have ended.

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
    """A host's or cluster's evidence whose lock holds nobody off where its process is known to
    have ended, or the operator takes it.
    """
    for name in ("journal", "work"):
        lock = ((document.get("collectors", {}).get(name) or {}).get("data") or {}).get("lock")
        if (
            isinstance(lock, dict)
            and lock.get("held")
            and (lock.get("run_id") == take or gone(lock.get("controller") or {}, me))
        ):
            lock["held"] = False
    return document


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None


def _started(pid: int) -> int | None:
    fields = (_read(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 else None


def note(report_dir: str, answer: Held) -> None:
    """Keep what a node said, for the decision."""
    folder = Path(report_dir) / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    private_files.replace(folder / evidence.file_name(answer.host), [json.dumps(answer.__dict__)])


def noted(report_dir: str) -> tuple[Held, ...]:
    """What every node said last; unreadable answers count as not held."""
    found = []
    for path in sorted((Path(report_dir) / FOLDER).glob("*.json")):
        try:
            found.append(Held(**json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, TypeError):
            found.append(Held(path.stem, None, "error", reason="its answer cannot be read"))
    return tuple(found)


def said(
    host: str,
    cluster: str | None,
    status: str,
    reason: str,
    answer: Mapping[str, Any],
    run_id: str,
    member: bool = True,
) -> Held:
    """A node's answer, every value of it checked.

    A node is not believed to write well-formed records.
    """
    if status != "ok":
        return Held(
            host,
            cluster,
            status,
            reason=evidence.one_line(reason, evidence.MAX_REASON),
            member=member,
        )
    raw = answer.get("lock")
    found: Mapping[str, Any] = raw if isinstance(raw, dict) else {}
    by = (
        found.get("run_id")
        if isinstance(found.get("run_id"), str) and RUN_ID.match(found["run_id"])
        else None
    )
    owner: dict[str, Any] = (
        dict(found["controller"]) if isinstance(found.get("controller"), dict) else {}
    )
    machine, pid, remaining = owner.get("machine_id"), owner.get("pid"), found.get("remaining")
    held = answer.get("held") is True and by == run_id
    working = (
        answer.get("working")
        if isinstance(answer.get("working"), str) and RUN_ID.match(answer["working"])
        else None
    )
    return Held(
        host,
        cluster,
        "ok",
        held,
        by,
        "" if held else evidence.one_line(answer.get("message") or ""),
        machine if isinstance(machine, str) and _HEX.match(machine) else None,
        pid if isinstance(pid, int) else None,
        (
            int(remaining)
            if isinstance(remaining, (int, float)) and math.isfinite(remaining)
            else None
        ),
        working,
        member,
    )


def decide(answers: Iterable[Held], run_id: str, cluster: str | None = None) -> tuple[bool, str]:
    """Whether this run holds the cluster, and one sentence.

    Who does, or what is known only in part.

    A majority of the control-plane nodes that are expected decides. Where too many of them cannot
    be reached for one, and nobody else holds any of the others, those others are enough: somebody
    who could lock the silent ones could not be stopped from here at all, and the steps that come
    here have guards of their own.

    cluster: whose nodes count; None where nobody knows which node is of which. Then no majority
    outweighs another run: they may be of two clusters.
    """
    asked = [item for item in answers if cluster is None or item.cluster in (None, cluster)]
    expected = [item for item in asked if item.member]
    mine = [item for item in expected if item.held]
    working = [item for item in asked if item.working]
    if working:
        return (
            False,
            (
                f"run {working[0].working} is still at work on {working[0].host}:"
                f" {working[0].reason}; let it end, and run again"
            ),
        )
    others = [item for item in expected if item.by not in (None, run_id) and not item.held]
    if 2 * len(mine) > len(expected) and not (others and cluster is None):
        return True, ""
    if others:
        return False, _held_by(others)
    silent = [item for item in expected if item.status == "unreachable"]
    if mine and len(mine) + len(silent) == len(expected):
        names = ", ".join(item.host for item in silent)
        return (
            True,
            (
                f"only {len(mine)} of {len(expected)} control-plane nodes are locked: {names}"
                " cannot be reached"
            ),
        )
    failed = [item for item in expected if not item.held]
    why = (
        "; ".join(f"{item.host}: {item.reason or 'not locked'}" for item in failed)
        or "no control-plane node was asked; Ansible says above why"
    )
    return (
        False,
        (
            f"the cluster could not be locked ({len(mine)} of {len(expected)} control-plane nodes):"
            f" {why}"
        ),
    )


def cluster_of(answers: Iterable[Held], host: str) -> str | None:
    """The cluster of a host that was asked for its lock, as its evidence has it."""
    return next((item.cluster for item in answers if item.host == host), None)


def holds(report_dir: str, run_id: str, host: str) -> tuple[bool, str]:
    """decide() for what is to be changed through this host."""
    answers = noted(report_dir)
    return decide(answers, run_id, cluster_of(answers, host))


def _held_by(others: list[Held]) -> str:
    first = max(others, key=lambda item: sum(item.by == other.by for other in others))
    names = ", ".join(item.host for item in others if item.by == first.by)
    owner = f"controller {first.machine or 'unknown'}, process {first.pid or 'unknown'}"
    left = f"for {first.remaining} s more" if first.remaining else "though its time is over"
    return (
        f"run {first.by} holds the cluster ({names}; {owner}; {left}): let it end, or take its lock"
        f" with -e kubemend_take_lock={first.by}"
    )
