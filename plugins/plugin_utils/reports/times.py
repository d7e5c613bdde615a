# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times in sentences of reports: how long ago, and when."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

# What stands before a time decides how it is read: a deadline has no age.
_TIME = re.compile(
    r"(?:\b(since|at|on|until|till|before|after|from|by) )?"
    r"\b([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]+)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})(?![0-9]|:[0-9])"
)
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_AGED = ("since", "at", "on", None)


def moment(text: str) -> datetime | None:
    """Return the time of an ISO timestamp, or None."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    return _parsed(match)


def _parsed(match: re.Match[str]) -> datetime | None:
    offset = match[3].replace(":", "")
    if offset == "Z":
        offset = "+0000"
    try:
        time = datetime.strptime(match[2] + offset, "%Y-%m-%dT%H:%M:%S%z")
        return time.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def clock(time: datetime) -> str:
    """Return a time as reports write it."""
    return time.strftime("%Y-%m-%d %H:%M UTC")


def duration(span: timedelta) -> str:
    """Return a length of time in its largest unit."""
    seconds = int(abs(span.total_seconds()))
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def readable(text: str, now: datetime | None) -> str:
    """Return prose with each timestamp as "3 h ago (2026-11-22 17:39 UTC)".

    Without now a time has no age.
    """

    def spoken(match: re.Match[str]) -> str:
        time = _parsed(match)
        if time is None:
            return match[0]
        return _spoken(match[1], time, now)

    if "T" not in text:
        return text
    return _TIME.sub(spoken, text)


def _spoken(before: str | None, time: datetime, now: datetime | None) -> str:
    word = ""
    if before:
        word = f"{before} "
    if now is None or before not in _AGED:
        return f"{word}{clock(time)}"
    if time > now and before == "since":
        return f"{word}{clock(time)}"
    if time > now:
        return f"{word}{clock(time)} (in {duration(time - now)})"
    age = duration(now - time)
    if before == "since":
        return f"for {age} (since {clock(time)})"
    return f"{age} ago ({clock(time)})"
