# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a cluster accepts writes, and what keeps it from that. Pure.

Two witnesses: etcd's own word (an alarm, no leader), and the leases of nodes and components, which
are written every few seconds: while all of them are older than their own duration, nothing was
written, and nothing that the API says is newer than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ..evidence import memoize
from ..evidence.document import UNFORESEEN, one_line, unforeseen
from . import ages
from .api_node import NodeView, and_others, views
from .cluster import Cluster, Host, timestamp
from .membership import etcd_names
from .result import EvidenceRef, Missing

CODE = "KM115"
# the usual durations; API servers renew theirs every 10 s, and it lasts an hour
NODE_SECONDS, LOCK_SECONDS, BEAT_SECONDS = 40.0, 15.0, 60.0
# after a duration has ended: a writer that failed tries again within this time
RETRY_SECONDS = 20.0
YOUNG_SECONDS = 60.0  # a kubelet that has just started may not have renewed yet
AHEAD_SECONDS = 10.0  # a time of the future is of another clock, and tells no age
NOSPACE, CORRUPT = "NOSPACE", "CORRUPT"
NO_QUORUM, NO_ETCD = "no quorum", "no etcd"
NO_LEADER = "0"  # how etcd writes that it knows no leader
# of a connection, as the collector words it
UNREACHED = ("refused", "timed out", "No route", "unreachable")


@dataclass(frozen=True)
class Lease:
    """A lease: its holder, when it was renewed, how long ago, and for how long it is valid.

    writer: its host, where that is known.
    """

    name: str
    renewed: datetime
    least: float
    most: float
    lasts: float
    writer: Host | None = None
    alive: bool = False

    @property
    def over(self) -> bool:
        """Whether it has ended, and its writer had time to try again."""
        return self.least > self.lasts + RETRY_SECONDS


@dataclass(frozen=True)
class Etcd:
    """What etcd says of itself on all hosts. cause: NOSPACE, CORRUPT, no quorum, no etcd, or empty.

    Told: that cause in words.

    sure: whether it holds from its first second on, when leases are still fresh. An election is
    over in that time.
    """

    cause: str = ""
    told: str = ""
    proofs: tuple[EvidenceRef, ...] = ()
    sure: bool = False


@dataclass(frozen=True)
class Writes:
    """refused: True, False, or None where it is not known; cause and told as of Etcd.

    since: the last write that is known.
    """

    refused: bool | None
    cause: str = ""
    told: str = ""
    since: datetime | None = None
    proofs: tuple[EvidenceRef, ...] = ()
    missing: tuple[Missing, ...] = ()
    note: str = ""


@memoize.last
def state(cluster: Cluster) -> Writes:
    """Whether this cluster accepts writes. Evidence of an unexpected shape proves nothing."""
    try:
        return _state(cluster)
    except UNFORESEEN as error:
        return Writes(
            None,
            missing=(cluster.missing_answer("judging", "error"),),
            note=unforeseen(error),
        )


def _state(cluster: Cluster) -> Writes:
    found, said = leases(cluster), etcd(cluster)
    last = max((one.renewed for one in found), default=None)
    proofs = (*_read(cluster, found), *said.proofs)
    if said.sure:
        return Writes(True, said.cause, said.told, last, proofs)
    if any(one.most <= one.lasts for one in found):
        return Writes(False, since=last)
    if said.cause:
        return Writes(True, said.cause, said.told, last, proofs)
    if found and all(one.over for one in found) and any(one.alive for one in found):
        return Writes(True, "", "", last, proofs)
    note = ages.clocks(cluster).doubt
    return Writes(None, since=last, missing=_missing(cluster, found), note=note)


def refused(cluster: Cluster) -> bool:
    """Whether it is known that this cluster accepts no writes."""
    return cluster.key is not None and state(cluster).refused is True


def why(cluster: Cluster) -> str:
    """One sentence that refuses what needs a write.

    Empty where writes are accepted, or that is unknown.
    """
    if not refused(cluster):
        return ""
    told = state(cluster).told.partition("; ")[0]
    return (
        f"the cluster accepts no writes ({CODE}{f': {told}' if told else ''}), and this needs one"
    )


