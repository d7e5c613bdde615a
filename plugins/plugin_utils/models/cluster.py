# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What judging keeps of a host, and of a cluster of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ..evidence.document import one_line
from . import control_plane, node_identity
from . import cpu_manager as pinning
from . import pressure as node_pressure
from .control_plane import ControlPlane
from .cpu_manager import Pinning
from .node_identity import Identity
from .pressure import Pressure
from .result import Missing

# A lock that nobody renewed for this long has no holder: left by a retired master, or by a former
# release's lock kind.
STALE_LOCK_SECONDS = 120


@dataclass(frozen=True)
class Host:
    """What judging keeps of one host once its evidence file is closed.

    Memory must not grow with the files.
    """

    host: str
    node: str | None
    key: str | None
    status: str
    reason: str
    groups: tuple[str, ...]
    names: frozenset[str]
    statuses: Mapping[str, str]
    control_plane: ControlPlane | None
    etcd: Mapping[str, Any]
    installer: tuple[str, ...]
    devices: Mapping[str, Any] = field(default_factory=dict)
    kubelet_started: datetime | None = None
    pinning: Pinning = Pinning()
    identity: Identity = Identity()
    working: frozenset[str] = frozenset()  # runs of ours that are at work there
    api_way: Mapping[str, Any] = field(default_factory=dict)
    scheduler_log: Mapping[str, Any] = field(default_factory=dict)
    pressure: Pressure = Pressure()
    # seconds by which it is ahead of the controller's, at least and at most
    clock: tuple[float, float] | None = None
    # also where etcd's member list was not answered
    etcd_said: Mapping[str, Any] = field(default_factory=dict)
    # what collectors without an answer said
    errors: Mapping[str, str] = field(default_factory=dict)
    # of Kubernetes on this machine; None where the evidence does not say
    traces: tuple[str, ...] | None = None
    kubelet_unit: bool = False

    def missing(self, collector: str, *, absent_is_answer: bool = True) -> tuple[Missing, ...]:
        """Empty when this host's collector answered, else the one thing that is missing."""
        if self.status != "ok":
            return (Missing(self.host, "host", self.status),)
        status = self.statuses.get(collector, "not_asked")
        if status == "ok" or (status == "absent" and absent_is_answer):
            return ()
        return (Missing(self.host, collector, status),)


@dataclass(frozen=True)
class Stranger:
    """A member of the control plane that is no host of the inventory. source: what names it."""

    name: str
    source: str


@dataclass
class Cluster:
    """One cluster's hosts and the API's view of it. api: collectors of the cluster evidence.

    Api_status: how it went.
    """

    key: str | None
    hosts: list[Host]
    api: Mapping[str, Any] = field(default_factory=dict)
    api_host: str | None = None
    api_status: str = "not_asked"
    api_reason: str = ""
    collected_at: str = ""
    strangers: list[Stranger] = field(default_factory=list)
    members: list[Host] = field(default_factory=list)
    unplaced: list[Host] = field(default_factory=list)
    # Node of the API -> which host of the run it is
    node_hosts: dict[str, Host | None] = field(default_factory=dict)
    control_plane_nodes: set[str] = field(default_factory=set)

    def answer(self, collector: str) -> Any:
        """A cluster collector's data when it answered, else None."""
        record = self.api.get(collector) or {}
        if record.get("status") == "ok":
            return record.get("data")
        return None

    def rows(self, collector: str, name: str) -> list[Mapping[str, Any]]:
        """What this list of a cluster collector's data holds, without what is none of its rows."""
        data = self.answer(collector)
        if isinstance(data, Mapping):
            found = data.get(name)
        else:
            found = None
        if isinstance(found, (list, tuple)):
            return [one for one in found if isinstance(one, Mapping)]
        return []

    def cut(self, collector: str) -> tuple[Missing, ...]:
        """What is missing where the API's list was too long, or took too long: the rest of it."""
        if (self.api.get(collector) or {}).get("truncated"):
            return (Missing(self.api_host or "cluster API", collector, "timeout"),)
        return ()

    def missing(self, collector: str, *, absent_is_answer: bool = False) -> tuple[Missing, ...]:
        """Empty when the API answered this collector, else the one thing that is missing."""
        if self.api_status == "ok":
            nobody = "not_asked"
        else:
            nobody = self.api_status
        status = (self.api.get(collector) or {}).get("status") or nobody
        if status == "ok" or (status == "absent" and absent_is_answer):
            return ()
        return (Missing(self.api_host or "cluster API", collector, status),)

    @property
    def working(self) -> frozenset[str]:
        """Runs of ours that are at work, as far as the hosts and whoever asked the API know."""
        return frozenset().union(
            _working(self.answer("work") or {}), *(host.working for host in self.hosts)
        )

    @property
    def version(self) -> str | None:
        return (self.answer("server") or {}).get("git_version")


