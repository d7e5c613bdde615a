# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `jobs`."""

from __future__ import annotations

from dataclasses import dataclass

from .api_pod import Event, PodLife


@dataclass(frozen=True)
class Job:
    """One Job that may have had too many pods."""

    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    created: str | None = None
    completions: int | None = None
    parallelism: int | None = None
    suspend: bool | None = None
    active: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    finished: bool | None = None
    owner: str | None = None
    pods: tuple[PodLife, ...] = ()
    events: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Jobs:
    """The Jobs that may have had too many pods."""

    listed: int | None = None
    events_oldest: str | None = None
    items: tuple[Job, ...] = ()