def _missing(cluster: Cluster, found: list[Lease]) -> tuple[Missing, ...]:
    """Return what is missing for it: the API's answers, or the leases in them."""
    missing = (*cluster.missing("nodes"), *cluster.missing("locks"))
    if missing:
        return missing
    listed = cluster.rows("nodes", "items")
    older = not found and not any("lease" in item for item in listed)
    return (cluster.missing_answer("nodes", "not_asked" if older else "error"),)


def leases(cluster: Cluster) -> list[Lease]:
    """Every lease whose age is known: of nodes, of locks, and of the API servers themselves."""
    return [
        one
        for one in (*_of_nodes(cluster), *_of_locks(cluster), *_of_servers(cluster))
        if one.most >= -AHEAD_SECONDS
    ]


def _of_nodes(cluster: Cluster) -> Iterator[Lease]:
    for view in views(cluster):
        known = ages.age_of(cluster, view.leased, view.host, "nodes")
        if view.leased is not None and known is not None:
            yield Lease(
                f"node {view.name}",
                view.leased,
                *known,
                view.lease_seconds or NODE_SECONDS,
                view.host,
                _runs(cluster, view),
            )


def _runs(cluster: Cluster, view: NodeView) -> bool:
    """Whether its kubelet is known to run, and has for long enough to renew its lease."""
    host = view.host
    if host is None or host.status != "ok" or host.kubelet_started is None:
        return False
    known = ages.age_of(cluster, host.kubelet_started, host, "nodes")
    return known is not None and known[0] > YOUNG_SECONDS


def _of_locks(cluster: Cluster) -> Iterator[Lease]:
    hosts = {
        name.lower(): host
        for host in cluster.hosts
        for name in (*host.names, host.node or "")
        if name
    }
    newest: dict[str, tuple[datetime, Mapping[str, Any]]] = {}
    for server in cluster.rows("locks", "servers"):
        objects = server.get("objects")
        for lock in objects if isinstance(objects, (list, tuple)) else ():
            if isinstance(lock, Mapping) and isinstance(lock.get("renew_time"), str):
                at = timestamp(lock.get("renew_time"))
            else:
                at = None
            if at is not None:
                name = one_line(lock.get("name"), 80)
            else:
                name = ""
            if at is not None and (name not in newest or at > newest[name][0]):
                newest[name] = at, lock
    for name, (at, lock) in newest.items():
        writer = hosts.get(str(lock.get("holder") or "").rsplit("_", 1)[0].lower())
        known = ages.age_of(cluster, at, writer, "locks")
        if known is not None:
            lasts = ages.seconds_of(lock.get("lease_duration_s")) or LOCK_SECONDS
            # A lock of another component may last for hours: only a renewal within the last minute
            # proves a write.
            yield Lease(
                f"lock {name}", at, *known, min(max(lasts, LOCK_SECONDS), BEAT_SECONDS), writer
            )


def _of_servers(cluster: Cluster) -> Iterator[Lease]:
    """When the last API server renewed its own lease.

    It shows that something is written although no kubelet and no leader is left.
    """
    beats = [
        at
        for server in cluster.rows("locks", "servers")
        if isinstance(server.get("beat"), str) and (at := timestamp(server["beat"])) is not None
    ]
    if beats:
        known = ages.age(cluster, max(beats), "locks")
    else:
        known = None
    if known is not None:
        yield Lease("lease of an API server", max(beats), known, known, BEAT_SECONDS)


def _read(cluster: Cluster, found: list[Lease]) -> tuple[EvidenceRef, ...]:
    """Return the lease that was renewed last, and how many there are."""
    if not found:
        return ()
    last = max(found, key=lambda one: one.renewed)
    read = ages.now(cluster, "locks")
    if read is not None:
        at = f", read at {read:%Y-%m-%dT%H:%M:%SZ}"
    else:
        at = ""
    return (
        EvidenceRef(
            "api",
            cluster.api_host,
            object=f"the newest of {len(found)} leases: {last.name}",
            text=f"renewed at {last.renewed:%Y-%m-%dT%H:%M:%SZ}{at}",
        ),
    )


