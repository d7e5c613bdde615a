# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `locks`."""

from __future__ import annotations

from dataclasses import dataclass

from ..http_answer import Clock


@dataclass(frozen=True)
class LockObject:
    """One lock object of a leader election."""

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    holder: str | None = None
    renew_time: str | None = None
    transitions: int | None = None
    lease_duration_s: int | None = None


@dataclass(frozen=True)
class LockServer:
    """The lock objects as one API server has them."""

    address: str | None = None
    error: str | None = None
    kube_system_uid: str | None = None
    objects: tuple[LockObject, ...] = ()
    beat: str | None = None
    clock: Clock | None = None


@dataclass(frozen=True)
class Locks:
    """The lock objects of every API server."""

    servers: tuple[LockServer, ...] = ()
