# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the number of a release from what a program prints as its version."""

from __future__ import annotations

import re

# Major, minor, patch, release candidate; a release follows all its candidates.
ReleaseNumber = tuple[int, int, int, int]
FINAL = 10**6
_NUMBER = re.compile(r"(\d{1,4})(?:\.(\d{1,4}))?(?:\.(\d{1,4}))?(?:[-~]?rc\.?(\d{1,4}))?")


def parse(text: str | None) -> ReleaseNumber | None:
    """Return the first number in a text such as `runc version 1.0.0-rc93`, or None."""
    match = _NUMBER.search(text or "")
    if match is None:
        return None
    major, minor, patch, candidate = match.groups()
    return (
        int(major),
        int(minor or 0),
        int(patch or 0),
        int(candidate) if candidate else FINAL,
    )


def is_within(text: str | None, first: str, fixed: str) -> bool:
    """Tell whether a release is the first one or a later one, and older than the fixed one."""
    number, lowest, end = parse(text), parse(first), parse(fixed)
    if number is None or lowest is None or end is None:
        return False
    return lowest <= number < end