# What etcd says.


def etcd(cluster: Cluster) -> Etcd:
    """Return what the reachable members of etcd report.

    An alarm counts wherever it is reported, a leader that one of them knows is a quorum.
    """
    known = [(host, status) for host in cluster.hosts if (status := _status(host)) is not None]
    leaders = [leader for _host, status in known if (leader := _leader(status)) is not None]
    without = [(host, status) for host, status in known if _leader(status) == NO_LEADER]
    if not leaders:
        lost = _absent(cluster)
    elif len(without) == len(leaders):
        lost = _leaderless(cluster, without)
    else:
        lost = Etcd()
    for kind in (CORRUPT, NOSPACE):
        raised = [
            (host, status, ids)
            for host, status in known
            if (ids := _raised(host, status, kind)) is not None
        ]
        if raised:
            alarm = _alarm(cluster, kind, raised)
            # Without a quorum no alarm can be taken back, nor any space be freed.
            if lost.cause:
                return replace(
                    alarm,
                    cause=lost.cause,
                    told=f"{lost.told}; in addition, {alarm.told}",
                    proofs=lost.proofs + alarm.proofs,
                )
            return alarm
    return lost


def _said(host: Host) -> Mapping[str, Any]:
    if isinstance(host.etcd_said, Mapping):
        return host.etcd_said
    return {}


def _status(host: Host) -> Mapping[str, Any] | None:
    """Return what the member that this host asked reports of itself.

    Of one that accepted no credential, what its /health reports.
    """
    status, health = _said(host).get("status"), _said(host).get("health")
    if isinstance(status, Mapping) and isinstance(status.get("version"), str):
        return status
    if isinstance(health, Mapping):
        body = health.get("body")
    else:
        body = None
    if not isinstance(body, str) or '"health"' not in body:
        return None
    if "NO LEADER" in body:
        leader = NO_LEADER
    else:
        leader = None
    return {"endpoint": "/health", "leader": leader, "errors": [one_line(body, 200)]}


def _leader(status: Mapping[str, Any]) -> str | None:
    """Return the id of the leader that it knows, "0" for none, None where it is not reported."""
    leader = status.get("leader")
    if isinstance(leader, str) and leader.isdecimal():
        return leader
    return None


def _raised(host: Host, status: Mapping[str, Any], kind: str) -> list[str] | None:
    """Return the members for which this alarm is raised, None where it is not."""
    found = [
        one_line(one.get("member_id"), 40)
        for one in _mappings(_said(host).get("alarms"))
        if one.get("alarm") == kind
    ]
    told = [
        one
        for one in _list(status.get("errors"))
        if isinstance(one, str) and any(f"{before}{kind}" in one for before in ("alarm:", "ALARM "))
    ]
    if found or told:
        return found
    return None


def _list(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    return []


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in _list(value) if isinstance(one, Mapping)]


def _alarm(
    cluster: Cluster, kind: str, raised: list[tuple[Host, Mapping[str, Any], list[str]]]
) -> Etcd:
    names = _members(cluster)
    ids = sorted({one for _host, _status, found in raised for one in found})
    if ids:
        where = f" of member {and_others([names.get(one, one) for one in ids])}"
    else:
        where = ""
    # The alarm is everybody's, the lack of space may be one member's, which was perhaps not read.
    full = [one for one in raised if one[1].get("member_id") in ids]
    if full:
        whose = "its database"
    else:
        whose = "the databases that were read"
    sizes = [text for host, status, _ids in full or raised if (text := _sizes(host, status))]
    told = f"etcd raised the alarm {kind}{where}"
    if kind == NOSPACE and sizes:
        told += f"; {whose}: {and_others(sizes, 3)}"
    proofs = [
        EvidenceRef(
            "http",
            host.host,
            object=one_line(status.get("endpoint"), 120),
            text="; ".join(
                filter(
                    None,
                    (
                        f"alarm {kind}{' of ' + ', '.join(found) if found else ''}",
                        _sizes(host, status),
                    ),
                )
            ),
        )
        for host, status, found in raised[:3]
    ]
    return Etcd(kind, told, tuple(proofs), sure=True)


