# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report.html and junit.xml of a run that judges nothing, a capture or a revert.

What it did on each host, and how that ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..capture.outcome import Became
from ..capture.plan import Plan
from ..models.result import Result
from ..run import revert as reverting
from ..run.report_dir import FACES, remove_face
from ..safe_io import atomic_file as private_files
from . import html, junit
from .junit import Case
from .run_info import Run

CRITICAL, WARNING = "critical", "warning"


def write(folder: str, formats: Iterable[str], run: Run, text: str, cases: Iterable[Case]) -> None:
    """Those that were asked for; one of an earlier run in the same folder goes. text.

    The report as the terminal has it, without timelines.
    """
    wanted = frozenset(formats)
    for name, (file, _ours) in FACES.items():
        if name in wanted:
            shown = (
                html.render(Result(), run, text) if name == "html" else junit.of_cases(cases, run)
            )
            private_files.replace(Path(folder) / file, [shown])
        else:
            remove_face(folder, name)


def _whole(run: Run, name: str, said: Iterable[str]) -> Case:
    """The run itself, which fails as its exit code does."""
    reason, sentence = (run.outcome or (0, "ok", ""))[1:]
    return Case(
        None,
        name,
        "failure" if sentence else "",
        CRITICAL,
        f"{reason}: {sentence}" if sentence else "",
        tuple(said),
    )


def of_capture(
    run: Run, plan: Plan, done: Iterable[Became], read: frozenset[str]
) -> Iterator[Case]:
    """Each level that was raised, and whether a host's lines were read. read.

    The hosts whose were.
    """
    for one in done:
        target, name = one.target, f"log level of {one.target.component}"
        way = f"{target.former} -> {target.level}"
        if one.restored is None:
            yield Case(target.on, name, "failure", WARNING, f"{way} was not raised: {one.reason}")
        elif one.restored:
            yield Case(target.on, name, said=(f"{way}, put back",))
        else:
            yield Case(
                target.on, name, "failure", CRITICAL, f"{way} was not put back: {one.reason}"
            )
    for host, names in plan.logging.items():
        if names:
            yield Case(
                host,
                "logs",
                *(() if host in read else ("error", "error", "what it logged was not read")),
            )
    yield _whole(run, "capture", plan.refused + plan.notes)


def of_revert(
    run: Run, report: reverting.Report, words: tuple[Mapping[str, str], Mapping[str, str]]
) -> Iterator[Case]:
    """Each file of each host: what became of it, or would. words.

    Of what would become of a file, of what became of it.
    """
    would, became = words
    done = {item.host: item for item in report.done}
    for item in report.listings:
        if item.status != "ok":
            yield Case(
                item.host,
                "journal",
                "error",
                "unreachable" if item.status == "unreachable" else "error",
                item.reason or item.status,
            )
        elif item.host in done:
            yield from _of_host(done[item.host], became)
        else:
            runs = [run for run in item.runs if report.choice.run_id in (None, run.run_id)]
            told = [
                f"run {run.run_id} {file.path}:"
                f" {would[file.state]}{': ' + file.reason if file.reason else ''}"
                for run in runs
                for file in run.files
            ]
            yield Case(item.host, "journal", said=tuple(told))
    yield _whole(run, "revert", [f"{host}: left out by --limit" for host in report.not_asked])


def _of_host(done: reverting.Done, became: Mapping[str, str]) -> Iterator[Case]:
    for file in done.files:
        failed = (
            ("failure", CRITICAL, file.reason or "it was refused")
            if file.state == "refused"
            else ("", "", "")
        )
        yield Case(
            done.host,
            file.path,
            *failed,
            (
                ()
                if failed[0]
                else (f"{became[file.state]}{': ' + file.reason if file.reason else ''}",)
            ),
        )
    for one in done.components:
        name = f"{one['component']} runs as before"
        yield Case(
            done.host,
            name,
            *(
                ("failure", CRITICAL, str(one["reason"]) or "it is not proven")
                if one["proven"] is False
                else ()
            ),
        )
    if done.state != "done":
        yield Case(done.host, "revert", "failure", CRITICAL, f"{done.state}: {done.reason}")
