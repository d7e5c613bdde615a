# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the text report says of faults that were not found: unknown, not judged, clear."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from ...module_utils.shared.text import counted
from ..models import result as model_result
from . import conclusion, headline, host_names, phrases, times
from .run_info import Run
from .text_page import Page

CODES_SHOWN = 4  # unknown faults; more are a number, and a list with -v
ERRORS_SHOWN = 5
LONG_NOTE = 200  # characters
_WORD = re.compile(r"[\w.-]*\w")  # that may be the name of a host
MORE = "every fault by name: -v, or report.html"


def unknown(
    page: Page,
    verdicts: Iterable[model_result.Verdict],
    hosts: Sequence[model_result.HostRow],
    run: Run,
) -> None:
    """Write the unknown faults with what is missing: a few by name, many as a number."""
    verdicts = list(verdicts)
    rows = phrases.unknown_rows(verdicts, hosts)
    codes = sorted({code for item, _missing in rows for code in item.split()})
    if len(codes) <= CODES_SHOWN or run.verbose:
        for item, missing in rows:
            titles = _titled(item.split(), run)
            page.prose(f"{titles}: missing {missing}", label="UNKNOWN ", kind="unknown", indent=0)
        return
    page.prose(
        f"{counted(len(codes), 'fault')}, because evidence is missing"
        f" ({_more(verdicts, len(codes))}):",
        label="UNKNOWN ",
        kind="unknown",
        indent=0,
    )
    for item, missing in rows[:ERRORS_SHOWN]:
        number = counted(len(item.split()), "fault")
        page.prose(f"{number}: missing {missing}", indent=2)
    rest = sum(len(item.split()) for item, _missing in rows[ERRORS_SHOWN:])
    if rest:
        page.prose(f"{counted(rest, 'fault')}: for other reasons", indent=2)


def _more(verdicts: Iterable[model_result.Verdict], faults: int) -> str:
    """Return where every fault is named, and how many verdicts a count of the run has of them."""
    number = sum(item.verdict == "unknown" for item in verdicts)
    if number == faults:
        return MORE
    return f"{number} verdicts; {MORE}"


def not_judged(page: Page, items: Iterable[model_result.NotJudged], run: Run) -> None:
    """Write the faults that this run did not judge, one line each."""
    for item in sorted(items, key=lambda row: row.code):
        page.prose(
            f"{_titled([item.code], run)} ({phrases.unjudged(item)})",
            label="not judged: ",
            indent=0,
        )


def clear(page: Page, verdicts: Iterable[model_result.Verdict], run: Run) -> None:
    """Write the faults that are clear or not applicable, one line each."""
    for verdict, codes in phrases.clear_rows(verdicts):
        label = f"{phrases.WORDS.get(verdict, verdict)}: "
        for code in codes.split():
            page.prose(_titled([code], run), label=label, kind=verdict, indent=0)


def notes(
    page: Page,
    verdicts: Iterable[model_result.Verdict],
    run: Run,
    lacks: Sequence[model_result.Lack] = (),
) -> None:
    """Write each note once, with the faults that it is about.

    A list of what is in order, such as each restart that was meant, is for -v and report.html, and
    so is why a fault cannot exist.
    """
    shown = [item for item in verdicts if run.verbose or not _is_detail(item)]
    now = headline.now(run)
    for note in note_texts(shown, run):
        text = times.readable(conclusion.without_reasons(note, lacks), now)
        page.prose(f"note: {text}", indent=0)


def _is_detail(item: model_result.Verdict) -> bool:
    return item.verdict == "not_applicable" or _is_list(item)


def _is_list(item: model_result.Verdict) -> bool:
    return item.verdict == "clear" and len(item.note) > LONG_NOTE


def note_texts(verdicts: Iterable[model_result.Verdict], run: Run) -> list[str]:
    """Return each note once, with the fault or the number of faults, and the hosts."""
    items_by_note: dict[str, list[model_result.Verdict]] = {}
    for item in verdicts:
        if item.note:
            items_by_note.setdefault(item.note, []).append(item)
    return [
        f"{note} ({about({item.code for item in items}, run)}{_places(note, items)})"
        for note, items in items_by_note.items()
    ]


def _places(note: str, items: Iterable[model_result.Verdict]) -> str:
    """Return the hosts that a note is about; none where it names one of them itself."""
    hosts = {item.host for item in items if item.host}
    if not hosts or not hosts.isdisjoint(_WORD.findall(note)):
        return ""
    return f"; {host_names.join(hosts)}"


def about(codes: Collection[str], run: Run) -> str:
    """Return the fault that a note is about, or the number of several."""
    if len(codes) == 1:
        return _titled(codes, run)
    return counted(len(codes), "fault")


def _titled(codes: Iterable[str], run: Run) -> str:
    return ", ".join(f"{code} {run.titles.get(code, '')}".rstrip() for code in codes)
