# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeline of a pod as a person reads it."""

from __future__ import annotations

from datetime import datetime, timezone

from ..models.timeline import Entry, Timeline
from .text_page import Page

TIME, WIDEST = 15, 32  # 20:01:02.113402, and the longest place that is aligned


def render(page: Page, told: Timeline, everything: bool = True) -> None:
    """One line for each entry: time, place, what.

    A sibling is marked by its name, a new day by its date.

    everything: also lines that only name the pod; else they are counted.
    """
    shown = [entry for entry in told.entries if everything or entry.known]
    days = [stamp(entry)[:10] for entry in shown if entry.time is not None]
    since = f", {days[0]}" if days else ""
    page.prose(
        f"Timeline of {told.pod}{f' (uid {told.uid})' if told.uid else ''}, {told.about}; times in"
        f" UTC{since}",
        indent=0,
    )
    wide = min(WIDEST, max((len(entry.where) for entry in shown), default=0))
    day = days[0] if days else ""
    for entry in shown:
        at = stamp(entry)
        if at and at[:10] != day:
            day = at[:10]
            page.line(f"  {day}")
        whose = f"{entry.pod}: " if entry.pod not in ("", told.name) else ""
        page.prose(
            whose + entry.what,
            label=f"{at[11:].rstrip('Z'):<{TIME}}  {entry.where:<{wide}}  ",
            hang=2 + TIME + 2,
        )
    if len(shown) < len(told.entries):
        page.prose(f"and {len(told.entries) - len(shown)} lines that only name it")
    if not told.entries:
        page.prose("nothing is known of it but its name")


def stamp(entry: Entry) -> str:
    """An entry's time in RFC 3339, as precise as it is known; empty where it is not."""
    if entry.time is None:
        return ""
    when = datetime.fromtimestamp(entry.time, timezone.utc)
    return (
        when.strftime("%Y-%m-%dT%H:%M:%S")
        + (f".{when.microsecond:06d}" if entry.precision == "us" else "")
        + "Z"
    )
