# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `hangs`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """A process that waits in the kernel and cannot be ended."""

    pid: int | None = None
    name: str = ""
    wchan: str = ""  # the function of the kernel in which it waits
    pod_uid: str | None = None


@dataclass(frozen=True)
class RemoteMount:
    """A mount whose server or program may be gone."""

    point: str = ""
    type: str = ""
    source: str = ""
    answers: bool | None = None
    error: str | None = None  # the errno with which it answers; older releases did not collect it


@dataclass(frozen=True)
class SilentDevice:
    """A block device that completed no request while processes waited."""

    name: str = ""
    mapped: str | None = None  # its name of device-mapper
    suspended: bool = False
    in_flight: int = 0
    points: tuple[str, ...] = ()  # where it is mounted


@dataclass(frozen=True)
class Parent:
    """A process with many children that it does not wait for."""

    pid: int | None = None
    name: str = ""
    zombies: int = 0


@dataclass(frozen=True)
class Hangs:
    """What cannot end on a node."""

    tasks: tuple[Task, ...] = ()
    mounts: tuple[RemoteMount, ...] = ()
    devices: tuple[SilentDevice, ...] = ()
    zombies: tuple[Parent, ...] = ()
