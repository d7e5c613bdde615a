# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decision of a revert: which runs hosts can revert, which one is meant, and the results.

The answers of each host are in `revert/` of the run's report directory, one file for the list and
one for the results. They are untrusted: every value is checked here, and nothing of them becomes an
Ansible variable but run ids and inventory names.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...module_utils.shared.journal_names import RUN_ID
from ..evidence.document import MAX_REASON, file_name, one_line

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
    """The answer of one host, or the reason why there is none."""

    host: str
    status: str
    reason: str = ""
    runs: tuple[Undoable, ...] = ()
    truncated: bool = False
    busy: bool = False
    # of the run in question: what would be started again, and why it may not be
    guards: tuple[tuple[str, str], ...] = ()
    empty: tuple[str, ...] = ()  # runs that changed no file: a restart, say

    def find_run(self, run_id: str) -> Undoable | None:
        """Return this host's part of a run."""
        return next((run for run in self.runs if run.run_id == run_id), None)


@dataclass(frozen=True)
class Done:
    """The result of a revert on one host."""

    host: str
    state: str  # done, refused or failed
    reason: str = ""
    files: tuple[File, ...] = ()
    components: tuple[Mapping[str, Any], ...] = ()
    # what was refused is foreign content of a file: no reason to stop before other hosts
    alone: bool = False


@dataclass(frozen=True)
class Choice:
    """The run that is meant, the hosts that have part of it, or one sentence why there is none."""

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
    stopped: str = ""  # the reason why none of the chosen hosts was begun


def listing(host: str, status: str, reason: str, answer: Any) -> Listing:
    """Return a host's answer with its shape checked."""
    if not isinstance(answer, dict):
        answer = {}
    if status == "ok" and isinstance(answer.get("error"), str):
        status, reason = "error", answer["error"]
    if status != "ok":
        return Listing(host, status, one_line(reason, MAX_REASON))
    if not isinstance(answer.get("runs"), list):
        return Listing(host, "error", "its answer names no runs")
    return Listing(
        host,
        "ok",
        "",
        tuple(_undoable(run) for run in answer["runs"] if _is_run(run)),
        answer.get("truncated") is True,
        answer.get("busy") is True,
        tuple(
            (one_line(guard["component"], 60), one_line(guard.get("refused") or "", 1000))
            for guard in _items(answer.get("guards"))
            if _has_component(guard)
        ),
        _run_ids(answer.get("empty")),
    )


def _is_run(run: Any) -> bool:
    return isinstance(run, dict) and _is_run_id(run.get("run_id"))


def _is_run_id(value: Any) -> bool:
    return isinstance(value, str) and bool(RUN_ID.match(value))


def _run_ids(value: Any) -> tuple[str, ...]:
    return tuple(item for item in _items(value) if _is_run_id(item))


def _has_component(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("component"), str)


def _undoable(run: Mapping[str, Any]) -> Undoable:
    return Undoable(
        run["run_id"],
        _time(run.get("first")),
        _time(run.get("last")),
        _run_ids(run.get("reverts")),
        _files(run.get("paths"), "state", STATES),
        _error(run, 300),
    )


def _error(record: Mapping[str, Any], length: int) -> str:
    if isinstance(record.get("error"), str):
        return one_line(record["error"], length)
    return ""


def outcome(host: str, status: str, reason: str, answer: Any) -> Done:
    """Return the result of a revert on a host, with the shape of its answer checked."""
    if status == "unreachable":
        message = one_line(reason, MAX_REASON)
        return Done(
            host,
            "failed",
            f"it was lost while it was under way ({message}): list again to see what became of it",
        )
    if not isinstance(answer, dict):
        answer = {}
    if status != "ok":
        return Done(host, "failed", one_line(reason, MAX_REASON))
    if not isinstance(answer.get("paths"), list) or not isinstance(answer.get("components"), list):
        return Done(
            host, "failed", "its answer names no files; list again to see what became of it"
        )
    files = _files(answer["paths"], "result", RESULTS)
    components = tuple(
        _component(record) for record in answer["components"] if _has_component(record)
    )
    return _result(host, answer, files, components)


