# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `component_restart`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ComponentContainer:
    """A container of a control plane component that the runtime has, running or not."""

    component: str = ""
    id: str = ""
    sandbox: str = ""
    pod_uid: str = ""
    attempt: int = 0
    state: str = ""
    created: float | None = None
    started: float | None = None
    finished: float | None = None
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None
    memory_limit: int | None = None  # in bytes; None: it has none, or the runtime does not tell


@dataclass(frozen=True)
class JournalLines:
    """The lines of one journal that matter, the oldest first.

    oldest: from when on they were read, None where the whole time was
    error: why they were not read
    """

    lines: tuple[str, ...] = ()
    oldest: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class ComponentRestart:
    """How containers of control plane components ended of late.

    containers: None where the runtime was not asked; unread says why
    """

    since: float | None = None
    runtime_started: float | None = None
    containers: tuple[ComponentContainer, ...] | None = None
    unread: str | None = None
    runtime: JournalLines = JournalLines()
    kubelet: JournalLines = JournalLines()
    kernel: JournalLines = JournalLines()
