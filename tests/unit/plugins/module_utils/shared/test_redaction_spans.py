# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Places to mask: lines, public words and the ends of quotes."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import redaction_spans
from ansible_collections.kubemend.remediation.plugins.module_utils.shared.redaction_spans import (
    Spans,
)


def masked(text: str, spans: "list[list[int]]") -> "list[str]":
    return [text[start:end] for start, end in spans]


def test_each_line_is_masked_without_the_blanks_around_it() -> None:
    text, spans = "key: a b \n  c\n\n d", Spans(1000)
    redaction_spans.lines(text, 5, len(text), spans)
    assert masked(text, spans) == ["a b", "c", "d"]


@pytest.mark.parametrize(("word", "is_masked"), [("true", False), (" NULL ", False), ("s3", True)])
def test_public_words_stay(word: str, is_masked: bool) -> None:
    spans = Spans(1000)
    assert redaction_spans.add(word, 0, len(word), spans) is is_masked
    assert bool(spans) is is_masked


@pytest.mark.parametrize(
    ("text", "inside", "rest"),
    [
        ('"a b" c', "a b", " c"),
        ("'a''b' c", "a''b", " c"),
        (r'"a\"b" c', r"a\"b", " c"),
        ('"""a\n"b""" c', 'a\n"b', " c"),
        (r"\"a\" c", "a", " c"),
        (r"\"a\\\"b\" c", r"a\\\"b", " c"),
        ('"never ends', "never ends", ""),
    ],
)
def test_where_a_quoted_scalar_ends(text: str, inside: str, rest: str) -> None:
    begin, end, after = redaction_spans.quoted(text, 0)
    assert (text[begin:end], text[after:]) == (inside, rest)


@pytest.mark.parametrize("text", ["a", "", "\\a", "- 'a'"])
def test_what_is_not_quoted(text: str) -> None:
    assert redaction_spans.quoted(text, 0) is None


def test_the_column_of_a_key_counts_its_quotes() -> None:
    assert redaction_spans.column_of("a:\n  key: b", 5) == 2
    assert redaction_spans.column_of('a:\n  "key": b', 6) == 2
    assert redaction_spans.line_end_of("ab\ncd", 3) == 5
    assert redaction_spans.line_end_of("ab\ncd", 0) == 2
