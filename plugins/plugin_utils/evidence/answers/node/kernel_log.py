# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `kernel_log`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelLine:
    """Lines of the kernel's log of one kind with the same text, but for numbers.

    line: the newest of them
    trace: the functions that the kernel was in, innermost first, with their modules
    """

    kind: str = ""
    count: int = 0
    first: float | None = None
    last: float | None = None
    line: str = ""
    trace: tuple[str, ...] = ()


@dataclass(frozen=True)
class MemoryKill:
    """A process that the kernel killed for want of memory.

    scope: what was without memory, "machine" or "cgroup"; empty where the kernel does not say
    """

    pid: int = 0
    program: str = ""
    at: float | None = None
    scope: str = ""


@dataclass(frozen=True)
class Panic:
    """What the kernel that ended before this boot said, as kdump or the firmware kept it.

    lines: of its end, oldest first. trace: as that of a line
    """

    path: str = ""
    at: float | None = None
    lines: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelLog:
    """What the kernel said in the last hour of what keeps a node from its work.

    kills: since its log begins; None in evidence of an older release
    """

    since: float | None = None
    cut: bool = False
    rows: tuple[KernelLine, ...] = ()
    kills: tuple[MemoryKill, ...] | None = None
    panic: Panic | None = None
