# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text for one line of a report or an error message."""

BETWEEN = " \u2026 "  # stands for the middle of a text that is cut


def one_line(value, limit=300):
    """Return the value as one printable line of at most `limit` characters."""
    text = str(value)
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "\u2026"


def counted(number, noun: str, plural: str = "") -> str:
    """Return a number with its noun, in the plural unless it is one."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {plural or noun + 's'}"


def times(number) -> str:
    """Return how often something happened, in words."""
    return "once" if number == 1 else f"{number} times"


def ends(value, limit=300):
    """Return the value as one printable line; of a longer one its beginning and its end.

    The end of an error that wraps others ("a: b: c: cause") is the cause.
    """
    text = str(value)
    return without_middle(one_line(text, max(len(text), 1)), limit)


def without_middle(text, limit):
    """Return a text of at most `limit` characters: of a longer one its beginning and its end."""
    if len(text) <= limit:
        return text
    last = (limit - len(BETWEEN)) // 2
    return text[: limit - len(BETWEEN) - last] + BETWEEN + text[len(text) - last :]
