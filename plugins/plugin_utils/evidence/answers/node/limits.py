# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `limits`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..file_record import Assignment, FileRecord, SettingLine
from ..systemd_unit import LimitedProcess, LimitedUnit

UNTRIED = "untried"


@dataclass(frozen=True)
class InotifyTrial:
    """Whether inotify instances and a watch could be opened."""

    instance: str | None = UNTRIED  # the error; None: it could be opened
    watch: str | None = UNTRIED
    uid: int | None = None
    opened: int | None = None


@dataclass(frozen=True)
class InitLimits:
    """The limits of PID 1."""

    nofile: tuple[int, int] | None = None
    nproc: tuple[int, int] | None = None
    cap_sys_resource: bool | None = None


@dataclass(frozen=True)
class Ufw:
    """The sysctl file of ufw."""

    sysctl: FileRecord | None = None


@dataclass(frozen=True)
class Tuned:
    """The sysctl settings of tuned's active profile."""

    reapply: str | None = None
    rows: tuple[Assignment, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class SysctlOverrides:
    """What sets kernel parameters after sysctl.d."""

    ufw: Ufw | None = None
    networkd: tuple[Assignment, ...] | None = None
    tuned: Tuned | None = None


@dataclass(frozen=True)
class Limits:
    """The limits of open files and inotify, and the files that set them."""

    kernel: Mapping[str, str | None] | None = None
    file_nr: tuple[int, int] | None = None  # allocated, maximum
    threads: int | None = None
    inotify: InotifyTrial | None = None
    init: InitLimits | None = None
    processes: tuple[LimitedProcess, ...] | None = None  # None: not collected
    units: tuple[LimitedUnit, ...] | None = None  # None: systemd did not answer
    pam: tuple[SettingLine, ...] | None = None  # None: not collected
    late: SysctlOverrides | None = None
    user_ns: str | None = None
    used_up: tuple[str, ...] = ()
    sysctl_files: tuple[FileRecord, ...] | None = None
    limits_files: tuple[FileRecord, ...] | None = None
