# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Untrusted text on a console: what acts on it is spelled out."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.safe_io import text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain é 日", "plain é 日"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb", "a\\u200bb"),
        ("a\u2028b", "a\\u2028b"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_moves_hides_or_reorders_is_spelled(given: str, shown: str) -> None:
    assert text.escape(given) == shown
