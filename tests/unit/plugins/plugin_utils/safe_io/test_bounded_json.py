# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON that would take too much memory is refused before it is parsed.

What only looks like it is read.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.safe_io import (
    bounded_json,
)

LINE = json.dumps(
    {"ts": 1, "msg": 'a "quoted" \\ [word] {x}', "more": [{"a": {"b": [[], {}, "\\", "\\\\"]}}] * 6}
)


def test_a_log_in_json_is_no_bomb() -> None:
    """What stands inside a string takes no memory but its own."""
    text = json.dumps(
        {
            "lines": (
                [{"text": LINE, "pod": "p", "component": "c"}]
                * (16 * 1024 * 1024 // len(json.dumps(LINE)))
            )
        }
    )
    assert 15_000_000 < len(text) < 20_000_000
    assert bounded_json._cost(text.count('"'), text) > bounded_json.MAX_WEIGHT
    begin = time.process_time()
    assert len(bounded_json.decoded(text)["lines"]) > 10000
    assert time.process_time() - begin < 10


BOMBS = [
    "[" + '{"":0},' * 4500000 + "0]",
    '["' + "\\\\" * 200000 + '",' + "[]," * 2000000 + "0]",
    '["' + "x" * 262141 + '\\"",' + "{}," * 1000000 + "0]",
    '["\\"{",' + '"\\\\",' * 4000000 + "0]",
    '["' + "x" * 262141 + '\\\\",' + "{}," * 1000000 + "0]",
]


@pytest.mark.parametrize("text", BOMBS, ids=range(len(BOMBS)))
def test_a_bomb_is_refused_before_it_is_parsed(text: str) -> None:
    with pytest.raises(OverflowError):
        bounded_json.decoded(text)


@pytest.mark.parametrize("value", ['"', "\\", '\\"', '["\\\\"]', "{[" * 9, '\\\\\\"', "x\\n\n"])
@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1000])
def test_only_what_is_outside_of_strings_is_counted(
    monkeypatch: pytest.MonkeyPatch, value: str, chunk: int
) -> None:
    monkeypatch.setattr(bounded_json, "CHUNK", chunk)
    assert bounded_json._weight(json.dumps({value: [value, value], "b": {}})) == 4 * 2 + 2 + 4
