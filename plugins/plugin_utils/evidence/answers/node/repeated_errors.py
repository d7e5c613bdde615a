# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `repeated_errors`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RepeatedError:
    """Lines of a log with the same text, but for numbers, ids and names of pods.

    minutes: in how many minutes of the clock there was one
    pods: of how many workloads they name pods, or how many images; at most 9
    line: the newest of them
    """

    count: int = 0
    minutes: int = 0
    first: float | None = None
    last: float | None = None
    pods: int = 0
    line: str = ""


@dataclass(frozen=True)
class ComponentErrors:
    """The most frequent errors of a component that runs.

    source: the unit, or the file of the log
    since: from when on its lines were counted
    """

    component: str = ""
    source: str = ""
    error: str | None = None
    started: float | None = None
    since: float | None = None
    lines: int = 0
    errors: int = 0
    cut: bool = False
    entries: tuple[RepeatedError, ...] = ()


@dataclass(frozen=True)
class RepeatedErrors:
    """What components say again and again."""

    read_at: float | None = None
    components: tuple[ComponentErrors, ...] = ()
