# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a cluster accepts writes, and what keeps it from that. Pure.

Two witnesses: etcd's own word (an alarm, no leader), and the leases of nodes and components, which
are written every few seconds: while all of them are older than their own duration, nothing was
written, and nothing that the API says is newer than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from ...module_utils.shared.text import counted
from ..evidence import memoize
from ..evidence.answers.cluster.api_pod import NOT_COLLECTED
from ..evidence.answers.cluster.locks import LockObject, Locks
from ..evidence.answers.cluster.nodes import Nodes
from ..evidence.answers.node.etcd import Member, MemberStatus
from ..evidence.document import UNFORESEEN, one_line, unforeseen
from . import ages
from .api_node import NodeView, and_others, views
from .cluster import Cluster, Host
from .membership import etcd_names
from .moments import timestamp
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


_Report = tuple[Host, MemberStatus]  # what the member that a host asked reports of itself
_Raised = tuple[Host, MemberStatus, list[str]]  # the members for which an alarm is raised


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
        """Return whether it has ended, and its writer had time to try again."""
        return self.least > self.lasts + RETRY_SECONDS


@dataclass(frozen=True)
class Etcd:
    """What etcd says of itself on all hosts.

    cause: NOSPACE, CORRUPT, no quorum, no etcd, or empty
    told: that cause in words
    sure: whether it holds from its first second on, when leases are still fresh. An election is
    over in that time.
    """

    cause: str = ""
    told: str = ""
    proofs: tuple[EvidenceRef, ...] = ()
    sure: bool = False


@dataclass(frozen=True)
class Writes:
    """Whether a cluster accepts writes.

    refused: True, False, or None where it is not known
    cause: the cause as of Etcd
    told: that cause in words
    since: the last write that is known
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
    """Return whether this cluster accepts writes.

    Evidence of an unexpected shape proves nothing.
    """
    try:
        return _state(cluster)
    except UNFORESEEN as error:
        return Writes(
            None,
            missing=(cluster.missing_answer("judging", "error"),),
            note=unforeseen(error),
        )


def _state(cluster: Cluster) -> Writes:
    all_leases, report = leases(cluster), etcd(cluster)
    last = max((lease.renewed for lease in all_leases), default=None)
    proofs = (*_read(cluster, all_leases), *report.proofs)
    if report.sure:
        return Writes(True, report.cause, report.told, last, proofs)
    if any(lease.most <= lease.lasts for lease in all_leases):
        return Writes(False, since=last)
    if report.cause:
        return Writes(True, report.cause, report.told, last, proofs)
    if _all_ended(all_leases):
        return Writes(True, "", "", last, proofs)
    note = ages.clocks(cluster).doubt
    return Writes(None, since=last, missing=_missing(cluster, all_leases), note=note)


def _all_ended(all_leases: list[Lease]) -> bool:
    """Tell whether no lease was renewed in its time, although a kubelet runs that renews one."""
    return all(lease.over for lease in all_leases) and any(lease.alive for lease in all_leases)


def refused(cluster: Cluster) -> bool:
    """Return whether it is known that this cluster accepts no writes."""
    return cluster.key is not None and state(cluster).refused is True


def refusal_text(cluster: Cluster) -> str:
    """Return one sentence that refuses what needs a write.

    It is empty where writes are accepted, or where that is unknown.
    """
    if not refused(cluster):
        return ""
    phrase = state(cluster).told.partition("; ")[0]
    return (
        f"the cluster accepts no writes ({CODE}{f': {phrase}' if phrase else ''}), and this needs"
        " one"
    )


def _missing(cluster: Cluster, all_leases: list[Lease]) -> tuple[Missing, ...]:
    """Return what is missing for it: the API's answers, or the leases in them."""
    missing = (*cluster.missing("nodes"), *cluster.missing("locks"))
    if missing:
        return missing
    listed = cluster.typed(Nodes).items
    older = not all_leases and all(node.lease == NOT_COLLECTED for node in listed)
    return (cluster.missing_answer("nodes", "not_asked" if older else "error"),)


