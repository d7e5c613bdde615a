# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text for one line."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared.text import (
    ends,
    one_line,
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
