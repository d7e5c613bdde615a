# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of grades: of each batch, at first try and now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from . import case_file, judge


def table() -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"{'batch':<6}{'when':<10}" + "".join(f"{name:>9}" for name in case_file.GRADES)
    for batch in case_file.batches():
        names = case_file.of_batch(batch["batch"])
        cases = [case_file.read(name) for name in names]
        first = Counter(case.get("first_try", {}).get("grade") for case in cases)
        yield _line(batch["batch"], "first try", first)
        yield _line(batch["batch"], "now", Counter(_now(case) for case in cases))


def _now(case: dict) -> str:
    return judge.grade(case, judge.answer(case))


def _line(batch: int, when: str, counts: Counter) -> str:
    return f"{batch:<6}{when:<10}" + "".join(f"{counts[name]:>9}" for name in case_file.GRADES)
