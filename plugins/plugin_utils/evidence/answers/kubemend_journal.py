# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs of kubemend recorded on a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Lock:
    """The run that locks a node."""

    run_id: str | None = None
    controller: Mapping[str, str | int | float | bool | None] | None = None
    boot_id: str | None = None
    granted_uptime: float | None = None
    granted_at: str | None = None
    seconds: float | None = None
    held: bool | None = None
    remaining: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class OpenStep:
    """A step that changed something and was not verified."""

    run_id: str | None = None
    step: str | None = None
    component: str | None = None
    path: str | None = None
    running: bool | None = None
    remedy: str | None = None
