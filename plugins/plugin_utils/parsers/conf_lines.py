# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of configuration files that a node sent as file records.

Pure, and nothing in a record is trusted.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..evidence import memoize

# systemd's parse_boolean
YES, NO = ("1", "yes", "y", "true", "t", "on"), ("0", "no", "n", "false", "f", "off")
# the longest that distributions ship has some hundred; what lies behind is reported as not read
MAX_LINES = 20_000
MAX_PATH = 4096  # PATH_MAX


@memoize.last
def usable(records: Any) -> list[Mapping[str, Any]]:
    """Return the records that name a file; the first record of a path counts."""
    if isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Iterable):
        return []
    by_path: dict[str, Mapping[str, Any]] = {}
    for record in records:
        path = _absolute_path(record)
        if path is not None:
            by_path.setdefault(path, record)
    return list(by_path.values())


def _absolute_path(record: Any) -> str | None:
    if not isinstance(record, Mapping):
        return None
    path = record.get("path")
    if isinstance(path, str) and path.startswith("/") and len(path) <= MAX_PATH:
        return path
    return None


def target(record: Mapping[str, Any]) -> str | None:
    """Return the path in a link's own text, or None if the record is no link."""
    link = record.get("link")
    if record.get("kind") != "symlink" or not isinstance(link, str):
        return None
    if not link or len(link) > MAX_PATH:
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(record["path"]), link))


def lines(record: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Return (number, text) of each line of a file, from 1."""
    text = record.get("text")
    if isinstance(text, str):
        return numbered(text)
    return iter(())


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Return (number, line) of each line of a text, from 1.

    str.splitlines would count a form feed and U+2028 as ends of lines, which no C program does.
    """
    return enumerate(text.split("\n", MAX_LINES)[:MAX_LINES], 1)


def why_unread(record: Mapping[str, Any]) -> str | None:
    """Return why not all of a file is known, in one clause, or None.

    A link to /dev/null, a link that leads nowhere and a directory have nothing to read: the
    programs read nothing there either.
    """
    text, error = record.get("text"), record.get("error")
    if isinstance(text, str):
        return _why_incomplete(record, text)
    if error == "missing" or record.get("kind") == "directory" or target(record) == "/dev/null":
        return None
    if error:
        return str(error)[:300]
    if record.get("truncated"):
        return "too long"
    if record.get("binary"):
        return "no text"
    return "no regular file"


def _why_incomplete(record: Mapping[str, Any], text: str) -> str | None:
    if record.get("truncated"):
        return "cut off"
    if text.rstrip("\n").count("\n") >= MAX_LINES:
        return f"more than {MAX_LINES} lines"
    return None
