# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `system`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OsRelease:
    """The distribution, as /etc/os-release names it."""

    id: str | None = None
    version_id: str | None = None
    pretty_name: str | None = None


@dataclass(frozen=True)
class System:
    """What the host is."""

    hostname: str | None = None
    machine_id: str | None = None
    boot_id: str | None = None
    uptime_s: float | None = None
    kernel: str | None = None
    os_release: OsRelease | None = None
    cgroup: str | None = None
    addresses: tuple[str, ...] | None = None  # None: an older release collected
    clock: float | None = None
