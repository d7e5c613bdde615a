# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be undone, or was, in plain text. Every line is escaped: nodes wrote parts of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..run.revert import RESULTS, File, Listing, Report, verdict
from .text import WIDTH
from .text_page import Page, plain

WITH_THEM = "would be started again with them"
WOULD = {
    "restore": "can be restored",
    "already": "is as it was before",
    "conflict": "cannot be restored",
    "kept": "is never put back",
    "interrupted": "cannot be restored yet",
    "undone": "was put back",
}
BECAME = {
    "restored": "restored",
    "already": "was as before already",
    "refused": "refused",
    "kept": "kept as it is",
}
LEVEL = "log level of "  # what a journal calls that of a process
COMMAND = "ansible-playbook -i INVENTORY kubemend.remediation.revert -e kubemend_run_id="


def render(report: Report) -> str:
    """The report for a person; every line escaped."""
    if report.choice.problem or report.wanted is None:
        lines = _list(report.listings)
        if report.choice.problem:
            lines += ["", f"kubemend: {report.choice.problem}"]
    else:
        lines = _undone(report)
    silent = [item for item in report.listings if item.status != "ok"]
    if silent or report.not_asked:
        at = len(lines) - 1 if lines[-1].startswith("kubemend:") else len(lines)
        more = ["", "Not known:"]
        more += [f"  {item.host}: {item.reason or item.status}" for item in silent]
        more += [f"  {host}: left out by --limit" for host in report.not_asked]
        lines[at:at] = more
    page = Page(WIDTH, plain)
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        if COMMAND in line or not line:
            page.line(line)  # to be copied
        else:
            page.prose(line.strip(" "), indent=indent)
    return "\n".join(page.lines) + "\n"


def for_programs(report: Report) -> dict[str, Any]:
    """The same as a part of report.json; with every run where none is in question."""
    done = {item.host: item for item in report.done}
    wanted = report.choice.run_id if report.choice.hosts else None
    hosts = []
    for item in report.listings:
        found = done.get(item.host)
        hosts.append(
            {
                "host": item.host,
                "status": item.status,
                "reason": (found.reason if found else "") or item.reason,
                "state": found.state if found else None,
                "runs": [
                    {
                        "run_id": run.run_id,
                        "first": run.first,
                        "last": run.last,
                        "reverts": list(run.reverts),
                        "error": run.error,
                        "files": _plain(run.files),
                    }
                    for run in item.runs
                    if wanted in (None, run.run_id)
                ],
                "files": _plain(found.files) if found else [],
                "components": (
                    [
                        {
                            "component": one["component"],
                            "proven": one["proven"],
                            "reason": one["reason"],
                        }
                        for one in found.components
                    ]
                    if found
                    else []
                ),
            }
        )
    return {"run_id": wanted, "hosts": hosts, "not_asked": list(report.not_asked)}


def _plain(files: Iterable[File]) -> list[dict[str, Any]]:
    return [
        {"path": file.path, "component": file.component, "state": file.state, "reason": file.reason}
        for file in files
    ]


def _list(listings: Sequence[Listing]) -> list[str]:
    """Every run, the newest first, with its files on each host."""
    known = sorted({run.run_id for item in listings for run in item.runs}, reverse=True)
    lines = [
        (
            "What runs of kubemend left on these hosts, the newest first:"
            if known
            else "No run of kubemend left anything on these hosts."
        )
    ]
    able = 0
    for run_id in known:
        parts = [(item.host, run) for item in listings if (run := item.of(run_id))]
        when = min((run.first for dummy, run in parts if run.first), default=None)
        undone = sorted({name for dummy, run in parts for name in run.reverts})
        lines += [
            "",
            f"run {run_id}"
            + (f" ({when})" if when else "")
            + (f", which took back run {', '.join(undone)}" if undone else ""),
        ]
        for host, run in parts:
            lines += _files_of(host, run.files, WOULD)
            if run.error:
                lines.append(f"  {host}: {run.error}")
        if any(file.state == "restore" for dummy, run in parts for file in run.files):
            able += 1
            lines.append(f"  undo: {COMMAND}{run_id}")
    if known:
        lines += ["", f"kubemend: {able} of {len(known)} runs can be undone"]
    more = [item.host for item in listings if item.truncated]
    if more:
        lines.insert(1, f"(older runs of {', '.join(more)} are not shown)")
    return lines


def _files_of(host: str, files: Iterable[File], words: Mapping[str, str]) -> list[str]:
    lines = []
    for file in files:
        whose = f" ({file.component})" if file.component else ""
        since = file.reason if file.state in ("undone", "already") else ""
        lines.append(f"  {host} {file.path}{whose}: {since or words[file.state]}")
        if file.reason and file.state not in ("restore", "restored", "already", "undone"):
            lines.append(f"    {file.reason}")
        if file.state in ("conflict", "refused") and not all(
            item in file.reason for item in file.digests if item
        ):
            left, former, present = (item or "absent" for item in file.digests)
            lines.append(f"    sha256 now {present}; the run left {left}; before it {former}")
    return lines


def _undone(report: Report) -> list[str]:
    """What was done with the chosen run, or would be done."""
    run_id = report.choice.run_id
    lines = [
        (
            f"Check mode, nothing is changed. Taking back run {run_id} would find:"
            if report.check
            else f"Taking back run {run_id}:"
        )
    ]
    done = {item.host: item for item in report.done}
    for item in report.listings:
        run = item.of(run_id or "")
        if run is None:
            continue
        found = done.get(item.host)
        if found is None:
            lines += ["", f"{item.host}:" if report.check else f"{item.host}: not begun"]
            lines += _files_of(item.host, run.files, WOULD) + (
                [f"  {run.error}"] if run.error else []
            )
            lines += [
                f"  {item.host} {component}"
                f" {f'may not be started again now, so that its files would stay: {why}' if why else WITH_THEM}"
                for component, why in item.guards
            ]
            continue
        lines += ["", f"{item.host}: {found.state}"]
        lines += _files_of(item.host, found.files, BECAME)
        for one in found.components:
            proven = {True: "runs again as before", False: "is NOT proven", None: "needs no proof"}[
                one["proven"]
            ]
            lines.append(
                f"  {item.host} {one['component']} {proven}"
                + (f": {one['reason']}" if one["reason"] else "")
            )
        if (
            found.reason
            and not any(found.reason == file.reason for file in found.files)
            and not any(found.reason == one["reason"] for one in found.components)
        ):
            lines.append(f"  {found.reason}")
    files = [file for item in report.done for file in item.files]
    count = {name: sum(file.state == name for file in files) for name in RESULTS}
    sentence = verdict(report)[1]
    if report.check:
        can = [
            file.path.startswith(LEVEL)
            for item in report.listings
            if (run := item.of(run_id or ""))
            for file in run.files
            if file.state == "restore" and not dict(item.guards).get(file.component or "")
        ]
        levels = f" and {can.count(True)} log levels" if True in can else ""
        lines += ["", f"kubemend: {can.count(False)} files{levels} would be restored"]
    else:
        told = (
            ", ".join(f"{number} {name}" for name, number in count.items() if number)
            or "nothing was restored"
        )
        lines += ["", f"kubemend: run {run_id}: {told}" + (f"; {sentence}" if sentence else "")]
    return lines
