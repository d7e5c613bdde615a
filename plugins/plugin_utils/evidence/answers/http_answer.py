# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers to HTTP requests of collectors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HttpAnswer:
    """Status and body of one GET request."""

    url: str | None = None
    status: int | None = None
    body: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Clock:
    """The API server's Date header, between two readings of the node's own clock."""

    asked_at: float | None = None
    read_at: float | None = None
    date: str | None = None
