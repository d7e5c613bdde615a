# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make faults`: the whole matrix, in an order that the seed gives.

What passed on these very bytes is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BOOK = HERE.parent / "output" / "faults.jsonl"


class Matrix:
    """Order the cases, exclude those that passed, and write down each result as it comes."""

    def __init__(self, seed: str, tree: dict[str, Any]) -> None:
        self.seed, self.tree = seed, tree
        self.passed = {one["case"] for one in self.entries() if one["outcome"] != "failed"}
        self.properties: dict[str, dict[str, Any]] = {}
        self.worst: dict[str, str] = {}

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of these very bytes. A half line is that of a run that was killed."""
        found = []
        for line in BOOK.read_text(encoding="utf-8").splitlines() if BOOK.is_file() else []:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if entry["tree"] == self.tree:
                found.append(entry)
        last = {entry["case"]: entry for entry in found}
        return list(last.values())

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        left = [item for item in items if item.nodeid not in self.passed]
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in self.passed])
        random.Random(self.seed).shuffle(left)
        items[:] = left

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.properties.setdefault(report.nodeid, {}).update(dict(report.user_properties))
        if self.worst.get(report.nodeid) != "failed" and (
            report.when == "call" or report.outcome != "passed"
        ):
            self.worst[report.nodeid] = report.outcome
        if report.when == "teardown":
            entry = {
                "tree": self.tree,
                "case": report.nodeid,
                "outcome": self.worst[report.nodeid],
                **self.properties[report.nodeid],
                "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
            with BOOK.open("a", encoding="utf-8") as book:
                book.write(json.dumps(entry) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.fault_injection", description=__doc__)
    parser.add_argument(
        "--seed", help="the order, and what is drawn of scenes that wait; the commit by default"
    )
    parser.add_argument("-k", dest="pick", default="", help="as pytest has it")
    options = parser.parse_args()
    os.environ["KUBEMEND_FAULTS"] = "whole"
    if options.seed:
        os.environ["KUBEMEND_FAULTS_SEED"] = options.seed  # what slow scenes draw, too
    import pytest

    from tests.lab.support import results

    tree = results.tree()
    BOOK.parent.mkdir(parents=True, exist_ok=True)
    matrix = Matrix(options.seed or tree["commit"], tree)
    print(
        f"seed {matrix.seed}; {len(matrix.passed)} cases passed on these bytes already", flush=True
    )
    code = pytest.main(
        [
            "-q",
            "-p",
            "no:cacheprovider",
            "--tb=short",
            *(["-k", options.pick] if options.pick else []),
            str(HERE),
        ],
        plugins=[matrix],
    )
    ended = matrix.entries()
    count = {
        outcome: sum(one["outcome"] == outcome for one in ended)
        for outcome in ("passed", "failed", "skipped")
    }
    print(
        f"faults: {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped; "
        f"{sum(one.get('injected', 0) for one in ended)} faults injected"
    )
    for one in ended:
        if one["outcome"] == "failed":
            print(f"  failed: {one['case']}")
    return 0 if code in (0, 5) and not count["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
