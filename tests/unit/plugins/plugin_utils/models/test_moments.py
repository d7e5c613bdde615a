# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times of the API and of nodes."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import moments

TIME = datetime(2026, 11, 22, 17, 39, 10, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-11-22T17:39:10Z", TIME),
        ("2026-11-22T17:39:10.000000Z", TIME),
        ("2026-11-22T18:39:10+01:00", TIME),
        ("2026-11-22T17:39:10", TIME),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_a_time_of_the_api(text, time):
    assert moments.timestamp(text) == time


@pytest.mark.parametrize(
    ("seconds", "time"),
    [
        (TIME.timestamp(), TIME),
        (0, None),
        (-1.0, None),
        (None, None),
        (1e20, None),
        (float("nan"), None),
    ],
)
def test_seconds_since_1970(seconds, time):
    assert moments.moment(seconds) == time