def leases(cluster: Cluster) -> list[Lease]:
    """Return every lease whose age is known.

    The leases are those of nodes, of locks, and of the API servers themselves.
    """
    return [
        lease
        for lease in (*_of_nodes(cluster), *_of_locks(cluster), *_of_servers(cluster))
        if lease.most >= -AHEAD_SECONDS
    ]


def _of_nodes(cluster: Cluster) -> Iterator[Lease]:
    for view in views(cluster):
        age_range = ages.age_of(cluster, view.leased, view.host, "nodes")
        if view.leased is not None and age_range is not None:
            yield Lease(
                f"node {view.name}",
                view.leased,
                *age_range,
                view.lease_seconds or NODE_SECONDS,
                view.host,
                _runs(cluster, view),
            )


def _runs(cluster: Cluster, view: NodeView) -> bool:
    """Return whether its kubelet is known to run, and has for long enough to renew its lease."""
    host = view.host
    if host is None or host.status != "ok" or host.kubelet_started is None:
        return False
    age_range = ages.age_of(cluster, host.kubelet_started, host, "nodes")
    return age_range is not None and age_range[0] > YOUNG_SECONDS


def _of_locks(cluster: Cluster) -> Iterator[Lease]:
    hosts = _hosts(cluster)
    for name, (at, lock) in _newest_locks(cluster).items():
        writer = hosts.get((lock.holder or "").rsplit("_", 1)[0].lower())
        age_range = ages.age_of(cluster, at, writer, "locks")
        if age_range is not None:
            lasts = ages.seconds_of(lock.lease_duration_s) or LOCK_SECONDS
            # A lock of another component may last for hours: only a renewal within the last minute
            # proves a write.
            yield Lease(
                f"lock {name}", at, *age_range, min(max(lasts, LOCK_SECONDS), BEAT_SECONDS), writer
            )


def _hosts(cluster: Cluster) -> dict[str, Host]:
    """Map every name of a host to it, in small letters."""
    hosts: dict[str, Host] = {}
    for host in cluster.hosts:
        names = filter(None, (*host.names, host.node))
        hosts.update((name.lower(), host) for name in names)
    return hosts


def _newest_locks(cluster: Cluster) -> dict[str, tuple[datetime, LockObject]]:
    """Map each lock's name to its last renewal that any API server shows."""
    newest: dict[str, tuple[datetime, LockObject]] = {}
    for server in cluster.typed(Locks).servers:
        for lock in server.objects:
            at = timestamp(lock.renew_time)
            if at is None:
                continue
            name = one_line(lock.name, 80)
            if name not in newest or at > newest[name][0]:
                newest[name] = at, lock
    return newest


def _of_servers(cluster: Cluster) -> Iterator[Lease]:
    """When the last API server renewed its own lease.

    It shows that something is written although no kubelet and no leader is left.
    """
    beats = [timestamp(server.beat) for server in cluster.typed(Locks).servers]
    last = max(filter(None, beats), default=None)
    age = ages.age(cluster, last, "locks")
    if last is not None and age is not None:
        yield Lease("lease of an API server", last, age, age, BEAT_SECONDS)


def _read(cluster: Cluster, all_leases: list[Lease]) -> tuple[EvidenceRef, ...]:
    """Return the lease that was renewed last, and how many there are."""
    if not all_leases:
        return ()
    last = max(all_leases, key=lambda lease: lease.renewed)
    read = ages.now(cluster, "locks")
    if read is not None:
        at = f", read at {read:%Y-%m-%dT%H:%M:%SZ}"
    else:
        at = ""
    return (
        EvidenceRef(
            "api",
            cluster.api_host,
            object=f"the newest of {len(all_leases)} leases: {last.name}",
            text=f"renewed at {last.renewed:%Y-%m-%dT%H:%M:%SZ}{at}",
        ),
    )


# What etcd says.


