# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units as systemd reports them."""

from __future__ import annotations

from dataclasses import dataclass

from .file_record import SettingLine


@dataclass(frozen=True)
class Unit:
    """One unit of systemd."""

    name: str = ""
    load_state: str = ""
    active_state: str = ""
    sub_state: str = ""
    unit_file_state: str | None = None
    result: str = ""
    main_pid: int | None = None
    need_daemon_reload: bool = False
    n_restarts: int | None = None
    exec_main_status: int | None = None
    fragment_path: str | None = None
    drop_in_paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class LimitedUnit:
    """One unit with the limits that systemd gives its processes."""

    name: str = ""
    active_state: str = ""
    sub_state: str = ""
    result: str = ""
    exec_main_status: int | None = None
    fragment_path: str | None = None
    drop_in_paths: tuple[str, ...] = ()
    limit_nofile: tuple[int, int] | None = None  # soft, hard; -1 is infinity
    sets: tuple[SettingLine, ...] = ()
    ours: str | None = None  # LimitNOFILE of kubemend's drop-in
    main: LimitedProcess | None = None  # of descriptors only


@dataclass(frozen=True)
class LimitedProcess:
    """One process with its limit of open files."""

    pid: int | None = None
    comm: str = ""
    role: str = ""
    uid: int | None = None
    unit: str | None = None
    nofile: tuple[int, int] | None = None  # soft, hard; -1 is infinity
    open: int | None = None
    ticks: int | None = None
