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

from ..evidence import memoize as remember

# systemd's parse_boolean
YES, NO = ("1", "yes", "y", "true", "t", "on"), ("0", "no", "n", "false", "f", "off")
# the longest that distributions ship has some hundred; what lies behind is reported as not read
MAX_LINES = 20_000
MAX_PATH = 4096  # PATH_MAX


@remember.last
def usable(records: Any) -> list[Mapping[str, Any]]:
    """The records that name a file, each path once; the first stands."""
    found: dict[str, Mapping[str, Any]] = {}
    for record in (
        records
        if isinstance(records, Iterable) and not isinstance(records, (str, bytes, Mapping))
        else ()
    ):
        path = record.get("path") if isinstance(record, Mapping) else None
        if isinstance(path, str) and path.startswith("/") and len(path) <= MAX_PATH:
            found.setdefault(path, record)
    return list(found.values())


def target(record: Mapping[str, Any]) -> str | None:
    """Where a link leads, as far as its own text says; None for what is no link."""
    link = record.get("link")
    if (
        record.get("kind") != "symlink"
        or not isinstance(link, str)
        or not link
        or len(link) > MAX_PATH
    ):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(record["path"]), link))


def lines(record: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """(number, text) of each line of a file, from 1."""
    text = record.get("text")
    return numbered(text) if isinstance(text, str) else iter(())


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """The same of its text. str.splitlines would count a form feed and U+2028 as ends of lines,
    which no C program does.
    """
    return enumerate(text.split("\n", MAX_LINES)[:MAX_LINES], 1)


def why_unread(record: Mapping[str, Any]) -> str | None:
    """Why not all of a file is known, in one clause.

    None when it is, and for what has nothing to read.

    A link to /dev/null, a link that leads nowhere and a folder have nothing to read: the programs
    read nothing there either.
    """
    text, error = record.get("text"), record.get("error")
    if isinstance(text, str):
        if record.get("truncated"):
            return "cut off"
        return (
            f"more than {MAX_LINES} lines" if text.rstrip("\n").count("\n") >= MAX_LINES else None
        )
    if error == "missing" or record.get("kind") == "directory" or target(record) == "/dev/null":
        return None
    if error:
        return str(error)[:300]
    if record.get("truncated"):
        return "too long"
    return "no text" if record.get("binary") else "no regular file"
