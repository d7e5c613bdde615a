# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `component_end`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ComponentLog:
    """The end of one component's log."""

    component: str = ""
    running: bool | None = None
    restart: int | None = None
    begun: float | None = None
    path: str | None = None
    first: float | None = None
    last: float | None = None
    lines: tuple[str, ...] = ()
    kubelet: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class ComponentEnd:
    """The last log lines of components that exited or started recently."""

    components: tuple[ComponentLog, ...] = ()
