# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `failed_units`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FailedUnit:
    """A unit that failed, that systemd starts again and again, or that was stopped.

    bound_to: the services with which it is stopped
    lines: the last ones of its journal, oldest first
    error: why its journal was not read
    """

    name: str = ""
    type: str = ""
    load_state: str = ""
    active_state: str = ""
    sub_state: str = ""
    unit_file_state: str = ""
    result: str = ""
    exec_main_status: int | None = None
    n_restarts: int | None = None
    fragment_path: str | None = None
    ended_at: float | None = None
    bound_to: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class FailedUnits:
    """The units that failed.

    failed: how many there are in all; units: those that pods and their node need
    """

    failed: int = 0
    units: tuple[FailedUnit, ...] = ()
