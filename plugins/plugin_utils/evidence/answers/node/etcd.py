# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `etcd`."""

from __future__ import annotations

from dataclasses import dataclass

from ..http_answer import HttpAnswer


@dataclass(frozen=True)
class ApiServer:
    """The etcd flags of the API server."""

    etcd_servers: tuple[str, ...] = ()
    etcd_prefix: str | None = None


@dataclass(frozen=True)
class Member:
    """One member of etcd."""

    id: str | None = None
    name: str = ""
    peer_urls: tuple[str, ...] = ()
    client_urls: tuple[str, ...] = ()
    learner: bool = False


@dataclass(frozen=True)
class MemberStatus:
    """What the member that answered reports about itself."""

    version: str | None = None
    member_id: str | None = None
    cluster_id: str | None = None
    leader: str | None = None
    raft_term: int | None = None
    raft_index: int | None = None
    db_size: int | None = None
    db_size_in_use: int | None = None
    quota: int | None = None
    quota_source: str | None = None
    learner: bool = False
    errors: tuple[str, ...] = ()
    endpoint: str | None = None


@dataclass(frozen=True)
class Alarm:
    """One alarm of etcd."""

    member_id: str | None = None
    alarm: str = ""


@dataclass(frozen=True)
class Etcd:
    """The members of etcd, and the state of the one that answered."""

    api_server: ApiServer | None = None
    endpoint: str | None = None
    cluster_id: str | None = None
    members: tuple[Member, ...] = ()
    error: str | None = None
    status: MemberStatus | None = None
    alarms: tuple[Alarm, ...] | None = None
    health: HttpAnswer | None = None
