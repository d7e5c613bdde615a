# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hosts say can be undone, which run of it is meant, and what became of it.

What each host said lies in `revert/` of the run's report folder, one file for the list and one for
what was done. It is untrusted: every value is checked here, and nothing of it becomes an Ansible
variable but run ids and inventory names.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...module_utils.shared.journal_names import RUN_ID
from ..evidence import document as evidence

FOLDER = "revert"
LISTED, DONE, BEGUN = ".json", ".done.json", ".begun"
STATES = ("restore", "already", "conflict", "kept", "interrupted", "undone")
RESULTS = ("restored", "already", "refused", "kept")
_SHA = re.compile(r"[0-9a-f]{64}\Z")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\Z")


@dataclass(frozen=True)
class File:
    """One file of a run on one host; state is what a revert would do, or what it did."""

    path: str
    state: str
    reason: str = ""
    component: str | None = None
    steps: tuple[str, ...] = ()
    # left by the run, former, present
    digests: tuple[str | None, str | None, str | None] = (None, None, None)


@dataclass(frozen=True)
class Undoable:
    """One run in the journal of one host."""

    run_id: str
    first: str | None
    last: str | None
    reverts: tuple[str, ...]
    files: tuple[File, ...]
    error: str = ""


@dataclass(frozen=True)
class Listing:
    """What one host says, or why it says nothing."""

    host: str
    status: str
    reason: str = ""
    runs: tuple[Undoable, ...] = ()
    truncated: bool = False
    busy: bool = False
    # of the run in question: what would be started again, and why it may not be
    guards: tuple[tuple[str, str], ...] = ()
    empty: tuple[str, ...] = ()  # runs that changed no file: a restart, say

    def of(self, run_id: str) -> Undoable | None:
        """Its part of a run."""
        return next((run for run in self.runs if run.run_id == run_id), None)


@dataclass(frozen=True)
class Done:
    """What became of a run on one host."""

    host: str
    state: str  # done, refused or failed
    reason: str = ""
    files: tuple[File, ...] = ()
    components: tuple[Mapping[str, Any], ...] = ()
    # what was refused is somebody else's bytes in a file: no reason to stop before other hosts
    alone: bool = False


@dataclass(frozen=True)
class Choice:
    """Which run is meant, on which hosts there is something of it, or one sentence why none is."""

    run_id: str | None
    hosts: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Report:
    """Everything that the report is made of."""

    listings: Sequence[Listing]
    wanted: str | None
    choice: Choice
    done: Sequence[Done] = ()
    check: bool = False
    not_asked: Sequence[str] = field(default_factory=tuple)
    stopped: str = ""  # why no host was begun though some were chosen


def listing(host: str, status: str, reason: str, answer: Any) -> Listing:
    """A host's answer, its shape not believed."""
    answer = answer if isinstance(answer, dict) else {}
    if status == "ok" and isinstance(answer.get("error"), str):
        status, reason = "error", answer["error"]
    if status != "ok":
        return Listing(host, status, evidence.one_line(reason, evidence.MAX_REASON))
    if not isinstance(answer.get("runs"), list):
        return Listing(host, "error", "its answer names no runs")
    runs = []
    for one in answer["runs"]:
        if (
            isinstance(one, dict)
            and isinstance(one.get("run_id"), str)
            and RUN_ID.match(one["run_id"])
        ):
            runs.append(
                Undoable(
                    one["run_id"],
                    _time(one.get("first")),
                    _time(one.get("last")),
                    tuple(
                        item
                        for item in _items(one.get("reverts"))
                        if isinstance(item, str) and RUN_ID.match(item)
                    ),
                    _files(one.get("paths"), "state", STATES),
                    evidence.one_line(one["error"]) if isinstance(one.get("error"), str) else "",
                )
            )
    guards = tuple(
        (evidence.one_line(one["component"], 60), evidence.one_line(one.get("refused") or "", 1000))
        for one in _items(answer.get("guards"))
        if isinstance(one, dict) and isinstance(one.get("component"), str)
    )
    return Listing(
        host,
        "ok",
        "",
        tuple(runs),
        answer.get("truncated") is True,
        answer.get("busy") is True,
        guards,
        tuple(
            item
            for item in _items(answer.get("empty"))
            if isinstance(item, str) and RUN_ID.match(item)
        ),
    )