def _sizes(host: Host, status: Mapping[str, Any]) -> str:
    size, used, quota = (
        ages.seconds_of(status.get(name)) for name in ("db_size", "db_size_in_use", "quota")
    )
    if size is None:
        return ""
    if quota:
        of = f" of {_mib(quota)} that its quota allows"
    else:
        of = ""
    return f"{host.host} {_mib(size)}{of}" + (f", {_mib(used)} in use" if used is not None else "")


def _mib(size: float) -> str:
    return f"{size / 1024**2:.1f} MiB"


def _members(cluster: Cluster) -> dict[str, str]:
    """{id: name} of etcd's members."""
    return {
        str(one["id"]): one_line(one["name"], 80)
        for host in cluster.hosts
        for one in _mappings(_said(host).get("members"))
        if one.get("id") and one.get("name")
    }


def _leaderless(cluster: Cluster, without: list[tuple[Host, Mapping[str, Any]]]) -> Etcd:
    """No member that answers knows a leader.

    The others have one only if a majority of all members is left among them.
    """
    names, here = _members(cluster), [host for host, _status in without]
    silent = [host for host in cluster.members if host not in here and _without_etcd(cluster, host)]
    gone = [
        host
        for host in cluster.members
        if host not in here and host.status not in ("ok", "not_asked")
    ]
    asked = {str(status.get("member_id") or host.host) for host, status in without}
    left = len(names) - len(asked) - len(silent)
    if left > len(names) // 2 and not (gone and cluster.api_status != "ok"):
        return Etcd()
    if names:
        count = f" of {len(names)} members"
    else:
        count = ""
    down = [
        *(f"etcd of {host.host} does not run or answer" for host in silent),
        *(f"{host.host} does not answer at all" for host in gone),
    ]
    told = (
        f"etcd has no quorum{count}: {and_others([host.host for host in here])}"
        f" {'knows' if len(here) == 1 else 'know'} no leader"
    )
    proofs = [
        EvidenceRef(
            "http",
            host.host,
            object=one_line(status.get("endpoint"), 120),
            text=one_line(
                "; ".join(str(one) for one in _list(status.get("errors"))[:3])
                or "it knows no leader",
                200,
            ),
        )
        for host, status in without[:3]
    ]
    return Etcd(NO_QUORUM, "; ".join((told, *down[:4])), tuple(proofs))


def _stacked(cluster: Cluster, host: Host) -> bool:
    """Whether etcd belongs on this host.

    Its manifest is there, or etcd itself lists it as a member.
    """
    plane = host.control_plane
    if plane is not None and any(use.component == "etcd" for use in plane.files):
        return True
    return any(
        host.names & etcd_names(one)
        for other in cluster.hosts
        for one in _mappings(_said(other).get("members"))
    )


def _without_etcd(cluster: Cluster, host: Host) -> bool:
    """Whether a host that should run etcd, or reach one, has none.

    No process where it belongs, or no endpoint that takes a connection.
    """
    if host.status != "ok":
        return False
    plane = host.control_plane
    if plane is not None and host.statuses.get("instances") in ("ok", "absent"):
        runs = any(process.component == "etcd" for process in plane.processes)
        if not runs and _stacked(cluster, host):
            return True
    error = _said(host).get("error")
    if isinstance(error, str) and error and host.statuses.get("etcd") == "error":
        parts = error.split("; ")
    else:
        parts = []
    return bool(parts) and all(any(word in part for word in UNREACHED) for part in parts)


def _absent(cluster: Cluster) -> Etcd:
    """Tell whether no control-plane host has an etcd or reaches one elsewhere."""
    masters = [host for host in cluster.members if host.status != "not_asked"]
    if not masters or not all(_without_etcd(cluster, host) for host in masters):
        return Etcd()
    names = and_others([host.host for host in masters])
    proofs = [
        EvidenceRef(
            "http",
            host.host,
            object="etcd",
            text=one_line(_said(host).get("error") or "no process of etcd", 200),
        )
        for host in masters[:3]
    ]
    return Etcd(
        NO_ETCD, f"the API servers have no etcd: none runs or answers at {names}", tuple(proofs)
    )
