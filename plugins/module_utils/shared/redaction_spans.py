# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What redaction.py and redaction_values.py have in common: places to mask, lines and quotes."""

from .redaction_names import PUBLIC

NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
BLANK = " \t\r\n"
QUOTES = ("'", '"')
FAR = 65536
AT_ONCE = 256  # letters that a method of str visits in the time of one step of a loop
LINE = 16  # steps of a loop that take the time that a line takes


class TooMuchWork(Exception):
    """A text in which so many secrets seem to nest that the search for their ends is given up."""


class Spans(list):
    """The places of a text that are masked, and the state of the search for them.

    names: the anchors whose aliases are secrets.
    depth: how deeply the node that is read now is nested.
    work: how many more letters may be visited. In hostile text each letter could start a search
        through all the others, which would take hours.
    runs: kind -> (begin, end) of the latest run of letters of that kind.
    blocks: column -> (begin, end) of the latest block of lines whose values are masked.
    """

    def __init__(self, work):
        super().__init__()
        self.names = []
        self.depth = 0
        self.work = work
        self.runs = {}
        self.blocks = {}

    def spend(self, letters):
        """Count visited letters; raise TooMuchWork if there are too many."""
        self.work -= letters
        if self.work < 0:
            raise TooMuchWork

    def run_end(self, kind, offset, find):
        """Return where the run ends that contains `offset`; `find(offset)` searches once in it."""
        begin, end = self.runs.get(kind, (0, 0))
        if not begin <= offset < end:
            end = find(offset)
            self.runs[kind] = (offset, end)
        return end


def every(text, word):
    """Return wherever the word stands."""
    position = text.find(word)
    while position >= 0:
        yield position
        position = text.find(word, position + 1)


def lines(text, start, end, spans):
    """Mask what is written on each line between start and end, not the white space around it."""
    spans.spend(max(0, end - start))
    while start < end:
        stop = text.find("\n", start, end)
        if stop < 0:
            stop = end
        begin, right = start, stop
        while begin < right and text[begin] in BLANK:
            begin += 1
        while right > begin and text[right - 1] in BLANK:
            right -= 1
        if right > begin:
            spans.append([begin, right])
        start = stop + 1


def add(text, start, end, spans):
    """Mask a value unless it is a public word; return whether it is masked."""
    spans.spend(max(0, end - start))
    if text[start:end].strip().lower() in PUBLIC:
        return False
    lines(text, start, end, spans)
    return True


def column_of(text, start):
    """Return the column in which a key begins, with its quotes."""
    column = start - (text.rfind("\n", 0, start) + 1)
    if text[start - 1 : start] in QUOTES:
        return column - 1
    return column


def blanks(text, offset):
    """Return the place after the blanks that begin here."""
    while offset < len(text) and text[offset] in " \t":
        offset += 1
    return offset


def after(text, position, belongs):
    """Return the place after the letters that belong to the word that begins here."""
    while position < len(text) and belongs(text[position]):
        position += 1
    return position


def line_end_of(text, offset):
    """Return the place where the line ends."""
    end = text.find("\n", offset)
    if end < 0:
        return len(text)
    return end


def quoted(text, offset):
    r"""Return (begin, end, end of the quotes) of the quoted scalar that begins here, or None.

    JSON within JSON uses \" for quotes.
    """
    first = offset
    while first < len(text) and text[first] == "\\":
        first += 1
    quote, escapes = text[first : first + 1], first - offset
    if quote not in QUOTES:
        return None
    if not escapes:
        if text.startswith(quote * 3, offset):
            end = text.find(quote * 3, offset + 3)
        else:
            end = -1
        if end >= 0:  # TOML
            return offset + 3, end, end + 3
        end = closing(text, offset)
        return offset + 1, end, end + 1
    for end in _quotes(text, quote, first + 1, first + FAR):
        if len(text[first + 1 : end]) - len(text[first + 1 : end].rstrip("\\")) == escapes:
            return first + 1, end - escapes, end + 1
    end = line_end_of(text, offset)
    return first + 1, end, end


def closing(text, offset):
    """Return where the quoted scalar that begins at offset ends."""
    quote, position = text[offset], offset + 1
    while position < len(text):
        if text[position] == "\\" and quote == '"':
            position += 2
            continue
        if text[position] == quote:
            if quote == "'" and text[position + 1 : position + 2] == "'":
                position += 2
                continue
            return position
        position += 1
    return len(text)


def _quotes(text, quote, offset, end):
    position = text.find(quote, offset, end)
    while position >= 0:
        yield position
        position = text.find(quote, position + 1, end)
