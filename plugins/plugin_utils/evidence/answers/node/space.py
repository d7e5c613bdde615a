# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `space`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Space:
    """The free space of one directory."""

    path: str = ""
    free_bytes: int | None = None
    total_bytes: int | None = None
    free_inodes: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Store:
    """The file system of a folder that a node needs.

    use: what lies there. device: the same for folders of one file system. free_bytes: what root
    may still write.
    """

    path: str = ""
    use: str = ""
    device: int | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    inodes: int | None = None
    free_inodes: int | None = None
    read_only: bool | None = None
    error: str | None = None


@dataclass(frozen=True)
class DatabaseFile:
    """The file of the database of this node's etcd, whether it runs or not."""

    path: str = ""
    bytes: int | None = None
    mtime: float | None = None


@dataclass(frozen=True)
class Spaces:
    """The free space of the directories of logs and of the journal, and of a node's folders."""

    folders: tuple[Space, ...] = ()
    stores: tuple[Store, ...] | None = None  # None: an older release collected
    database: DatabaseFile | None = None
