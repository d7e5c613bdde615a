# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make test` runs of the faults.

Some points of every kind of step, and of what waits for real processes or for time, a few cases.
"""

from __future__ import annotations

import importlib
from typing import Any

importlib.import_module("tests.unit.conftest")  # the collection is found as in the unit tests
judged = importlib.import_module("tests.fault_injection.judged")

# A part of a test's id, and how many of those are drawn by the commit.
FEW = {
    "[level": 4,
    "[manifest": 1,
    "[configuration": 1,
    "[stray manifest": 1,
    "managers' state": 3,
    "[kubelet ": 6,
    "test_the_recovery_is_killed_too": 2,
    "test_what_the_api_does_wrong": 6,
    "test_the_clock_jumps": 6,
    "test_an_error_anywhere": 24,
    "test_a_disk_that_takes_nothing": 24,
    "test_something_else_lies_there": 16,
    "test_our_own_writes_are_not_seen": 4,
    "test_a_request_is_refused": 12,
}


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    if judged.WHOLE:
        return
    out: set[str] = set()
    left = [item.nodeid for item in items]
    for part, count in FEW.items():
        mine = [one for one in left if part in one]
        left = [one for one in left if part not in one]
        out |= set(mine) - set(judged.picked(f"few {part}", mine, count))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in out])
    items[:] = [item for item in items if item.nodeid not in out]
