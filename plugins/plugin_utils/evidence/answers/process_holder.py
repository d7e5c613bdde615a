# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that hold descriptors, watches, memory or threads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Holder:
    """One process with the pod or unit that it belongs to, and what it holds."""

    pid: int | None = None
    comm: str = ""
    uid: int | None = None
    unit: str | None = None
    pod_uid: str | None = None
    container_id: str | None = None
    pod: str | None = None
    container: str | None = None
    instances: int | None = None
    watches: int | None = None
    open: int | None = None
    threads: int | None = None
    soft: int | None = None
    hard: int | None = None
    session: str | None = None
    ticks: int | None = None
    rss: int | None = None
