# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text for one line."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared.text import (
    counted,
    ends,
    one_line,
    times,
    without_middle,
)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("plain", "plain"),
        ("two\nlines\t and  blanks ", "two lines and blanks"),
        ("\x1b[31mred\x1b[0m", "[31mred [0m"),
        ("größe", "größe"),
        (ValueError("x"), "x"),
        (None, "None"),
        ("", ""),
    ],
)
def test_one_line_is_printable(value: object, line: str) -> None:
    assert one_line(value) == line


def test_one_line_is_bounded() -> None:
    assert one_line("x" * 300) == "x" * 300
    assert one_line("x" * 301) == "x" * 299 + "…"
    assert one_line("abcdef", 4) == "abc…"


@pytest.mark.parametrize(
    ("value", "limit", "line"),
    [
        ("a: b: cause", 11, "a: b: cause"),
        ("a: b: cause", 10, "a: b … use"),
        ("a:\tb:\n cause", 10, "a: b … use"),
        ("", 10, ""),
    ],
)
def test_the_end_of_a_long_text_stays(value: str, limit: int, line: str) -> None:
    assert ends(value, limit) == line
    assert len(ends(value, limit)) <= limit


def test_tabs_stay_where_the_middle_goes() -> None:
    assert without_middle("\tabcdefghijk", 9) == "\tab … ijk"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((0, "host"), "0 hosts"),
        ((1, "host"), "1 host"),
        ((2, "host"), "2 hosts"),
        ((1, "entry", "entries"), "1 entry"),
        ((2, "entry", "entries"), "2 entries"),
        ((1, "pod waits", "pods wait"), "1 pod waits"),
        ((3, "pod waits", "pods wait"), "3 pods wait"),
    ],
)
def test_a_number_has_its_noun_in_the_plural_unless_it_is_one(words, text):
    assert counted(*words) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 times"), (1, "once"), (2, "2 times")])
def test_how_often_something_happened(number, text):
    assert times(number) == text