def etcd(cluster: Cluster) -> Etcd:
    """Return what the reachable members of etcd report.

    An alarm counts wherever it is reported, a leader that one of them knows is a quorum.
    """
    reports = _reports(cluster)
    leaders = [leader for _host, status in reports if (leader := _leader(status)) is not None]
    without = [(host, status) for host, status in reports if _leader(status) == NO_LEADER]
    if not leaders:
        lost = _absent(cluster)
    elif len(without) == len(leaders):
        lost = _leaderless(cluster, without)
    else:
        lost = Etcd()
    for kind in (CORRUPT, NOSPACE):
        alarm = raised_alarm(cluster, kind)
        if alarm is not None:
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


def _reports(cluster: Cluster) -> list[_Report]:
    """Return what the members that hosts asked report of themselves."""
    return [(host, status) for host in cluster.hosts if (status := _status(host)) is not None]


def alarms_are_known(cluster: Cluster) -> bool:
    """Tell whether a member that knows a leader told of alarms: they are the same everywhere."""
    return any(_leader(status) not in (None, NO_LEADER) for _host, status in _reports(cluster))


def raised_alarm(cluster: Cluster, kind: str) -> Etcd | None:
    """Return what is known of an alarm of this kind; None where no member tells of one."""
    raised = [
        (host, status, ids)
        for host, status in _reports(cluster)
        if (ids := _raised(host, status, kind)) is not None
    ]
    if raised:
        return _alarm(cluster, kind, raised)
    return None


def _status(host: Host) -> MemberStatus | None:
    """Return what the member that this host asked reports of itself.

    If the member accepted no credential, its /health stands for its status.
    """
    status, health = host.etcd_said.status, host.etcd_said.health
    if status is not None and status.version is not None:
        return status
    if health is None or health.body is None or '"health"' not in health.body:
        return None
    leader = NO_LEADER if "NO LEADER" in health.body else None
    return MemberStatus(endpoint="/health", leader=leader, errors=(one_line(health.body, 200),))


def _leader(status: MemberStatus) -> str | None:
    """Return the id of the leader that it knows, "0" for none, None where it is not reported."""
    if status.leader is not None and status.leader.isdecimal():
        return status.leader
    return None


def _raised(host: Host, status: MemberStatus, kind: str) -> list[str] | None:
    """Return the members for which this alarm is raised, None where it is not."""
    ids = [
        one_line(alarm.member_id, 40)
        for alarm in host.etcd_said.alarms or ()
        if alarm.alarm == kind
    ]
    words = (f"alarm:{kind}", f"ALARM {kind}")
    if ids or any(word in error for error in status.errors for word in words):
        return ids
    return None


def _alarm(cluster: Cluster, kind: str, raised: list[_Raised]) -> Etcd:
    names = _members(cluster)
    ids = sorted({member for _host, _status, members in raised for member in members})
    text = f"etcd raised the alarm {kind}"
    if ids:
        text += f" of member {and_others([names.get(member, member) for member in ids])}"
    if kind == NOSPACE:
        text += _databases(raised, ids)
    return Etcd(kind, text, tuple(_alarm_proof(kind, *report) for report in raised[:3]), sure=True)


def _databases(raised: list[_Raised], ids: list[str]) -> str:
    """Return how full the databases are, as the end of a sentence; empty where that is not known.

    The alarm is everybody's, the lack of space may be one member's, which was perhaps not read.
    """
    full = [report for report in raised if report[1].member_id in ids]
    sizes = [_sizes(host, status) for host, status, _found in full or raised]
    known_sizes = list(filter(None, sizes))
    if not known_sizes:
        return ""
    subject = "its database" if full else "the databases that were read"
    return f"; {subject}: {and_others(known_sizes, 3)}"


def _alarm_proof(kind: str, host: Host, status: MemberStatus, ids: list[str]) -> EvidenceRef:
    text = f"alarm {kind}"
    if ids:
        text += f" of {', '.join(ids)}"
    sizes = _sizes(host, status)
    if sizes:
        text += f"; {sizes}"
    return EvidenceRef("http", host.host, object=one_line(status.endpoint, 120), text=text)


