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
class Spaces:
    """The free space of the directories of logs and of the journal."""

    folders: tuple[Space, ...] = ()
