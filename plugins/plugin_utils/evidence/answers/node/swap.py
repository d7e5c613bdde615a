# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `swap`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..file_record import FileRecord


@dataclass(frozen=True)
class Memory:
    """The swap and memory counters of /proc/meminfo."""

    swap_total_kib: int | None = None
    swap_free_kib: int | None = None
    mem_available_kib: int | None = None


@dataclass(frozen=True)
class Swap:
    """The swap that is on, and what may switch it on at a boot."""

    swaps: str | None = None
    memory: Memory | None = None
    fstab: FileRecord | None = None
    units: tuple[Mapping[str, str], ...] | None = None  # None: systemd did not answer
    cmdline: str | None = None
    links: Mapping[str, str] | None = None
    own: tuple[str, ...] | None = None
    container: bool | None = None
    systemd: int | None = None
    files: tuple[FileRecord, ...] | None = None