def _component(record: Mapping[str, Any]) -> dict[str, Any]:
    proven = record.get("proven")
    if not isinstance(proven, bool):
        proven = None
    return {
        "component": one_line(record["component"], 60),
        "proven": proven,
        "reason": one_line(record.get("reason") or "", 1000),
    }


def _result(
    host: str,
    answer: Mapping[str, Any],
    files: tuple[File, ...],
    components: tuple[Mapping[str, Any], ...],
) -> Done:
    error, down = _error(answer, 1000), _down(components)
    if error or down or len(files) < len(answer["paths"]):
        state = "refused"
        if answer.get("changed") is True or down:
            state = "failed"
        reason = error or down or "its answer cannot be read; list again to see what became of it"
        return Done(host, state, reason, files, components)
    refused = _refused(files)
    if not refused:
        return Done(host, "done", "", files, components)
    foreign = all(
        path.get("state") == "conflict" for path in answer["paths"] if path["result"] == "refused"
    )
    return Done(host, "refused", refused, files, components, foreign)


def _down(components: Iterable[Mapping[str, Any]]) -> str:
    """Return the reason of the first component that does not run."""
    reasons = (str(component["reason"]) for component in components if component["proven"] is False)
    return next(reasons, "")


def _refused(files: Iterable[File]) -> str:
    """Return the reason of the first file that was not changed."""
    for file in files:
        if file.state == "refused":
            return file.reason or f"{file.path} was not changed, for a reason that is not known"
    return ""


def _items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return []


def _time(value: Any) -> str | None:
    if isinstance(value, str) and _TIME.match(value):
        return value
    return None


def _files(value: Any, key: str, allowed: tuple[str, ...]) -> tuple[File, ...]:
    return tuple(
        _file(record, record[key]) for record in _items(value) if _is_file(record, key, allowed)
    )


def _is_file(record: Any, key: str, allowed: tuple[str, ...]) -> bool:
    if not isinstance(record, dict):
        return False
    return isinstance(record.get("path"), str) and record.get(key) in allowed


def _file(record: Mapping[str, Any], state: str) -> File:
    component = None
    if _has_component(record):
        component = one_line(record["component"], 60)
    return File(
        one_line(record["path"]),
        state,
        one_line(record.get("reason") or "", 1000),
        component,
        tuple(one_line(step, 120) for step in _items(record.get("steps")) if isinstance(step, str)),
        (
            _digest(record.get("sha256_left")),
            _digest(record.get("sha256_former")),
            _digest(record.get("sha256_present")),
        ),
    )


def _digest(value: Any) -> str | None:
    if isinstance(value, str) and _SHA.match(value):
        return value
    return None


def choose(listings: Iterable[Listing], requested_run: str | None) -> Choice:
    """Return which run is reverted, and on which hosts.

    `last` is the newest that has something to restore and is not itself a revert.
    """
    if requested_run is None:
        return Choice(None)
    listings = list(listings)
    silent = sorted(listing.host for listing in listings if listing.status != "ok")
    missing = ""
    if silent:
        missing = f"; {', '.join(silent)} could not be asked"
    if requested_run == "last":
        return _choose_last(listings, silent, missing)
    hosts = tuple(listing.host for listing in listings if listing.find_run(requested_run))
    if hosts:
        return Choice(requested_run, hosts)
    unchanged = ", ".join(listing.host for listing in listings if requested_run in listing.empty)
    if unchanged:
        return Choice(
            requested_run,
            problem=(
                f"there is nothing to revert of run {requested_run}: it changed no file on"
                f" {unchanged}, such as a restart{missing}"
            ),
        )
    known_runs = _known(listings)
    return Choice(
        requested_run,
        problem=f"no journal of these hosts knows run {requested_run} ({known_runs}){missing}",
    )


def _choose_last(listings: list[Listing], silent: list[str], missing: str) -> Choice:
    if silent and len(silent) == len(listings):
        return Choice(
            None,
            problem=f"kubemend_run_id=last: {', '.join(silent)} could not be asked, so it is not"
            " known which run is the last",
        )
    able = [run.run_id for run in _runs(listings) if _can_restore(run)]
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
    newest = max(able)
    return Choice(newest, tuple(listing.host for listing in listings if listing.find_run(newest)))


