# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Untrusted text, made harmless for a console."""

from __future__ import annotations

import unicodedata

# Control and format characters (escapes, bidi marks, zero width), surrogates, private use, line
# separators.
_UNPRINTABLE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape(text: str) -> str:
    """Return the text as one line; what could move the cursor, hide or reorder it is spelled."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spell(char) for char in text)


def _spell(char: str) -> str:
    if unicodedata.category(char) not in _UNPRINTABLE:
        return char
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def plain(text: str, kind: str) -> str:
    """Return the text without colour, whatever kind of text it is."""
    return text
