# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be reverted, or was, in plain text. Every line is escaped: nodes wrote parts of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...module_utils.shared.text import counted
from ..run import command_line
from ..run.revert import RESULTS, Done, File, Listing, Report, Undoable, verdict
from . import host_names
from .text import WIDTH
from .text_page import Page, plain

WITH_THEM = "would be started again with them"
WOULD = {
    "restore": "can be restored",
    "already": "is as it was before",
    "conflict": "cannot be restored",
    "kept": "is not restored",
    "interrupted": "cannot be restored yet",
    "undone": "was put back",
}
BECAME = {
    "restored": "restored",
    "already": "was as before already",
    "refused": "refused",
    "kept": "kept as it is",
}
LEVEL = "log level of "  # how a journal names that of a process

COMPONENTS = {True: "runs again as before", False: "is NOT proven", None: "needs no proof"}
WITHOUT_REASON = frozenset(("restore", "restored", "already", "undone"))


def render(report: Report) -> str:
    """Return the report as text; every line is escaped."""
    if report.choice.problem or report.wanted is None:
        lines = _runs(report.listings)
        if report.choice.problem:
            lines += ["", f"kubemend: {report.choice.problem}"]
    else:
        lines = _reverted(report)
    unknown = _unknown(report)
    if lines[-1].startswith("kubemend:"):
        lines[-1:-1] = unknown
    else:
        lines += unknown
    page = Page(WIDTH, plain)
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        if command_line.parted(line)[1] or not line:
            page.line(line)  # to be copied
        else:
            page.prose(line.strip(" "), indent=indent)
    return page.text()


def _unknown(report: Report) -> list[str]:
    lines = [
        f"  {listing.host}: {listing.reason or listing.status}"
        for listing in report.listings
        if listing.status != "ok"
    ]
    lines += [f"  {host}: left out by --limit" for host in report.not_asked]
    if not lines:
        return []
    return ["", "Not known:", *lines]


def for_programs(report: Report) -> dict[str, Any]:
    """Return the report as a part of report.json; with every run if none was selected."""
    done = {item.host: item for item in report.done}
    run_id = None
    if report.choice.hosts:
        run_id = report.choice.run_id
    hosts = [_host(listing, done.get(listing.host), run_id) for listing in report.listings]
    return {"run_id": run_id, "hosts": hosts, "not_asked": list(report.not_asked)}


def _host(listing: Listing, done: Done | None, run_id: str | None) -> dict[str, Any]:
    host: dict[str, Any] = {
        "host": listing.host,
        "status": listing.status,
        "reason": listing.reason,
        "state": None,
        "runs": [_run(run) for run in listing.runs if run_id in (None, run.run_id)],
        "files": [],
        "components": [],
    }
    if done is not None:
        host["reason"] = done.reason or listing.reason
        host["state"] = done.state
        host["files"] = _files(done.files)
        host["components"] = [
            {name: component[name] for name in ("component", "proven", "reason")}
            for component in done.components
        ]
    return host


def _run(run: Undoable) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "first": run.first,
        "last": run.last,
        "reverts": list(run.reverts),
        "error": run.error,
        "files": _files(run.files),
    }


def _files(files: Iterable[File]) -> list[dict[str, Any]]:
    return [
        {"path": file.path, "component": file.component, "state": file.state, "reason": file.reason}
        for file in files
    ]


def _runs(listings: Sequence[Listing]) -> list[str]:
    """Return every run, the newest first, with its files on each host."""
    run_ids = sorted({run.run_id for listing in listings for run in listing.runs}, reverse=True)
    truncated = [listing.host for listing in listings if listing.truncated]
    lines = [_nothing(listings)]
    if run_ids:
        lines = ["What runs of kubemend left on these hosts, the newest first:"]
    if truncated:
        lines.append(f"(older runs of {', '.join(truncated)} are not shown)")
    revertible = 0
    for run_id in run_ids:
        parts = _parts(listings, run_id)
        lines += ["", _run_title(run_id, parts.values())]
        for host, run in parts.items():
            lines += _run_lines(host, run)
        if any(map(_is_revertible, parts.values())):
            revertible += 1
            lines.append(f"  undo: {command_line.revert(run_id)}")
    if run_ids:
        lines += ["", f"kubemend: {revertible} of {counted(len(run_ids), 'run')} can be undone"]
    return lines


def _nothing(listings: Sequence[Listing]) -> str:
    """Return the sentence for journals without a run; a host that did not answer may have one."""
    hosts = [listing.host for listing in listings if listing.status == "ok"]
    if not hosts:
        return "No host answered: what runs of kubemend left on these hosts is not known."
    if len(hosts) < len(listings):
        return f"No run of kubemend left anything on {host_names.join(hosts)}."
    return "No run of kubemend left anything on these hosts."


