# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `api_server`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HealthAnswer:
    """The answer to one request, without its body.

    checks: how many checks it lists; failed: the names of those that fail
    """

    status: int | None = None
    checks: int = 0
    failed: tuple[str, ...] = ()
    error: str | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class ServerAnswer:
    """What one API server answers at its own address.

    waiting: how many requests wait in its queues; None where it does not tell
    """

    pid: int | None = None
    address: str | None = None
    port: int | None = None
    waiting: int | None = None
    livez: HealthAnswer = HealthAnswer()
    readyz: HealthAnswer = HealthAnswer()
    version: HealthAnswer = HealthAnswer()


@dataclass(frozen=True)
class PortHolder:
    """The process that listens on a port of a component that does not run."""

    component: str = ""
    port: int | None = None
    pid: int | None = None
    comm: str = ""
    unit: str | None = None
    pod_uid: str | None = None
    static: bool | None = None


@dataclass(frozen=True)
class ApiServerAnswers:
    """The answers of the API servers of a node, and the ports of components that do not run.

    unseen: whether a process that listens there may have been missed
    """

    servers: tuple[ServerAnswer, ...] = ()
    ports: tuple[PortHolder, ...] = ()
    unseen: bool = False
    used_up: tuple[str, ...] = ()
