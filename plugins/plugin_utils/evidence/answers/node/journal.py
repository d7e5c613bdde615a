# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `journal`."""

from __future__ import annotations

from dataclasses import dataclass

from ..kubemend_journal import Lock, OpenStep


@dataclass(frozen=True)
class PendingChange:
    """A change that was not finished."""

    run_id: str | None = None
    entry: str | None = None
    error: str | None = None
    state: str | None = None
    sha256: str | None = None
    temp: str | None = None
    step: str | None = None
    what: str | None = None
    why: str | None = None
    at: str | None = None
    path: str | None = None
    real: str | None = None
    sha256_before: str | None = None
    sha256_after: str | None = None


@dataclass(frozen=True)
class FailedStep:
    """The last step of a component that does not run."""

    run_id: str | None = None
    step: str | None = None
    component: str | None = None
    path: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class RaisedLevel:
    """A log verbosity that was raised and not restored."""

    run_id: str | None = None
    entry: str | None = None
    path: str | None = None
    real: str | None = None
    level: str | None = None
    former: str | None = None
    at: str | None = None
    until: str | None = None
    overdue: bool | None = None
    restart: bool | None = None
    by_hand: str | None = None


@dataclass(frozen=True)
class RunRecord:
    """One run that changed the node."""

    run_id: str = ""
    entries: int | None = None
    committed: int | None = None
    not_done: int | None = None
    superseded: int | None = None
    pending: int | None = None
    unreadable: int | None = None
    paths: tuple[str, ...] = ()
    first: str | None = None
    last: str | None = None
    reverts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Journal:
    """The changes of earlier runs, and the run that locks the node."""

    pending: tuple[PendingChange, ...] = ()
    unproven: tuple[OpenStep, ...] = ()
    down: tuple[FailedStep, ...] = ()
    runs: tuple[RunRecord, ...] = ()
    lock: Lock | None = None
    busy: bool | None = None
    levels: tuple[RaisedLevel, ...] | None = None  # None: an older release collected
    temp_files: tuple[str, ...] = ()