MAX_ERROR = 300  # characters of what a collector said
LAST = 253402300799.0  # the end of the year 9999, in seconds since the epoch


def host_of(document: Mapping[str, Any]) -> Host:
    """The extract of one node evidence document."""
    system = control_plane.data(document, "system")
    names = {
        document["host"],
        document.get("node"),
        document.get("address"),
        system.get("hostname"),
    }
    names.update(system.get("addresses") or ())
    installer = control_plane.data(document, "installer").get("paths") or ()
    kubelet = control_plane.data(document, "kubelet").get("process")
    if isinstance(kubelet, Mapping):
        kubelet = kubelet
    else:
        kubelet = {}
    return Host(
        document["host"],
        document.get("node"),
        document.get("cluster_key"),
        document.get("status", "ok"),
        document.get("reason") or "",
        tuple(document.get("groups") or ()),
        frozenset(str(name) for name in names if name) - {"127.0.0.1", "::1"},
        {
            name: record.get("status", "error")
            for name, record in document.get("collectors", {}).items()
        },
        control_plane.extract(document),
        control_plane.data(document, "etcd"),
        tuple(installer),
        control_plane.data(document, "devices"),
        moment(kubelet.get("started_at")),
        pinning.extract(document),
        node_identity.extract(document),
        _working(control_plane.data(document, "journal")),
        control_plane.data(document, "api_way"),
        control_plane.data(document, "scheduler_log"),
        node_pressure.extract(document),
        _clock(document, system.get("clock")),
        _etcd(document),
        _errors(document),
        _traces(document),
        bool(control_plane.data(document, "kubelet").get("unit")),
    )


def _etcd(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the collector etcd knows, whether or not it could answer everything."""
    record = document.get("collectors", {}).get("etcd")
    if isinstance(record, Mapping):
        found = record.get("data")
    else:
        found = None
    if isinstance(found, Mapping):
        return found
    return {}


def _errors(document: Mapping[str, Any]) -> dict[str, str]:
    """What the collectors said that gave no answer."""
    found = {}
    for name, record in (document.get("collectors") or {}).items():
        if record.get("status") not in ("ok", "not_asked") and record.get("error"):
            found[str(name)] = one_line(record["error"], MAX_ERROR)
    return found


def _traces(document: Mapping[str, Any]) -> tuple[str, ...] | None:
    """What shows that a machine is a node.

    None where evidence does not say, as that of older releases.
    """
    found = control_plane.data(document, "installer").get("traces")
    if isinstance(found, (list, tuple)):
        return tuple(str(item) for item in found)
    return None


def _clock(document: Mapping[str, Any], clock: Any) -> tuple[float, float] | None:
    """Between which bounds the host's clock is ahead of the controller's.

    None where one of the three times is missing, or they contradict each other.
    """
    times = [
        value
        for value in (document.get("asked_at"), clock, document.get("received_at"))
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < LAST
    ]
    if len(times) < 3 or times[0] > times[2]:
        return None
    return times[1] - times[2], times[1] - times[0]


def _working(journal: Mapping[str, Any]) -> frozenset[str]:
    """Runs that hold the lock of a host, or have a step under way on it."""
    held = journal.get("lock") or {}
    steps = [one for one in journal.get("unproven") or () if one.get("running")]
    return frozenset(
        str(one.get("run_id")) for one in [*steps, *([held] if held.get("held") else [])]
    )


def unjudged(known: Mapping[str, Any], reason: str) -> Host:
    """The extract of a host whose evidence cannot be judged; known.

    Its document or former extract.
    """
    key, node, groups = (
        known.get("cluster_key") or known.get("key"),
        known.get("node"),
        known.get("groups"),
    )
    return Host(
        known["host"],
        node if isinstance(node, str) else None,
        key if isinstance(key, str) else None,
        "error",
        reason,
        tuple(groups) if isinstance(groups, (list, tuple)) else (),
        frozenset([known["host"]]),
        {},
        None,
        {},
        (),
    )


def timestamp(text: str | None) -> datetime | None:
    """An RFC 3339 time of the API (with or without fractions), or None."""
    try:
        found = datetime.fromisoformat(str(text or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    if found.tzinfo:
        return found
    return found.replace(tzinfo=timezone.utc)


def moment(seconds: object) -> datetime | None:
    """A time that a node gives in seconds since 1970, or None."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
