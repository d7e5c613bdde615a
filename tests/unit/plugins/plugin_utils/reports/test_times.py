# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times in sentences: how long ago, and when."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    times,
)

NOW = times.moment("2026-11-22T20:39:00Z")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("stopped at 2026-11-22T17:39:10Z", "stopped 2 h ago (2026-11-22 17:39 UTC)"),
        ("down since 2026-11-22T17:38:00+0000", "down for 3 h (since 2026-11-22 17:38 UTC)"),
        ("x 2026-11-22T17:38:00.282048+00:00.", "x 3 h ago (2026-11-22 17:38 UTC)."),
        ("x 2026-11-22T19:38:00+02:00", "x 3 h ago (2026-11-22 17:38 UTC)"),
        ("valid until 2026-11-30T00:00:00Z", "valid until 2026-11-30 00:00 UTC"),
        ("at 2026-11-24T20:39:00Z", "at 2026-11-24 20:39 UTC (in 2 d)"),
        ("at 2026-11-22T20:38:58Z", "2 s ago (2026-11-22 20:38 UTC)"),
        ("at 2026-99-99T99:99:99Z and T", "at 2026-99-99T99:99:99Z and T"),
        ("since 2026-11-22T17:38:00Z: x", "for 3 h (since 2026-11-22 17:38 UTC): x"),
        ("at 2026-11-22T17:38:00+00:00: x", "3 h ago (2026-11-22 17:38 UTC): x"),
        ("at 2026-11-22T17:38:00+00:00:30", "at 2026-11-22T17:38:00+00:00:30"),
        ("no time", "no time"),
    ],
)
def test_a_time_has_its_age(text, told):
    assert times.readable(text, NOW) == told


def test_without_a_now_a_time_has_no_age():
    told = times.readable("since 2026-11-22T17:38:00Z", None)
    assert told == "since 2026-11-22 17:38 UTC"
