# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
r"""Joins an error of klog that has several lines, of which each is a line of the log.

klog writes a value of several lines as `err=<`, then each of its lines behind a tab, then ` >`, and
the fields behind it.
"""

import re

from . import lines as log_lines

BEGIN = b"=<"
MAX_LINES = 40  # that are joined to one
MAX_SCANNED = 200  # lines, as other programs may write in between
_END = re.compile(rb"\s?>(?:\s|\Z)")  # journald of old releases strips the space before it
_HEAD = re.compile(rb"[IWEF]\d{4} \d\d:|\{\"")


def joined(head, texts):
    """Return a line whose value goes on in the next texts, as one line with the value in quotes.

    A key of several lines is masked here, as it is none any more when its lines are joined.
    """
    cleaner, count, values = log_lines.Cleaner(), 0, []
    for text in texts:
        count += 1
        if _HEAD.match(text) or count > MAX_LINES:
            break
        end = _END.match(text)
        if not end:
            values.append(cleaner.clean(text.strip(), cleaner.within_key(text)))
            continue
        rest = text[end.end() :].strip()
        head, values = _quoted(head, values) + (rest and b" " + rest), []
        if not rest.endswith(BEGIN):
            return head
    return _quoted(head, values)


def _quoted(head, values):
    text = b" ".join(values).replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return head[:-1] + b'"' + text + b'"'


def journal_texts(data, match):
    """Yield what the program of a line says next, of a journal whose newest line is the first.

    match: the line, with the program's name as group 2 and its text as group 3
    """
    program = b" " + data[match.start(2) : match.start(3)]
    end = match.start() - 1
    for _number in range(MAX_SCANNED):
        if end < 0:
            return
        begin = data.rfind(b"\n", 0, end) + 1
        line = data[begin:end]
        end = begin - 1
        if program in line:
            yield line.partition(program)[2]


def file_texts(data, match):
    """Yield the texts of the next lines of a file of a container's log."""
    end = match.end()
    for _number in range(MAX_LINES):
        begin, end = end + 1, data.find(b"\n", end + 1)
        if end < 0:
            return
        piece = log_lines.written(data[begin:end])
        if piece:
            yield piece[3]
