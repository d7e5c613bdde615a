# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a boot follows, taken apart.

Modules-load.d as systemd-modules-load reads it, the mounts of fstab. Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...module_utils.shared import kernel_modules
from . import conf_lines, swap_files

FOLDERS = kernel_modules.LOAD
SINGLE = kernel_modules.SINGLE
# more than a name on a line is no module to systemd, options neither
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


@dataclass(frozen=True)
class Named:
    """A line that names a module. real.

    Where the file leads when it is a link, as Debian's modules.conf does to /etc/modules.
    """

    name: str
    path: str
    line: int
    real: str | None = None

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}" + (f" ({self.real})" if self.real else "")


@dataclass(frozen=True)
class Mount:
    """A line of fstab that mounts a file system at boot."""

    what: str
    point: str
    type: str
    options: tuple[str, ...]
    path: str
    line: int
    text: str

    @property
    def noauto(self) -> bool:
        """Nobody mounts it at boot; of auto and noauto the last counts."""
        told = [option for option in self.options if option in ("auto", "noauto")]
        return bool(told) and told[-1] == "noauto"


def modules(records: Any) -> list[Named]:
    """The modules that the next boot loads, in the order of files.

    One file of a name, /etc before /usr; - and _ are alike.
    """
    found = []
    for record in _chosen(records):
        real = conf_lines.target(record)
        for number, text in conf_lines.lines(record):
            word = text.strip(" \t\r\n\v\f")
            if _NAME.match(word):
                found.append(Named(word.replace("-", "_"), record["path"], number, real))
    return found


def unread(records: Any) -> list[str]:
    """The files that count and are not wholly known, and folders that could not be listed."""
    chosen = [record for record in _chosen(records) if conf_lines.why_unread(record)]
    folders = [
        record
        for record in conf_lines.usable(records)
        if record["path"] in FOLDERS and record.get("error") not in (None, "missing")
    ]
    return [str(record["path"]) for record in (*chosen, *folders)]


def _chosen(records: Any) -> list[Any]:
    named: dict[str, tuple[int, Any]] = {}
    for record in conf_lines.usable(records):
        folder, name = posixpath.split(record["path"])
        if folder not in FOLDERS or not name.endswith(".conf") or name.startswith("."):
            continue
        rank = FOLDERS.index(folder)
        if name not in named or rank < named[name][0]:
            named[name] = rank, record
    return [named[name][1] for name in sorted(named)]


def mounts(record: Any) -> list[Mount]:
    """What fstab mounts, without swap; a line that is none is passed over, as systemd does."""
    found = []
    for one in conf_lines.usable([record]):
        for number, text in conf_lines.lines(one):
            fields = [
                swap_files.unescaped(field)
                for field in re.split(r"[ \t]+", text.strip(" \t\r"))
                if field
            ]
            if (
                len(fields) < 3
                or fields[0].startswith("#")
                or not fields[1].startswith("/")
                or fields[2] in ("swap", "ignore")
            ):
                continue
            options = tuple(fields[3].split(",")) if len(fields) > 3 else ()
            found.append(
                Mount(
                    fields[0],
                    plain(fields[1]),
                    fields[2],
                    options,
                    one["path"],
                    number,
                    text.strip(),
                )
            )
    return found


def plain(path: str) -> str:
    """A path without what changes nothing about it: POSIX leaves two slashes at its beginning."""
    return "/" + posixpath.normpath(path).lstrip("/")


def above(paths: Iterable[str]) -> set[str]:
    """These paths, and every folder above them."""
    found = {"/"}
    for path in paths:
        while path.strip("/"):
            found.add(path)
            path = posixpath.dirname(path)
    return found
