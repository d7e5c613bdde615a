# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times of the API and of nodes as aware datetimes. Pure."""

from __future__ import annotations

from datetime import datetime, timezone


def timestamp(text: str | None) -> datetime | None:
    """Return an RFC 3339 time of the API (with or without fractions), or None."""
    try:
        time = datetime.fromisoformat(str(text or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    if time.tzinfo:
        return time
    return time.replace(tzinfo=timezone.utc)


def moment(seconds: float | None) -> datetime | None:
    """Return the time of seconds since 1970, or None."""
    if seconds is None or seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