def _runs(listings: Iterable[Listing]) -> Iterator[Undoable]:
    for listing in listings:
        yield from listing.runs


def _can_restore(run: Undoable) -> bool:
    return not run.reverts and any(file.state == "restore" for file in run.files)


def _known(listings: Iterable[Listing]) -> str:
    known_runs = sorted({run.run_id for run in _runs(listings)}, reverse=True)
    if not known_runs:
        return "none is known"
    return f"the known ones are {', '.join(known_runs[:10])}"


def components(listings: Iterable[Listing], run_id: str | None) -> dict[str, int]:
    """Return for how many components the run has to wait at most, by host."""
    if not run_id:
        return {}
    counts = {}
    for listing in listings:
        run = listing.find_run(run_id)
        if run:
            counts[listing.host] = len({file.component or file.path for file in run.files})
    return counts


def verdict(report: Report) -> tuple[str, str]:
    """Return (exit reason, one sentence).

    Ok and an empty one where everything that was asked for is done.
    """
    choice = report.choice
    if choice.problem:
        return "input", choice.problem
    if report.check or not choice.hosts:
        return "ok", ""
    if report.stopped:
        return "locked", report.stopped
    for result in report.done:
        if result.state != "done":
            return result.state, (
                f"the revert of run {choice.run_id} on {result.host} is {result.state}:"
                f" {result.reason}"
            )
    return _incomplete(report)


def _incomplete(report: Report) -> tuple[str, str]:
    """Return the verdict of a revert that did not fail on any host: some may be missing."""
    run_id, done = report.choice.run_id, {result.host for result in report.done}
    remaining = [host for host in report.choice.hosts if host not in done]
    if remaining:
        return "failed", f"run {run_id} was not taken back on {', '.join(remaining)}"
    silent = sorted(listing.host for listing in report.listings if listing.status != "ok")
    if silent:
        return "failed", (
            f"run {run_id} was taken back where hosts answered; {', '.join(silent)} could not be"
            " asked: run it again then"
        )
    return "ok", ""


def write(folder: str, host: str, suffix: str, document: Mapping[str, Any]) -> None:
    """Write one host's answer as it came, readable for its owner only."""
    directory = Path(folder) / FOLDER
    directory.mkdir(mode=0o700, exist_ok=True)
    path = directory / file_name(host, suffix)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _read(folder: str, host: str, suffix: str) -> dict[str, Any] | None:
    path = Path(folder) / FOLDER / file_name(host, suffix)
    try:
        answer = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        return _unreadable(f"{path} cannot be read ({one_line(error)})")
    if not isinstance(answer, dict):
        return _unreadable(f"{path} is no answer")
    return answer


def _unreadable(reason: str) -> dict[str, Any]:
    return {"status": "error", "reason": reason, "answer": {}}


def listings(folder: str, hosts: Iterable[str]) -> tuple[tuple[Listing, ...], tuple[str, ...]]:
    """Return the answers of these hosts, and which of them were not asked."""
    answered, missing = [], []
    for host in hosts:
        record = _read(folder, host, LISTED)
        if record is None:
            missing.append(host)
        else:
            answered.append(listing(*_arguments(host, record)))
    return tuple(answered), tuple(missing)


def _arguments(host: str, record: Mapping[str, Any]) -> tuple[str, str, str, Any]:
    return host, str(record.get("status")), str(record.get("reason")), record.get("answer")


def outcomes(folder: str, hosts: Iterable[str]) -> tuple[Done, ...]:
    """Return the results on these hosts; one that was begun and never ended is failed."""
    results = []
    for host in hosts:
        record = _read(folder, host, DONE)
        if record is not None:
            results.append(outcome(*_arguments(host, record)))
        elif _read(folder, host, BEGUN) is not None:
            reason = "it was begun and never ended; list again to see what became of it"
            results.append(Done(host, "failed", reason))
    return tuple(results)
