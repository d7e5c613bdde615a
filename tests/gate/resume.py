# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A pytest plugin that skips tests that passed in an interrupted run, and records new passes.

KUBEMEND_GATE_PASSED names the file to which ids are added, and KUBEMEND_GATE_BEFORE the copy that
was made before pytest started: the processes of xdist must all leave out the same tests.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any

from tests.gate import progress


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    before = os.environ.get("KUBEMEND_GATE_BEFORE")
    done = set(progress.tests_passed(pathlib.Path(before))) if before else set()
    if not done:
        return
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
    items[:] = [item for item in items if item.nodeid not in done]


def pytest_runtest_logreport(report: Any) -> None:
    path = os.environ.get("KUBEMEND_GATE_PASSED")
    # A process of xdist reports to the one that started it, which records.
    if not path or os.environ.get("PYTEST_XDIST_WORKER"):
        return
    if report.when == "call" and report.passed:
        with pathlib.Path(path).open("a", encoding="utf-8") as handle:
            handle.write(report.nodeid + "\n")
