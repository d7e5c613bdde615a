# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report.html and junit.xml of a run that evaluates nothing, a capture or a revert.

They show the actions on each host and their results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..capture.outcome import Became
from ..capture.plan import Plan
from ..models.result import Result
from ..run import revert
from ..run.report_dir import FACES, remove_face
from ..safe_io import atomic_file
from . import html, junit
from .junit import Case
from .run_info import Run

CRITICAL, WARNING = "critical", "warning"
WRITTEN = frozenset(("html", "junit"))  # the other formats have findings only
Phrases = Mapping[str, str]


def write(folder: str, formats: Iterable[str], run: Run, text: str, cases: Iterable[Case]) -> None:
    """Write the requested formats, and remove others of an earlier run in the same directory.

    The text is the report as the console shows it, without timelines.
    """
    requested = frozenset(formats)
    for name, (file, _pattern) in FACES.items():
        if name not in requested or name not in WRITTEN:
            remove_face(folder, name)
            continue
        if name == "html":
            content = html.render(Result(), run, text)
        else:
            content = junit.of_cases(cases, run)
        atomic_file.replace(Path(folder) / file, [content])


def _run_case(run: Run, name: str, lines: Iterable[str]) -> Case:
    """Return the case of the run itself, which fails as its exit code does."""
    _code, reason, sentence = run.outcome or (0, "ok", "")
    if not sentence:
        return Case(None, name, severity=CRITICAL, lines=tuple(lines))
    return Case(None, name, "failure", CRITICAL, f"{reason}: {sentence}", tuple(lines))


def of_capture(
    run: Run, plan: Plan, done: Iterable[Became], read: frozenset[str]
) -> Iterator[Case]:
    """Yield a case for each raised log level, and for each host whose lines were requested.

    The hosts in read are those whose lines were read.
    """
    for outcome in done:
        yield _level_case(outcome)
    for host, names in plan.logging.items():
        if names and host in read:
            yield Case(host, "logs")
        elif names:
            yield Case(host, "logs", "error", "error", "what it logged was not read")
    yield _run_case(run, "capture", plan.refused + plan.notes)


def _level_case(outcome: Became) -> Case:
    target, name = outcome.target, f"log level of {outcome.target.component}"
    change = f"{target.former} -> {target.level}"
    if outcome.restored is None:
        message = f"{change} was not raised: {outcome.reason}"
        return Case(target.on, name, "failure", WARNING, message)
    if outcome.restored:
        return Case(target.on, name, lines=(f"{change}, put back",))
    message = f"{change} was not put back: {outcome.reason}"
    return Case(target.on, name, "failure", CRITICAL, message)


def of_revert(run: Run, report: revert.Report, words: tuple[Phrases, Phrases]) -> Iterator[Case]:
    """Yield a case for each file of each host.

    The words are phrases for the state of a file before the revert, and after it.
    """
    before, after = words
    done = {item.host: item for item in report.done}
    for listing in report.listings:
        if listing.status != "ok":
            yield _unread_case(listing)
        elif listing.host in done:
            yield from _of_host(done[listing.host], after)
        else:
            yield _listing_case(listing, report.choice.run_id, before)
    yield _run_case(run, "revert", [f"{host}: left out by --limit" for host in report.not_asked])


def _unread_case(listing: revert.Listing) -> Case:
    severity = "error"
    if listing.status == "unreachable":
        severity = "unreachable"
    return Case(listing.host, "journal", "error", severity, listing.reason or listing.status)


def _listing_case(listing: revert.Listing, run_id: str | None, phrases: Phrases) -> Case:
    lines: list[str] = []
    for run in listing.runs:
        if run_id in (None, run.run_id):
            lines += (
                f"run {run.run_id} {file.path}: {_state(file, phrases)}" for file in run.files
            )
    return Case(listing.host, "journal", lines=tuple(lines))


def _state(file: revert.File, phrases: Phrases) -> str:
    if file.reason:
        return f"{phrases[file.state]}: {file.reason}"
    return phrases[file.state]


def _of_host(done: revert.Done, phrases: Phrases) -> Iterator[Case]:
    for file in done.files:
        if file.state == "refused":
            message = file.reason or "it was refused"
            yield Case(done.host, file.path, "failure", CRITICAL, message)
        else:
            yield Case(done.host, file.path, lines=(_state(file, phrases),))
    for component in done.components:
        name = f"{component['component']} runs as before"
        if component["proven"] is False:
            message = str(component["reason"]) or "it is not proven"
            yield Case(done.host, name, "failure", CRITICAL, message)
        else:
            yield Case(done.host, name)
    if done.state != "done":
        yield Case(done.host, "revert", "failure", CRITICAL, f"{done.state}: {done.reason}")
