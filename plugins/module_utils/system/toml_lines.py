# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of a TOML file: which key has which text, in which table. Nodes have no parser of TOML."""

QUOTES = ("'", '"')


def rows(text):
    """Return [(line, table, key, text of the value)] of a file; a table is a tuple of names.

    Of a value of several lines only the first is there. Texts of several lines are passed over.
    """
    lines, table, fence = [], (), None
    for number, line in enumerate(text.split("\n"), 1):
        row = line.strip()
        if fence is not None:
            fence = None if fence in row else fence
        elif row.startswith("[") and "=" not in _bare(row):
            table = names(_bare(row).strip().strip("[]"))
        elif row and not row.startswith("#"):
            key, equal, value = row.partition("=")
            if equal:
                lines.append((number, table, names(key)[-1:], _bare(value).strip()))
                fence = _fence(value)
    return [(number, table, key[0], value) for number, table, key, value in lines if key]


def _fence(value):
    """Return the quotes of a text that goes on in the next line, or None."""
    for quotes in ('"""', "'''"):
        if value.count(quotes) == 1:
            return quotes
    return None


def names(dotted):
    """Return the names of a dotted key; quotes keep the dots of a name."""
    parts, part, quote = [], "", None
    for char in dotted.strip():
        if quote:
            quote = None if char == quote else quote
            part += "" if quote is None else char
        elif char in QUOTES:
            quote = char
        elif char == ".":
            parts.append(part.strip())
            part = ""
        else:
            part += char
    parts.append(part.strip())
    return tuple(filter(None, parts))


def _bare(row):
    """Return a line without its comment; a # within quotes is none."""
    quote = None
    for at, char in enumerate(row):
        if quote:
            quote = None if char == quote else quote
        elif char in QUOTES:
            quote = char
        elif char == "#":
            return row[:at]
    return row


def texts(value):
    """Return the quoted texts of a value, as of an array in one line."""
    parts, begin, quote = [], 0, None
    for at, char in enumerate(value):
        if quote is None and char in QUOTES:
            quote, begin = char, at + 1
        elif char == quote:
            parts.append(value[begin:at])
            quote = None
    return parts
