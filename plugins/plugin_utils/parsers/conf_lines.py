# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of configuration files that a node sent as file records. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from ..evidence import memoize
from ..evidence.answers.file_record import FileRecord

# systemd's parse_boolean
YES, NO = ("1", "yes", "y", "true", "t", "on"), ("0", "no", "n", "false", "f", "off")
# the longest that distributions ship has some hundred; what lies behind is reported as not read
MAX_LINES = 20_000
MAX_PATH = 4096  # PATH_MAX


@memoize.last
def usable(files: Iterable[FileRecord]) -> list[FileRecord]:
    """Return the records that name a file; the first record of a path counts."""
    by_path: dict[str, FileRecord] = {}
    for file in files:
        if file.path.startswith("/") and len(file.path) <= MAX_PATH:
            by_path.setdefault(file.path, file)
    return list(by_path.values())


def target(file: FileRecord) -> str | None:
    """Return the path in a link's own text, or None if the file is no link."""
    if file.kind != "symlink" or not file.link or len(file.link) > MAX_PATH:
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(file.path), file.link))


def lines(file: FileRecord) -> Iterator[tuple[int, str]]:
    """Return (number, text) of each line of a file, from 1."""
    if file.text is None:
        return iter(())
    return numbered(file.text)


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Return (number, line) of each line of a text, from 1.

    str.splitlines would count a form feed and U+2028 as ends of lines, which no C program does.
    """
    return enumerate(text.split("\n", MAX_LINES)[:MAX_LINES], 1)


def why_unread(file: FileRecord) -> str | None:
    """Return why not all of a file is known, in one clause, or None.

    A link to /dev/null, a link that leads nowhere and a directory have nothing to read: the
    programs read nothing there either.
    """
    if file.text is not None:
        return _why_incomplete(file, file.text)
    if file.error == "missing" or file.kind == "directory" or target(file) == "/dev/null":
        return None
    if file.error:
        return file.error[:300]
    if file.truncated:
        return "too long"
    if file.binary:
        return "no text"
    return "no regular file"


def _why_incomplete(file: FileRecord, text: str) -> str | None:
    if file.truncated:
        return "cut off"
    if text.rstrip("\n").count("\n") >= MAX_LINES:
        return f"more than {MAX_LINES} lines"
    return None