def _parts(listings: Iterable[Listing], run_id: str | None) -> dict[str, Undoable]:
    """Return the entries of a run by host."""
    parts = {}
    for listing in listings:
        run = listing.find_run(run_id or "")
        if run is not None:
            parts[listing.host] = run
    return parts


def _is_revertible(run: Undoable) -> bool:
    return any(file.state == "restore" for file in run.files)


def _run_title(run_id: str, runs: Collection[Undoable]) -> str:
    title = f"run {run_id}"
    first = min((run.first for run in runs if run.first), default=None)
    if first:
        title += f" ({first})"
    reverted = sorted({name for run in runs for name in run.reverts})
    if reverted:
        title += f", which took back run {', '.join(reverted)}"
    return title


def _run_lines(host: str, run: Undoable) -> list[str]:
    lines = _file_lines(host, run.files, WOULD)
    if run.error:
        lines.append(f"  {host}: {run.error}")
    return lines


def _file_lines(host: str, files: Iterable[File], phrases: Mapping[str, str]) -> list[str]:
    lines = []
    for file in files:
        name = f"{host} {file.path}"
        if file.component:
            name += f" ({file.component})"
        lines.append(f"  {name}: {_file_state(file, phrases)}")
        if file.reason and file.state not in WITHOUT_REASON:
            lines.append(f"    {file.reason}")
        if file.state in ("conflict", "refused") and not _names_digests(file):
            after_run, former, present = (digest or "absent" for digest in file.digests)
            lines.append(f"    sha256 now {present}; the run left {after_run}; before it {former}")
    return lines


def _file_state(file: File, phrases: Mapping[str, str]) -> str:
    if file.reason and file.state in ("undone", "already"):
        return file.reason
    return phrases[file.state]


def _names_digests(file: File) -> bool:
    return all(digest in file.reason for digest in file.digests if digest)


def _reverted(report: Report) -> list[str]:
    """Return the results of the selected run, past or predicted."""
    run_id = report.choice.run_id
    lines = [f"Undoing run {run_id}:"]
    if report.check:
        lines = [f"Check mode, nothing is changed. Undoing run {run_id} would come to this:"]
    done = {item.host: item for item in report.done}
    for listing in report.listings:
        run = listing.find_run(run_id or "")
        if run is None:
            continue
        lines.append("")
        if listing.host in done:
            lines += _done_lines(done[listing.host])
        else:
            lines += _pending_lines(listing, run, report.check)
    if report.check:
        last_line = _predicted(report)
    else:
        last_line = _results(report)
    return [*lines, "", last_line]


def _pending_lines(listing: Listing, run: Undoable, check: bool) -> list[str]:
    host = listing.host
    lines = [f"{host}: not begun"]
    if check:
        lines = [f"{host}:"]
    lines += _file_lines(host, run.files, WOULD)
    if run.error:
        lines.append(f"  {run.error}")
    for component, reason in listing.guards:
        consequence = WITH_THEM
        if reason:
            consequence = f"may not be started again now, so that its files would stay: {reason}"
        lines.append(f"  {host} {component} {consequence}")
    return lines


def _done_lines(done: Done) -> Iterator[str]:
    yield f"{done.host}: {done.state}"
    yield from _file_lines(done.host, done.files, BECAME)
    for component in done.components:
        line = f"  {done.host} {component['component']} {COMPONENTS[component['proven']]}"
        if component["reason"]:
            line += f": {component['reason']}"
        yield line
    reasons = [file.reason for file in done.files]
    reasons += [component["reason"] for component in done.components]
    if done.reason and done.reason not in reasons:
        yield f"  {done.reason}"


def _predicted(report: Report) -> str:
    files = levels = 0
    for listing in report.listings:
        run = listing.find_run(report.choice.run_id or "")
        if run is None:
            continue
        guards = dict(listing.guards)
        for file in run.files:
            if file.state != "restore" or guards.get(file.component or ""):
                continue
            if file.path.startswith(LEVEL):
                levels += 1
            else:
                files += 1
    if levels:
        return (
            f"kubemend: {counted(files, 'file')} and {counted(levels, 'log level')} would be"
            " restored"
        )
    return f"kubemend: {counted(files, 'file')} would be restored"


def _results(report: Report) -> str:
    states = [file.state for item in report.done for file in item.files]
    counts = ", ".join(f"{states.count(name)} {name}" for name in RESULTS if states.count(name))
    line = f"kubemend: run {report.choice.run_id}: {counts or 'nothing was restored'}"
    sentence = verdict(report)[1]
    if sentence:
        line += f"; {sentence}"
    return line
