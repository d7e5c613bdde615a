# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text for one line."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared.text import one_line


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
