# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `package_changes`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PackageChange:
    """A package that was upgraded, installed or removed.

    old, new: versions, empty where there is none, or the log does not tell it
    """

    time: float | None = None
    action: str = ""
    name: str = ""
    old: str = ""
    new: str = ""


@dataclass(frozen=True)
class PackageChanges:
    """What changed since a time, oldest first."""

    since: float | None = None
    items: tuple[PackageChange, ...] = ()
