# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `largest`."""

from __future__ import annotations

from dataclasses import dataclass

from ..process_holder import Holder


@dataclass(frozen=True)
class Folder:
    """One large directory."""

    path: str = ""
    bytes: int | None = None
    files: int | None = None


@dataclass(frozen=True)
class LargestFolders:
    """The largest directories of a file system."""

    name: str = ""
    folders: tuple[Folder, ...] = ()
    bytes: int | None = None
    files: int | None = None
    complete: bool | None = None


@dataclass(frozen=True)
class Largest:
    """The largest directories and processes of what is nearly used up."""

    filesystems: tuple[LargestFolders, ...] = ()
    memory: tuple[Holder, ...] = ()
    threads: tuple[Holder, ...] = ()
