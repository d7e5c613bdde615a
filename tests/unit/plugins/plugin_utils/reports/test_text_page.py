# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text for a terminal: what acts on it is spelled out."""

from __future__ import annotations

import unicodedata

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    text_page,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.text_page import (
    Page,
    clip,
    plain,
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


def on_terminal(line):
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)


@pytest.mark.parametrize("width", [80, 100, 160])
def test_text_of_any_script_fits_into_the_width(width):
    page = Page(width, plain)
    page.prose("\u8282\u70b9 is down, " * 40, label="\u539f\u56e0: ")
    assert max(map(on_terminal, page.lines)) <= width
    assert on_terminal(page.lines[0]) > width - 12
    assert "".join(page.lines).count("\u8282\u70b9") == 40


def test_a_long_word_stays_whole():
    page = Page(80, plain)
    page.prose(f"see {'x' * 200} now", label="fix: ")
    assert any("x" * 200 in line for line in page.lines)


def test_a_clipped_text_fits_with_its_mark():
    assert clip("abc", 3) == "abc"
    assert clip("abcd", 3) == "ab\u2026"
    assert on_terminal(clip("\u8282\u70b9\u8282\u70b9", 6)) <= 6
    assert clip("a\u202eb", 20) == "a\\u202eb"
