# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of a text report, escaped in this one place."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Iterable

from ...module_utils.shared.text import counted
from ..safe_io.text import escape, plain

__all__ = ["LINE_LIMIT", "Page", "Paint", "clip", "columns", "cut", "escape", "plain"]

LINE_LIMIT = 2000
_WIDE = frozenset("WF")
_FILLER = "\1"  # which escape() leaves in no text

# (text, kind) -> coloured text. Kinds: critical, warning, info, present, unknown, clear, good,
# heading.
Paint = Callable[[str, str], str]


class Page:
    """Lines of the report. Every line goes through escape(); nothing else writes lines."""

    def __init__(self, width: int, paint: Paint) -> None:
        self.width = max(40, width)
        self.paint = paint
        self.lines: list[str] = []

    def line(self, text: str, label: str = "", kind: str = "") -> None:
        """Add one line, never wrapped: label (coloured) and text, cut after LINE_LIMIT."""
        self.lines.append(self._painted(escape(label), kind) + cut(escape(text)))

    def spans(self, parts: Iterable[tuple[str, str]]) -> None:
        """Add one line of parts, each with its kind of colour."""
        painted = (self._painted(escape(text), kind) for text, kind in parts)
        self.lines.append("  " + "   ".join(painted))

    def prose(
        self, text: str, label: str = "", kind: str = "", indent: int = 2, hang: int | None = None
    ) -> None:
        """Add text wrapped at spaces to the width, following lines indented by hang."""
        if hang is None:
            hang = indent + 2
        label = escape(label)
        space = " " * (indent + columns(label))
        # A list item is not parted from its dash: the reader copies it.
        wrapped = textwrap.wrap(
            _spread(escape(text)).replace("- --", "-\0--"),
            self.width,
            initial_indent=space,
            subsequent_indent=" " * hang,
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines = [part.replace("\0", " ").replace(_FILLER, "") for part in wrapped] or [space]
        self.lines.append(" " * indent + self._painted(label, kind) + lines[0][len(space) :])
        self.lines.extend(lines[1:])

    def gap(self) -> None:
        """Add an empty line, unless there is one or none yet."""
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def text(self) -> str:
        """Return all lines, each with its newline."""
        return "".join(line + "\n" for line in self.lines)

    def _painted(self, label: str, kind: str) -> str:
        if not label:
            return ""
        return self.paint(label, kind)


def columns(text: str) -> int:
    """Return the columns of a text on a terminal."""
    return len(_spread(text))


def clip(text: str, room: int) -> str:
    """Return a text that fits into so many columns, with a mark where it is cut."""
    text = escape(text)
    if columns(text) <= room:
        return text
    spread = _spread(text)
    end = room - 1
    if spread[end] == _FILLER:  # no half of a character
        end -= 1
    return spread[:end].replace(_FILLER, "") + "…"


def _spread(text: str) -> str:
    """Return a text with a filler after each character that takes two columns."""
    if text.isascii():
        return text
    return "".join(
        char + _FILLER if unicodedata.east_asian_width(char) in _WIDE else char for char in text
    )


def cut(text: str) -> str:
    """Return the text, cut after LINE_LIMIT with a note of how much is missing."""
    if len(text) <= LINE_LIMIT:
        return text
    return (
        text[:LINE_LIMIT]
        + f"… ({counted(len(text) - LINE_LIMIT, 'more character')} in report.json)"
    )
