# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `scheduler_log`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SchedulerLog:
    """One scheduler's log, as far as it reports nodes added and removed."""

    pid: int | None = None
    level: int | None = None
    path: str | None = None
    whole: bool = False
    events: tuple[tuple[str, str, str], ...] = ()  # kind, node, zone
    error: str | None = None


@dataclass(frozen=True)
class SchedulerLogs:
    """The logs of a node's schedulers."""

    logs: tuple[SchedulerLog, ...] = ()
