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

from ...module_utils.shared import kernel_modules
from ..evidence.answers.file_record import FileRecord
from . import conf_lines, swap_files

FOLDERS = kernel_modules.LOAD
SINGLE = kernel_modules.SINGLE
# more than a name on a line is no module to systemd, options neither
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


@dataclass(frozen=True)
class Named:
    """Line that names a module.

    real: the target of a linked file

    Debian's modules.conf links to /etc/modules.
    """

    name: str
    path: str
    line: int
    real: str | None = None

    @property
    def place(self) -> str:
        """Return path:line, with the target of a linked file."""
        place = f"{self.path}:{self.line}"
        if self.real:
            return f"{place} ({self.real})"
        return place


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
        """Return whether no boot mounts it; the last of auto and noauto counts."""
        options = [option for option in self.options if option in ("auto", "noauto")]
        return options[-1:] == ["noauto"]


def modules(files: Iterable[FileRecord]) -> list[Named]:
    """Return the modules that the next boot loads, in the order of files.

    One file of a name counts, /etc before /usr; - and _ are alike.
    """
    rows = []
    for file in _chosen(files):
        real = conf_lines.target(file)
        for number, text in conf_lines.lines(file):
            word = text.strip(" \t\r\n\v\f")
            if _NAME.match(word):
                rows.append(Named(word.replace("-", "_"), file.path, number, real))
    return rows


def unread(files: Iterable[FileRecord]) -> list[str]:
    """Return the files that count and are not wholly known, and directories not listed."""
    chosen = [file for file in _chosen(files) if conf_lines.why_unread(file)]
    folders = [
        file
        for file in conf_lines.usable(files)
        if file.path in FOLDERS and file.error not in (None, "missing")
    ]
    return [file.path for file in (*chosen, *folders)]


def _chosen(files: Iterable[FileRecord]) -> list[FileRecord]:
    named: dict[str, tuple[int, FileRecord]] = {}
    for file in conf_lines.usable(files):
        folder, name = posixpath.split(file.path)
        if folder not in FOLDERS or not name.endswith(".conf") or name.startswith("."):
            continue
        rank = FOLDERS.index(folder)
        if name not in named or rank < named[name][0]:
            named[name] = rank, file
    return [named[name][1] for name in sorted(named)]


def mounts(fstab: FileRecord | None) -> list[Mount]:
    """Return the mounts of fstab, without swap; systemd skips a line that is none."""
    rows: list[Mount] = []
    if fstab is None:
        return rows
    for file in conf_lines.usable([fstab]):
        mounts = (_mount(text, file.path, number) for number, text in conf_lines.lines(file))
        rows += filter(None, mounts)
    return rows


def plain(path: str) -> str:
    """Return the normalised path; POSIX leaves two slashes at its beginning."""
    return "/" + posixpath.normpath(path).lstrip("/")


def _mount(text: str, path: str, number: int) -> Mount | None:
    words = re.split(r"[ \t]+", text.strip(" \t\r"))
    fields = [swap_files.unescaped(word) for word in words if word]
    if len(fields) < 3 or fields[0].startswith("#"):
        return None
    if not fields[1].startswith("/") or fields[2] in ("swap", "ignore"):
        return None
    options: tuple[str, ...] = ()
    if len(fields) > 3:
        options = tuple(fields[3].split(","))
    device, point, kind = fields[:3]
    return Mount(device, plain(point), kind, options, path, number, text.strip())


def above(paths: Iterable[str]) -> set[str]:
    """Return these paths and every directory above them."""
    directories = {"/"}
    for path in paths:
        current = path
        while current.strip("/"):
            directories.add(current)
            current = posixpath.dirname(current)
    return directories
