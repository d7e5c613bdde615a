# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the text report says of the possible causes of a symptom."""

from __future__ import annotations

from collections.abc import Iterable

from ...module_utils.shared.text import counted
from . import phrases
from .run_info import Run, Symptom
from .text_gaps import CODES_SHOWN, MORE
from .text_page import Page


def write(page: Page, run: Run, symptom: Symptom, rows: Iterable[tuple[str, str, str]]) -> None:
    """Write every possible cause with its verdict, present ones first.

    Many with the same verdict for the same reason are a number, unless the run is verbose.
    """
    page.line(f"{symptom.title}: possible causes")
    codes_by_reason: dict[tuple[str, str], list[str]] = {}
    for verdict, code, detail in rows:
        codes_by_reason.setdefault((verdict, detail), []).append(code)
    is_folded = False
    for (verdict, detail), codes in codes_by_reason.items():
        if run.verbose or len(codes) <= CODES_SHOWN or verdict == "present":
            for code in codes:
                _row(page, verdict, f"{code} {run.titles.get(code, '')}", detail)
        else:
            is_folded = True
            _row(page, verdict, counted(len(codes), "fault"), detail)
    if is_folded:
        page.prose(f"({MORE})", indent=2)


def _row(page: Page, verdict: str, subject: str, detail: str) -> None:
    label = f"{phrases.WORDS.get(verdict, verdict):<14} "
    text = subject
    if detail.startswith("("):
        text += f" {detail}"
    elif detail:
        text += f": {detail}"
    page.prose(text, label=label, kind=verdict, hang=17)