def outcome(host: str, status: str, reason: str, answer: Any) -> Done:
    """What a host says became of it, its shape not believed."""
    if status == "unreachable":
        said = evidence.one_line(reason, evidence.MAX_REASON)
        return Done(
            host,
            "failed",
            f"it was lost while it was under way ({said}): list again to see what became of it",
        )
    answer = answer if isinstance(answer, dict) else {}
    if status != "ok":
        return Done(host, "failed", evidence.one_line(reason, evidence.MAX_REASON))
    if not isinstance(answer.get("paths"), list) or not isinstance(answer.get("components"), list):
        return Done(
            host, "failed", "its answer names no files; list again to see what became of it"
        )
    files = _files(answer["paths"], "result", RESULTS)
    components = tuple(
        {
            "component": evidence.one_line(one["component"], 60),
            "proven": one.get("proven") if isinstance(one.get("proven"), bool) else None,
            "reason": evidence.one_line(one.get("reason") or "", 1000),
        }
        for one in answer["components"]
        if isinstance(one, dict) and isinstance(one.get("component"), str)
    )
    error = evidence.one_line(answer["error"], 1000) if isinstance(answer.get("error"), str) else ""
    down = next((str(one["reason"]) for one in components if one["proven"] is False), "")
    refused = next(
        (
            item.reason or f"{item.path} was not changed, and nobody said why"
            for item in files
            if item.state == "refused"
        ),
        "",
    )
    if error or down or len(files) < len(answer["paths"]):
        state = "failed" if answer.get("changed") is True or down else "refused"
        return Done(
            host,
            state,
            error or down or "its answer cannot be read; list again to see what became of it",
            files,
            components,
        )
    theirs = all(
        one.get("state") == "conflict" for one in answer["paths"] if one["result"] == "refused"
    )
    return Done(
        host, "refused" if refused else "done", refused, files, components, bool(refused) and theirs
    )


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _time(value: Any) -> str | None:
    return value if isinstance(value, str) and _TIME.match(value) else None


def _files(value: Any, key: str, allowed: tuple[str, ...]) -> tuple[File, ...]:
    found = []
    for one in _items(value):
        if isinstance(one, dict) and isinstance(one.get("path"), str) and one.get(key) in allowed:
            left, former, present = (
                one.get(name) for name in ("sha256_left", "sha256_former", "sha256_present")
            )
            digests = tuple(
                item if isinstance(item, str) and _SHA.match(item) else None
                for item in (left, former, present)
            )
            found.append(
                File(
                    evidence.one_line(one["path"]),
                    one[key],
                    evidence.one_line(one.get("reason") or "", 1000),
                    (
                        evidence.one_line(one["component"], 60)
                        if isinstance(one.get("component"), str)
                        else None
                    ),
                    tuple(
                        evidence.one_line(step, 120)
                        for step in _items(one.get("steps"))
                        if isinstance(step, str)
                    ),
                    (digests[0], digests[1], digests[2]),
                )
            )
    return tuple(found)


