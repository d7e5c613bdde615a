# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of a node that was drained."""

from __future__ import annotations

DRAINED = {
    "state": "done",
    "reason": "w1 is drained",
    "changed": True,
    "seconds": 1,
    "seen": {},
    "journal": None,
    "notes": [],
}
