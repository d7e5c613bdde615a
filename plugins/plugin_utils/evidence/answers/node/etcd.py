# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `etcd`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
class Times:
    """A histogram of times since the start of the process.

    seconds: their sum. p99: below it lie 99 % of them.
    """

    count: float | None = None
    seconds: float | None = None
    p99: float | None = None


@dataclass(frozen=True)
class Peer:
    """Another member, as the one of this node sees it. active: whether they are connected."""

    id: str | None = None
    active: bool | None = None
    sent_failures: float | None = None
    round_trip: Times | None = None


@dataclass(frozen=True)
class Metrics:
    """The metrics of the member of this node, None for one that it does not have."""

    member_id: str | None = None
    version: str | None = None
    db_size: float | None = None
    db_size_in_use: float | None = None
    quota: float | None = None
    has_leader: float | None = None
    is_leader: float | None = None
    is_learner: float | None = None
    leader_changes: float | None = None
    slow_applies: float | None = None
    slow_reads: float | None = None
    heartbeat_failures: float | None = None
    failed_proposals: float | None = None
    pending_proposals: float | None = None
    snapshots_in_progress: float | None = None
    started_at: float | None = None
    wal_fsync: Times | None = None
    backend_commit: Times | None = None
    peers: tuple[Peer, ...] = ()


@dataclass(frozen=True)
class Database:
    """The file of the database."""

    bytes: int | None = None
    mtime: float | None = None


@dataclass(frozen=True)
class Log:
    """The files of the write-ahead log, with the time of the newest."""

    files: int | None = None
    bytes: int | None = None
    mtime: float | None = None


@dataclass(frozen=True)
class DataFolder:
    """The data folder of the member of this node, and the disk below it.

    snapshots: how many there are. rotational: None where the disk is not known.
    """

    path: str = ""
    database: Database | None = None
    log: Log | None = None
    snapshots: int | None = None
    mount: str | None = None
    filesystem: str | None = None
    source: str | None = None
    device: str | None = None
    disk: str | None = None
    rotational: bool | None = None
    error: str | None = None


@dataclass(frozen=True)
class Stalls:
    """The percentage of the last minute in which work of the machine waited for this."""

    io: float | None = None
    cpu: float | None = None


@dataclass(frozen=True)
class Throttled:
    """In how many periods of its CPU limit a process ran, and was stopped by it."""

    periods: int | None = None
    throttled: int | None = None


@dataclass(frozen=True)
class LocalMember:
    """The etcd that runs on this node.

    embedded: within k3s. settings: by flag, wherever they are set.
    """

    pid: int | None = None
    started_at: float | None = None
    uptime_s: float | None = None
    state: str | None = None  # of the process, such as T where it is stopped
    embedded: bool = False
    unit: str | None = None
    static: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    quota: int | None = None
    quota_source: str | None = None
    metrics: Metrics | None = None
    metrics_url: str | None = None
    metrics_error: str | None = None
    folder: DataFolder | None = None
    stalls: Stalls | None = None
    throttled: Throttled | None = None


@dataclass(frozen=True)
class ObjectCount:
    """How many objects of a resource etcd has; None where it did not tell."""

    resource: str = ""
    count: int | None = None


@dataclass(frozen=True)
class Etcd:
    """The members of etcd, and the state of the one that answered.

    local: of the member on this node; None where there is none, or an older release collected.
    objects: None where they were not counted, as in an audit of a database that is not full
    """

    api_server: ApiServer | None = None
    endpoint: str | None = None
    cluster_id: str | None = None
    members: tuple[Member, ...] = ()
    error: str | None = None
    status: MemberStatus | None = None
    alarms: tuple[Alarm, ...] | None = None
    health: HttpAnswer | None = None
    objects: tuple[ObjectCount, ...] | None = None
    local: LocalMember | None = None
