# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `api_load`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Level:
    """One priority level of the API server, or one kind of requests where it has none.

    running, waiting: requests at that moment; rejected: within the seconds between two readings
    """

    name: str = ""
    running: int = 0
    waiting: int = 0
    limit: int | None = None
    rejected: int = 0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Client:
    """Requests of one user that wait, or that run, by verb and resource."""

    user: str = ""
    level: str = ""
    verb: str = ""
    resource: str = ""
    requests: int = 0


@dataclass(frozen=True)
class ServerLoad:
    """The load of one API server.

    dumped: whether it told whose requests wait; None where it was not asked
    """

    pid: int | None = None
    seconds: float | None = None
    levels: tuple[Level, ...] = ()
    clients: tuple[Client, ...] = ()
    terminated: int = 0
    dumped: bool | None = None
    error: str | None = None


@dataclass(frozen=True)
class ApiLoad:
    """The load of the API servers of a node."""

    servers: tuple[ServerLoad, ...] = ()
