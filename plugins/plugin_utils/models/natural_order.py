# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which people count names: w2 before w10."""

from __future__ import annotations

import re

NUMBER = re.compile(r"([0-9]+)")
DIGITS = 18  # more are compared as text
Key = tuple[tuple[int, int, str], ...]


def natural(name: str | None) -> Key:
    """Return the sort key of a name in which w2 is before w10; no name comes first."""
    if not name:
        return ()
    return tuple(
        (index % 2, int(part[:DIGITS]) if index % 2 else 0, part)
        for index, part in enumerate(NUMBER.split(name))
    )
