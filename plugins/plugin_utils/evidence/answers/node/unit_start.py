# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `unit_start`."""

from __future__ import annotations

from dataclasses import dataclass

from ...decode import named


@dataclass(frozen=True)
class Check:
    """One condition or assertion of a unit."""

    text: str = ""
    assertion: bool = named("assert", False)
    trigger: bool = False
    met: bool | None = None
    last: bool | None = None
    seen: str | None = None
    path: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class StartPath:
    """A path, user or group that a unit's start needs."""

    setting: str = ""
    name: str = ""
    state: str = ""
    changed_at: float | None = None
    path: str | None = None
    line: int | None = None
    ended: int | None = None


@dataclass(frozen=True)
class StartUnit:
    """What systemd checks before it starts a unit."""

    name: str = ""
    load_state: str = ""
    load_error: str | None = None
    active_state: str = ""
    sub_state: str = ""
    result: str = ""
    exec_main_status: int | None = None
    manual_start: bool | None = None
    condition_result: bool | None = None
    condition_at: str | None = None
    assert_result: bool | None = None
    assert_at: str | None = None
    ended_at: float | None = None
    checks: tuple[Check, ...] = ()
    checks_from: str | None = None
    paths: tuple[StartPath, ...] = ()
    needs: tuple[StartUnit, ...] = ()
    said: tuple[str, ...] = ()
    after: tuple[str, ...] | None = None  # None: an older release collected
    fragment_path: str | None = None
    hidden: tuple[str, ...] = ()  # files of the same name that its own one hides
    how: str | None = None
    ordered: bool | None = None
    path: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class UnitStart:
    """The units of kubelet and runtime that do not run."""

    units: tuple[StartUnit, ...] = ()
