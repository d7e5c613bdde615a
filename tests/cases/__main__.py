# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show, record and count the answers to the public cases."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import yaml

from . import case_file, first_try, grades, judge


def main(argv: list[str]) -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.cases", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recorded = commands.add_parser("first-try", help="record the answers to a batch, once")
    recorded.add_argument("batch", type=int)
    graded = commands.add_parser("grade", help="add grades and reasons to a first try, once")
    graded.add_argument("batch", type=int)
    graded.add_argument("file", type=Path, help="YAML: {case: [grade, reason]}")
    shown = commands.add_parser("show", help="print the answer to a case")
    shown.add_argument("case", choices=case_file.names())
    commands.add_parser("grades", help="print the grades of each batch")
    given = parser.parse_args(argv)
    try:
        _run(given)
    except first_try.RecordError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(given: argparse.Namespace) -> None:
    if given.command == "first-try":
        first_try.record(given.batch)
    elif given.command == "grade":
        judged = yaml.safe_load(given.file.read_text(encoding="utf-8"))
        first_try.grade(given.batch, judged)
    elif given.command == "grades":
        print("\n".join(grades.table()))
    else:
        show(given.case)


def show(name: str) -> None:
    """Print the findings and the plan of a case, and what is missing."""
    case = case_file.read(name)
    found = judge.answer(case)
    for item in found.new:
        print(f"{item.code} {item.severity} {item.host} {item.component} {list(item.because)}")
        print(f"    {item.summary}")
        print(f"    {item.remedy}")
        for ref in item.evidence:
            print("      >", ref.path or "", ref.line or "", ref.text or "")
    for step in found.steps:
        print(f"step {step.remedy} {step.host} risk {step.risk} {step.blocked_by or 'allowed'}")
    print("missing:", ", ".join(judge.missing(case, found)) or "nothing")
    print("blamed too:", ", ".join(item.code for item in judge.others(case, found)) or "nothing")
    print("grade:", judge.grade(case, found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
