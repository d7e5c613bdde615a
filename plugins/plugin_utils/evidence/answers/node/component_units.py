# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `component_units`."""

from __future__ import annotations

from dataclasses import dataclass

from ..systemd_unit import Unit


@dataclass(frozen=True)
class ComponentUnit(Unit):
    """One unit that runs a control-plane component, or should.

    said: systemd's own lines in this boot, oldest first. lines: the end of its journal.
    """

    component: str = ""
    argv: tuple[str, ...] = ()
    environment_files: tuple[str, ...] = ()
    wanted_by: tuple[str, ...] = ()
    started_at: float | None = None  # of its main process, the newest one
    ended_at: float | None = None  # when it last became inactive, in this boot
    begun_at: float | None = None  # when it last left inactive, in this boot
    said: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    journal_error: str | None = None


@dataclass(frozen=True)
class ComponentUnits:
    """The units of systemd that run the control plane."""

    units: tuple[ComponentUnit, ...] = ()
