# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeline of a pod as a text."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone

from ...module_utils.shared.text import counted
from ..models.timeline import Timeline
from ..models.timeline_lines import Entry
from .text_page import Page

TIME, WIDEST = 15, 32  # 20:01:02.113402, and the longest place that is aligned


def render(page: Page, timeline: Timeline, everything: bool = True) -> None:
    """Write one line for each entry: time, place, event.

    A sibling is marked by its name, a new day by its date. Lines that only name the pod are
    counted, unless everything is to be written.
    """
    shown = [entry for entry in timeline.entries if everything or entry.known]
    day = _first_day(shown)
    page.prose(_title(timeline, day), indent=0)
    width = min(WIDEST, max((len(entry.where) for entry in shown), default=0))
    for entry in shown:
        time = stamp(entry)
        if time and time[:10] != day:
            day = time[:10]
            page.line(f"  {day}")
        text = entry.what
        if entry.pod not in ("", timeline.name):
            text = f"{entry.pod}: {text}"
        label = f"{time[11:].rstrip('Z'):<{TIME}}  {entry.where:<{width}}  "
        page.prose(text, label=label, hang=2 + TIME + 2)
    if len(shown) < len(timeline.entries):
        page.prose(
            f"and {counted(len(timeline.entries) - len(shown), 'line')} in which only its name"
            " occurs"
        )
    if not timeline.entries:
        page.prose("nothing is known of it but its name")


def _first_day(entries: Iterable[Entry]) -> str:
    return next((stamp(entry)[:10] for entry in entries if entry.time is not None), "")


def _title(timeline: Timeline, day: str) -> str:
    pod, since = timeline.pod, ""
    if timeline.uid:
        pod += f" (uid {timeline.uid})"
    if day:
        since = f", {day}"
    return f"Timeline of {pod}, {timeline.about}; times in UTC{since}"


def stamp(entry: Entry) -> str:
    """Return an entry's time in RFC 3339, as precise as it is known; empty where it is not."""
    if entry.time is None:
        return ""
    time = datetime.fromtimestamp(entry.time, timezone.utc)
    if entry.precision == "us":
        return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond:06d}Z"
    return f"{time:%Y-%m-%dT%H:%M:%S}Z"
