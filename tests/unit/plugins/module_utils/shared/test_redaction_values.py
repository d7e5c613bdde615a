# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The value of a key that is masked: scalars, lines below it, sequences and aliases."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import redaction_values
from ansible_collections.kubemend.remediation.plugins.module_utils.shared.redaction_spans import (
    Spans,
)


def masked(text: str, mark: str = ":") -> str:
    """Return the text with # for each letter of the value of its first `token`."""
    spans = Spans(1000)
    start = text.index("token")
    redaction_values.value(text, start, text.index(mark, start), spans)
    for begin, end in spans:
        text = text[:begin] + "#" * (end - begin) + text[end:]
    return text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("token: abc\nnext: d\n", "token: ###\nnext: d\n"),
        ("token: 'a c'\nnext: d\n", "token: '###'\nnext: d\n"),
        ("token: true\n", "token: true\n"),
        ("token:\nnext: d\n", "token:\nnext: d\n"),
        ("token: |\n  abc\n  d\nnext: d\n", "token: |\n  ###\n  #\nnext: d\n"),
        ("token: abc\n  d\nnext: d\n", "token: ###\n  #\nnext: d\n"),
        ("token:\n- abc\n- d\nnext: e\n", "token:\n- ###\n- #\nnext: e\n"),
        ("token:\n  user: abc\nnext: d\n", "token:\n  user: abc\nnext: d\n"),
        ("token: [abc, 'd']\nnext: e\n", "token: [###, '#']\nnext: e\n"),
        ('{"token": "abc", "next": "d"}', '{"token": "###", "next": "d"}'),
        ("{token: abc, next: d}", "{token: ###, next: d}"),
    ],
)
def test_yaml_and_json(text: str, expected: str) -> None:
    assert masked(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("token=abc\nnext=d\n", "token=###\nnext=d\n"),
        ('token="a c"\nnext=d\n', 'token="###"\nnext=d\n'),
        ("token=\nnext=d\n", "token=\nnext=d\n"),
    ],
)
def test_an_assignment(text: str, expected: str) -> None:
    assert masked(text, "=") == expected


def test_what_an_alias_means_is_masked_where_its_anchor_is() -> None:
    text, spans = "a: &x abc\nb: &y d\ntoken: *x\n", Spans(1000)
    start = text.index("token")
    redaction_values.value(text, start, start + 5, spans)
    assert (list(spans), spans.names) == ([], ["x"])
    redaction_values.anchored(text, "x", spans)
    assert [text[begin:end] for begin, end in spans] == ["abc"]
