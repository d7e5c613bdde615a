# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `descriptors`."""

from __future__ import annotations

from dataclasses import dataclass

from ..process_holder import Holder
from ..systemd_unit import LimitedUnit


@dataclass(frozen=True)
class UserShare:
    """What the processes of one user hold."""

    uid: int | None = None
    instances: int | None = None
    watches: int | None = None
    holders: int | None = None


@dataclass(frozen=True)
class Descriptors:
    """The processes that hold descriptors, inotify instances, watches and threads."""

    processes: int | None = None
    denied: int | None = None
    complete: bool | None = None
    uids: tuple[UserShare, ...] = ()
    inotify: tuple[Holder, ...] = ()
    nofile: tuple[Holder, ...] = ()
    open: tuple[Holder, ...] = ()
    threads: tuple[Holder, ...] = ()
    units: tuple[LimitedUnit, ...] | None = None  # None: systemd did not answer