def choose(listings: Iterable[Listing], wanted: str | None) -> Choice:
    """Which run is undone, and where.

    `last` is the newest that has something to restore and is not itself a revert.
    """
    listings = list(listings)
    known = sorted({run.run_id for item in listings for run in item.runs}, reverse=True)
    if wanted is None:
        return Choice(None)
    silent = sorted(item.host for item in listings if item.status != "ok")
    missing = f"; {', '.join(silent)} could not be asked" if silent else ""
    if wanted == "last":
        able = [
            run.run_id
            for item in listings
            for run in item.runs
            if not run.reverts and any(file.state == "restore" for file in run.files)
        ]
        if not able:
            return Choice(
                None,
                problem="kubemend_run_id=last: no run on these hosts has anything left to restore"
                + missing,
            )
        if silent:
            return Choice(
                None,
                problem=(
                    f"kubemend_run_id=last: {', '.join(silent)} could not be asked, where the"
                    " newest run may have been; name the run by its id, or make them answer"
                ),
            )
        wanted = max(able)
    elif wanted not in known and any(wanted in item.empty for item in listings):
        where = ", ".join(item.host for item in listings if wanted in item.empty)
        return Choice(
            wanted,
            problem=(
                f"there is nothing to revert of run {wanted}: it changed no file on {where}, such"
                f" as a restart{missing}"
            ),
        )
    elif wanted not in known:
        names = f"the known ones are {', '.join(known[:10])}" if known else "none is known"
        return Choice(
            wanted, problem=f"no journal of these hosts knows run {wanted} ({names}){missing}"
        )
    return Choice(wanted, tuple(item.host for item in listings if item.of(wanted)))


def components(listings: Iterable[Listing], run_id: str | None) -> dict[str, int]:
    """How many components the run has to wait for at most, by host."""
    found = {}
    for item in listings:
        run = item.of(run_id) if run_id else None
        if run:
            found[item.host] = len({file.component or file.path for file in run.files})
    return found


def verdict(report: Report) -> tuple[str, str]:
    """(exit reason, one sentence).

    Ok and an empty one where everything that was asked for is done.
    """
    if report.choice.problem:
        return "input", report.choice.problem
    if report.check or not report.choice.hosts:
        return "ok", ""
    if report.stopped:
        return "locked", report.stopped
    bad = next((item for item in report.done if item.state != "done"), None)
    if bad:
        return (
            bad.state,
            f"the revert of run {report.choice.run_id} on {bad.host} is {bad.state}: {bad.reason}",
        )
    left = [host for host in report.choice.hosts if host not in {item.host for item in report.done}]
    if left:
        return "failed", f"run {report.choice.run_id} was not taken back on {', '.join(left)}"
    silent = sorted(item.host for item in report.listings if item.status != "ok")
    if silent:
        return (
            "failed",
            (
                f"run {report.choice.run_id} was taken back where hosts answered;"
                f" {', '.join(silent)} could not be asked: run it again then"
            ),
        )
    return "ok", ""


def write(folder: str, host: str, suffix: str, document: Mapping[str, Any]) -> None:
    """One host's answer as it came, for its owner's eyes."""
    where = Path(folder) / FOLDER
    where.mkdir(mode=0o700, exist_ok=True)
    path = where / evidence.file_name(host, suffix)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open(
        os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _read(folder: str, host: str, suffix: str) -> dict[str, Any] | None:
    path = Path(folder) / FOLDER / evidence.file_name(host, suffix)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        return {
            "status": "error",
            "reason": f"{path} cannot be read ({evidence.one_line(error)})",
            "answer": {},
        }
    return (
        found
        if isinstance(found, dict)
        else {"status": "error", "reason": f"{path} is no answer", "answer": {}}
    )


def listings(folder: str, hosts: Iterable[str]) -> tuple[tuple[Listing, ...], tuple[str, ...]]:
    """What these hosts said, and which of them were not asked."""
    found, missing = [], []
    for host in hosts:
        one = _read(folder, host, LISTED)
        if one is None:
            missing.append(host)
        else:
            found.append(
                listing(host, str(one.get("status")), str(one.get("reason")), one.get("answer"))
            )
    return tuple(found), tuple(missing)


def outcomes(folder: str, hosts: Iterable[str]) -> tuple[Done, ...]:
    """What became of it on these hosts; one that was begun and never ended is failed."""
    found = []
    for host in hosts:
        one = _read(folder, host, DONE)
        if one is not None:
            found.append(
                outcome(host, str(one.get("status")), str(one.get("reason")), one.get("answer"))
            )
        elif _read(folder, host, BEGUN) is not None:
            found.append(
                Done(
                    host,
                    "failed",
                    "it was begun and never ended; list again to see what became of it",
                )
            )
    return tuple(found)
