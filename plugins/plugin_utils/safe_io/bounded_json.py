# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Foreign JSON, refused before it is parsed where its values would take too much memory."""

from __future__ import annotations

import json
from typing import Any

# What takes memory once it is parsed: strings, lists, objects, by what each costs (60, 120, 240
# bytes). Millions of empty ones fit into a
# few megabytes of text and a gigabyte of memory, and the parser cannot be interrupted.
MAX_WEIGHT, CHUNK = 3_000_000, 262_144


def decoded(data: str | bytes) -> Any:
    """Return the values of foreign JSON.

    Raises:
        ValueError: It is no JSON (or RecursionError).
        OverflowError: It would take too much memory.
    """
    text = data
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    # The first is more than the second: lines of a log may hold quotes and brackets of their own.
    if _cost(text.count('"'), text) > MAX_WEIGHT and _weight(text) > MAX_WEIGHT:
        raise OverflowError("more values than any evidence has")
    return _DECODER.decode(text)


def _cost(quotes: int, text: str) -> int:
    return quotes // 2 + 2 * text.count("[") + 4 * text.count("{")


def _weight(text: str) -> int:
    """Return what the JSON takes, without what is inside its strings.

    Piece by piece, because the pieces of a bomb take memory too.
    """
    weight, quotes, inside, rest = 0, 0, 0, ""
    for begin in range(0, len(text), CHUNK):
        # An escaped quote ends no string, and after an escaped backslash a quote is not escaped.
        piece = (rest + text[begin : begin + CHUNK]).replace("\\\\", "").replace('\\"', "")
        rest = ""
        if piece.endswith("\\"):
            rest = piece[-1:]
        parts = piece.split('"')
        weight += _cost(0, "".join(parts[inside::2]))
        quotes += len(parts) - 1
        inside = quotes % 2
        if weight + quotes // 2 > MAX_WEIGHT:
            break
    return weight + quotes // 2


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
