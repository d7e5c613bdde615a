# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user gave that cannot be used: one sentence, with the nearest word."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

SHOWN = 100  # characters of a word


class WrongInput(Exception):
    """The message is one sentence for the user."""


def nearest(word: str, words: Iterable[str]) -> str:
    """Return the end of a sentence that names the nearest of these words, or where they are."""
    words = list(words)
    by_lower = {item.lower(): item for item in words}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.5)
    if close:
        return f"the nearest one is {by_lower[close[0]]}"
    return f"there are {', '.join(words)}"


def shown(word: object, limit: int = SHOWN) -> str:
    """Return a word of the user, or what a server says, for a sentence, on one line."""
    text = "".join(char if char.isprintable() else "?" for char in str(word))
    if len(text) > limit:
        text = text[:limit] + "…"
    return text
