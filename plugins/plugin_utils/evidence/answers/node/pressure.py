# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `pressure`."""

from __future__ import annotations

from dataclasses import dataclass

from .etcd import Stalls


@dataclass(frozen=True)
class Filesystem:
    """The free space where one of the kubelet's directories lies."""

    name: str = ""
    path: str = ""
    mount: str | None = None
    type: str | None = None
    device: str | None = None
    total: int | None = None
    free: int | None = None
    inodes: int | None = None
    inodes_free: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Memory:
    """The memory of the host, in bytes."""

    total: int | None = None
    available: int | None = None


@dataclass(frozen=True)
class Pids:
    """The threads that run, and the most that can."""

    threads: int | None = None
    max: int | None = None


@dataclass(frozen=True)
class Cgroups:
    """How many cgroups the kernel has."""

    memory: int | None = None


@dataclass(frozen=True)
class Pressure:
    """The free space, memory and process ids of a node."""

    filesystems: tuple[Filesystem, ...] = ()
    memory: Memory | None = None
    pids: Pids | None = None
    cgroups: Cgroups | None = None  # None: an older release collected
    stalls: Stalls | None = None  # None: an older release collected
    used_up: tuple[str, ...] = ()
