# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON of one line, as a node reads and writes it."""

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    json_line,
)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        -1.5,
        1e300,
        'a"\\\n\x7fü\U0001f600',
        [],
        {},
        {"a": [1, {"b": ()}], "c": {}},
        [[], [None, False]],
    ],
)
def test_json_line(value):
    line = json_line.dumps(value)
    assert json.loads(line) == json.loads(json.dumps(value))
    assert line.isascii()
    assert "\n" not in line


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, -2.5e3, true, null, "\\u00fc\\n"]}',
        " 7\n",
        '"x"',
        "[]",
        "NaN",
        "-Infinity",
        "12345678901234567890",
        '{"a":1,"a":2}',
    ],
)
def test_json_is_read_as_json_reads_it(text):
    assert repr(json_line.loads(text)) == repr(json.loads(text))


@pytest.mark.parametrize(
    "text",
    ["", " ", "{", '{"a" 1}', "[1,]", "1 2", "[] x", "nul", '"\x00"', "{'a': 1}", "\ufeff{}", "01"],
)
def test_what_is_no_json_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - Python's own words differ by version
        json.loads(text)
    with pytest.raises(ValueError):  # noqa: PT011 - Python's own words differ by version
        json_line.loads(text)


def test_json_line_has_no_numbers_that_json_has_not():
    assert json_line.dumps([float("nan"), float("inf")]) == "[null,null]"
