# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a sentence of the product states, whatever words it is made of.

A fact is what no other wording may drop: a name, a number with its unit, a file with its line, a
code, a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_VALUE = re.compile(r"[\d/=_]|\w\.\w")  # what no prose has
_MARKS = ".,;:()[]{}'\""


def facts(text: str | None, *stated: str) -> None:
    """Assert that a text states these facts, in this order, and no other value."""
    assert text is not None, f"there is no text to state {stated}"
    at, rest = 0, []
    for fact in stated:
        match = _whole(fact).search(text, at)
        assert match, f"{fact!r} is missing after {text[:at]!r} in {text!r}"
        rest.append(text[at : match.start()])
        at = match.end()
    rest.append(text[at:])
    known = set(_words(" ".join(stated)))
    others = [word for word in _words(" ".join(rest)) if _VALUE.search(word) and word not in known]
    assert not others, f"{others} are not among the facts of {text!r}"


def facts_of_each(texts: Iterable[str | None], *rows: tuple[str, ...]) -> None:
    """Assert that there is one text for each row of facts, and that it states them."""
    listed = list(texts)
    assert len(listed) == len(rows), listed
    for text, row in zip(listed, rows, strict=True):
        facts(text, *row)


def _whole(fact: str) -> re.Pattern[str]:
    """Match a fact that is no part of a longer name, number or path."""
    before = r"(?<![\w/-])(?<!\d\.)" if re.match(r"[\w/]", fact) else ""
    after = r"(?![\w/-]|[.:]\d)" if re.search(r"\w$", fact) else ""
    return re.compile(before + re.escape(fact) + after)


def _words(text: str) -> Iterator[str]:
    return (word for part in text.split() if (word := part.strip(_MARKS)))
