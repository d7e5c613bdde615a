# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of a report for a person, escaped in this one place."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable

LINE_LIMIT = 2000

# Control and format characters (escapes, bidi marks, zero width), surrogates, private use, line
# separators.
_UNPRINTABLE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

Paint = Callable[[str, str], str]


def escape(text: str) -> str:
    """The text as one harmless line.

    What could move the cursor, hide or reorder text is spelled out.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spell(char) for char in text)


def _spell(char: str) -> str:
    if unicodedata.category(char) not in _UNPRINTABLE:
        return char
    code = ord(char)
    return _SHORT.get(char) or (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def plain(text: str, kind: str) -> str:
    """No colour. kind: critical, warning, info, present, unknown, clear, good, heading."""
    return text


class Page:
    """Lines of the report. Every one goes through escape(); nothing else writes lines."""

    def __init__(self, width: int, paint: Paint) -> None:
        self.width = max(40, width)
        self.paint = paint
        self.lines: list[str] = []

    def line(self, text: str, label: str = "", kind: str = "") -> None:
        """One line, never wrapped: label (coloured) and text; longer than LINE_LIMIT it is cut."""
        clean, label = escape(text), escape(label)
        if len(clean) > LINE_LIMIT:
            clean = (
                clean[:LINE_LIMIT] + f"… ({len(clean) - LINE_LIMIT} more characters in report.json)"
            )
        self.lines.append((self.paint(label, kind) if label else "") + clean)

    def prose(
        self, text: str, label: str = "", kind: str = "", indent: int = 2, hang: int | None = None
    ) -> None:
        """Text wrapped at spaces to the width, following lines indented by hang."""
        hang, label = indent + 2 if hang is None else hang, escape(label)
        space = " " * (indent + len(label))
        # A list item is not parted from its dash: the reader copies it.
        wrapped = textwrap.wrap(
            escape(text).replace("- --", "-\0--"),
            self.width,
            initial_indent=space,
            subsequent_indent=" " * hang,
            break_long_words=False,
            break_on_hyphens=False,
        )
        wrapped = [part.replace("\0", " ") for part in wrapped]
        first = (wrapped[0] if wrapped else space)[len(space) :]
        self.lines.append(" " * indent + (self.paint(label, kind) if label else "") + first)
        self.lines.extend(wrapped[1:])

    def gap(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")
