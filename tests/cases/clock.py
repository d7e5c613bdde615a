# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times of a case, relative to the clock of its evidence.

A text "@-90" is 90 seconds before it, in seconds since the epoch; "@iso-90" is the same moment as
the API writes it. So a case has no dates, and fits whatever recording is its base.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

RELATIVE = re.compile(r"@(iso)?([+-]\d+)")


def iso(seconds: float) -> str:
    """Return a time as the API writes it."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def journal(seconds: float) -> str:
    """Return a time as journalctl -o short-iso writes it."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S+0000")


def resolved(value: Any, now: float) -> Any:
    """Return the value with its relative times as times."""
    if isinstance(value, dict):
        return {key: resolved(item, now) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved(item, now) for item in value]
    found = RELATIVE.fullmatch(value) if isinstance(value, str) else None
    if not found:
        return value
    moment = now + int(found[2])
    return iso(moment) if found[1] else moment
