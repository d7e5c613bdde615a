# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text for a terminal: what acts on it is spelled out."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    text_page,
)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain --flag=1", "plain --flag=1"),
        ("grün … 日本", "grün … 日本"),
        ("\x1b[2J\x1b]0;x\x07", r"\x1b[2J\x1b]0;x\x07"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202efdp", r"\u202efdp"),
        ("\u2066x\u2069", r"\u2066x\u2069"),
        ("a\u200bb\ufeff", r"a\u200bb\ufeff"),
        ("\u2028", r"\u2028"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("\x7f", r"\x7f"),
    ],
)
def test_escape(raw, shown):
    assert text_page.escape(raw) == shown