def _sizes(host: Host, status: MemberStatus) -> str:
    size, used, quota = map(ages.seconds_of, (status.db_size, status.db_size_in_use, status.quota))
    if size is None:
        return ""
    text = f"{host.host} {_mib(size)}"
    if quota:
        text += f" of {_mib(quota)} that its quota allows"
    if used is not None:
        text += f", {_mib(used)} in use"
    return text


def _mib(size: float) -> str:
    return f"{size / 1024**2:.1f} MiB"


def _members(cluster: Cluster) -> dict[str, str]:
    """{id: name} of etcd's members."""
    members = _listed_members(cluster)
    return {member.id: one_line(member.name, 80) for member in members if member.id and member.name}


def _listed_members(cluster: Cluster) -> Iterator[Member]:
    """Yield the members of etcd as each host lists them."""
    for host in cluster.hosts:
        yield from host.etcd_said.members


def _leaderless(cluster: Cluster, without: list[_Report]) -> Etcd:
    """No member that answers knows a leader.

    The others have one only if a majority of all members is left among them.
    """
    count, here = len(_members(cluster)), [host for host, _status in without]
    other_members = [host for host in cluster.members if host not in here]
    silent = [host for host in other_members if _without_etcd(cluster, host)]
    gone = [host for host in other_members if host.status not in ("ok", "not_asked")]
    rest = count - _answering(without) - len(silent)
    if rest > count // 2 and not (gone and cluster.api_status != "ok"):
        return Etcd()
    text = "; ".join((_no_quorum(count, here), *_down(silent, gone)[:4]))
    proofs = tuple(_leaderless_proof(host, status) for host, status in without[:3])
    return Etcd(NO_QUORUM, text, proofs)


def _answering(reports: list[_Report]) -> int:
    """Count the members that answer: two hosts may ask the same one."""
    return len({status.member_id or host.host for host, status in reports})


def _no_quorum(count: int, here: list[Host]) -> str:
    """Return in words that these hosts know no leader.

    count: the number of etcd's members, 0 if not known
    """
    members = f" of {counted(count, 'member')}" if count else ""
    know = "knows" if len(here) == 1 else "know"
    names = and_others([host.host for host in here])
    return f"etcd has no quorum{members}: {names} {know} no leader"


def _down(silent: list[Host], gone: list[Host]) -> list[str]:
    return [
        *(f"etcd of {host.host} does not run or answer" for host in silent),
        *(f"{host.host} does not answer at all" for host in gone),
    ]


def _leaderless_proof(host: Host, status: MemberStatus) -> EvidenceRef:
    return EvidenceRef(
        "http",
        host.host,
        object=one_line(status.endpoint, 120),
        text=one_line("; ".join(status.errors[:3]) or "it knows no leader", 200),
    )


def _stacked(cluster: Cluster, host: Host) -> bool:
    """Return whether etcd belongs on this host.

    It does if its manifest is there, or if etcd itself lists the host as a member.
    """
    plane = host.control_plane
    if plane is not None and any(use.component == "etcd" for use in plane.files):
        return True
    return any(host.names & etcd_names(member) for member in _listed_members(cluster))


def _without_etcd(cluster: Cluster, host: Host) -> bool:
    """Return whether a host that should run etcd, or reach one, has none."""
    return host.status == "ok" and (_lacks_process(cluster, host) or _reaches_none(host))


def _lacks_process(cluster: Cluster, host: Host) -> bool:
    """Tell whether etcd belongs on a host of the control plane and no process of it runs."""
    plane = host.control_plane
    if plane is None or host.statuses.get("instances") not in ("ok", "absent"):
        return False
    runs = any(process.component == "etcd" for process in plane.processes)
    return not runs and _stacked(cluster, host)


def _reaches_none(host: Host) -> bool:
    """Tell whether no endpoint of etcd took a connection of this host."""
    error = host.etcd_said.error
    if not error or host.statuses.get("etcd") != "error":
        return False
    return all(any(word in part for word in UNREACHED) for part in error.split("; "))


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
            text=one_line(host.etcd_said.error or "no process of etcd", 200),
        )
        for host in masters[:3]
    ]
    return Etcd(
        NO_ETCD, f"the API servers have no etcd: none runs or answers at {names}", tuple(proofs)
    )
