# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Record what the collection said of a batch before anything was changed for its cases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from . import case_file, judge

HEADER = "# Written by python3 -m tests.cases first-try and grade, never by hand.\n"
COLUMNS = 60  # a line ends with the word that passes it, and a path may have a hundred


class Dumper(yaml.SafeDumper):
    """Writes lists as yamllint wants them: indented."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent a list below its key."""
        super().increase_indent(flow, indentless=False)


class RecordError(ValueError):
    """A first try that cannot be recorded, with the reason."""


def record(batch: int) -> None:
    """Write first_try of every case of a batch; it refuses where one has it."""
    names = case_file.of_batch(batch)
    if not names:
        raise RecordError(f"batch {batch} has no case")
    cases = {name: case_file.read(name) for name in names}
    done = [name for name, case in cases.items() if "first_try" in case]
    if done:
        raise RecordError(f"{', '.join(done)}: the first try is recorded")
    answers = {name: judge.answer(case) for name, case in cases.items()}
    for name, found in answers.items():
        _append(case_file.path_of(name), shown(found))


def grade(batch: int, judged: Mapping[str, list[str]]) -> None:
    """Add grade and reason, {case: [grade, reason]}, to the first tries of a batch, once.

    It refuses what contradicts the answer: a person may say that an answer is worse than the
    program tells, and never that it is better.
    """
    names = case_file.of_batch(batch)
    if set(names) != set(judged):
        raise RecordError(f"of each case one grade: {sorted(set(names) ^ set(judged))}")
    for name, (given, reason) in judged.items():
        case = case_file.read(name)
        if "grade" in case.get("first_try", {"grade": None}):
            raise RecordError(f"{name}: the first try is graded, or not recorded")
        told = judge.grade(case, judge.answer(case))
        if not _fits(given, told):
            raise RecordError(f"{name}: {given} is not what the program tells: {told}")
        path = case_file.path_of(name)
        kept = path.read_text(encoding="utf-8").partition("\n" + HEADER)[0] + "\n"
        path.write_text(kept, encoding="utf-8")
        _append(path, {**case["first_try"], "grade": given, "reason": reason})


def shown(found: judge.Answer) -> dict[str, Any]:
    """Return an answer as a case shows it."""
    return {
        "found": [
            f"{item.code} {item.severity} {item.host or item.node or item.component or 'cluster'}:"
            f" {item.summary}"
            for item in found.new
        ],
        "planned": [f"{step.remedy} {step.host} (risk {step.risk})" for step in found.planned],
    }


def _fits(given: str, told: str) -> bool:
    """Tell whether a person may give this grade where the program tells another one."""
    if given not in case_file.GRADES or "harmful" in (given, told):
        return given == told
    return given != "right" or told == "right"


def _append(path: Path, first: Mapping[str, Any]) -> None:
    text = yaml.dump(
        {"first_try": dict(first)},
        Dumper=Dumper,
        sort_keys=False,
        width=COLUMNS,
        allow_unicode=True,
    )
    whole = path.read_text(encoding="utf-8") + HEADER + text
    path.write_text(whole, encoding="utf-8")
