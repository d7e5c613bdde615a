# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM144: check that etcd is fast enough, and name what holds it up: disk, network or CPU.

Times are those since its process started, with the limits of etcd's own alerts. The lines of its
log are those of the last ten minutes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....module_utils.shared.text import times
from ...evidence import contract
from ...evidence.answers.node.etcd import Etcd, LocalMember, Metrics, Stalls, Times
from ...evidence.answers.node.repeated_errors import RepeatedError, RepeatedErrors
from ...evidence.answers.node.space import Spaces
from ...evidence.document import ends, one_line
from ...models.api_node import and_others
from ...models.cluster import Host
from ...models.result import EvidenceRef, Missing
from ...models.store import USES
from ..base import CheckResult, Detection, node_check, not_applicable, present, unknown

ETCD = "etcd"
FSYNC_SECONDS, COMMIT_SECONDS, PEER_SECONDS = 0.5, 0.25, 0.15
ENOUGH = 200  # measured times, before which a few slow ones decide
# One slow request is no slow etcd: lines count that are said in most minutes.
MINUTES, LINES, SYNCS = 5, 30, 3
THROTTLED, STALLED = 0.25, 40.0
LEADER_CHANGES = 16  # an hour: four in 15 minutes
NOTHING_MEASURED = Metrics()
_SYNC, _LATE, _SLOW = "slow fdatasync", "failed to send out heartbeat on time", "took too long"


@dataclass(frozen=True)
class _Slow:
    """What shows that etcd is slow.

    disk, network: what each of them took, clauses. lines: of its log.
    """

    disk: tuple[str, ...]
    network: tuple[str, ...]
    lines: tuple[RepeatedError, ...]

    @property
    def is_slow(self) -> bool:
        """Tell whether anything shows it."""
        return bool(self.disk or self.network or self.lines)


@node_check(
    "KM144",
    "etcd is slow",
    severity="warning",
    applies="hosts on which etcd runs",
    needs=("instances", "etcd", "space", "repeated_errors"),
    component=ETCD,
)
def slow(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM144: report an etcd whose disk or peers are slow, or that says so all the time."""
    local, entries = contract.partial_answer(document, Etcd).local, _entries(document)
    metrics = local.metrics if local is not None else None
    evidence = _evidence(metrics or NOTHING_MEASURED, entries)
    if evidence.is_slow:
        yield present(_hit(host, document, local, evidence), host=host.host, component=ETCD)
    elif metrics is not None:
        yield CheckResult(host=host.host, component=ETCD)
    elif local is not None:
        yield unknown(Missing(host.host, ETCD, "error"), host=host.host, component=ETCD)
    else:
        yield _without(host)


def _entries(document: Mapping[str, Any]) -> list[RepeatedError]:
    """Return what the etcd of a host repeats in its log."""
    components = contract.answer(document, RepeatedErrors).components
    rows = [row for row in components if row.component == ETCD]
    return [entry for row in rows for entry in row.entries]


def _without(host: Host) -> CheckResult:
    """Return the result where nothing of an etcd was read."""
    missing = host.missing("etcd") + host.missing("instances")
    if not missing and host.control_plane is not None and host.control_plane.processes_of(ETCD):
        missing = (Missing(host.host, ETCD, "not_asked"),)  # an older release collected
    if missing:
        return unknown(*missing, host=host.host, component=ETCD)
    return not_applicable("", host=host.host, component=ETCD)


def _evidence(metrics: Metrics, entries: Sequence[RepeatedError]) -> _Slow:
    disk = [
        f"99 % of {subject} took up to {times.p99:.2f} s"
        for subject, times, limit in (
            ("its syncs of the log", metrics.wal_fsync, FSYNC_SECONDS),
            ("its commits to the database", metrics.backend_commit, COMMIT_SECONDS),
        )
        if times is not None and _is_over(times, limit)
    ]
    network = [
        f"messages to member {int(peer.id or 0):x} took up to {peer.round_trip.p99:.2f} s"
        for peer in metrics.peers
        if peer.round_trip is not None and _is_over(peer.round_trip, PEER_SECONDS)
    ]
    lines = [entry for entry in entries if _says_slow(entry)]
    return _Slow(tuple(disk), tuple(network[:3]), tuple(lines))


def _is_over(times: Times, limit: float) -> bool:
    return times.p99 is not None and times.p99 > limit and (times.count or 0) >= ENOUGH


def _says_slow(entry: RepeatedError) -> bool:
    if _SYNC in entry.line:
        return entry.count >= SYNCS
    is_often = entry.count >= LINES and entry.minutes >= MINUTES
    return is_often and (_LATE in entry.line or _SLOW in entry.line)


def _hit(
    host: Host, document: Mapping[str, Any], local: LocalMember | None, evidence: _Slow
) -> Detection:
    local = local or LocalMember()
    counts: Counter[str] = Counter()
    for entry in evidence.lines:
        counts[_text(entry)] += entry.count
    repeats = [f"{times(count)} within ten minutes: {text}" for text, count in counts.items()]
    facts = (*evidence.disk, *evidence.network, *repeats)
    cause, remedy = _cause(document, local, evidence)
    return Detection(
        one_line(f"etcd of {host.host} is slow{cause}: {'; '.join(facts)}", 800),
        (*_measured(host, local, evidence), *_said(host, evidence)),
        remedy,
        host=host.host,
        node=host.node,
        component=ETCD,
        severity=_severity(local, cause),
    )


def _severity(local: LocalMember, cause: str) -> str | None:
    """Return info where etcd only says that it is late: nothing is lost while its leader stays.

    What is measured of its disk or network is always a cause.
    """
    if cause or _changes_leaders(local):
        return None
    return "info"


def _changes_leaders(local: LocalMember) -> bool:
    """Tell whether leaders changed as often as etcd's own alerts allow no more."""
    changes = (local.metrics or Metrics()).leader_changes or 0.0
    hours = max((local.uptime_s or 0.0) / 3600, 1.0)
    return changes / hours > LEADER_CHANGES


def _text(entry: RepeatedError) -> str:
    words = (_SYNC, _LATE, _SLOW)
    return next((word for word in words if word in entry.line), "")


def _cause(document: Mapping[str, Any], local: LocalMember, evidence: _Slow) -> tuple[str, str]:
    """Return what holds it up as the end of a subject, and what to do."""
    if evidence.disk or any(_SYNC in entry.line for entry in evidence.lines):
        return _of_disk(document, local)
    ratio = _throttled(local)
    if ratio > THROTTLED:
        return (
            f", because its CPU limit stopped it in {ratio:.0%} of all periods",
            "take the CPU limit out of etcd's manifest or unit (resources.limits.cpu, CPUQuota)",
        )
    if evidence.network:
        return (
            ", because the network to other members is slow",
            "see the path between the members (ping, ethtool -S, ss -ti of port 2380) and whether"
            " that member's machine is overloaded. Members far apart need a longer"
            " --heartbeat-interval and --election-timeout, the same ones on each",
        )
    return _of_machine(document, local)


def _of_machine(document: Mapping[str, Any], local: LocalMember) -> tuple[str, str]:
    """Return what of its machine may hold up an etcd that only says that it is slow."""
    stalls = local.stalls or Stalls()
    if (stalls.io or 0.0) > STALLED:
        return _of_disk(document, local)
    if (stalls.cpu or 0.0) > STALLED:
        return (
            f", and programs of its machine waited for a CPU in {stalls.cpu:.0f} % of the last"
            " minute",
            "see what uses the CPUs (top), and move it away from the control plane, or give the"
            " machine more of them",
        )
    return (
        "",
        "see its disk (iostat -x 5), its CPUs (top), and clients that list everything again and"
        " again: the log names the keys of slow requests",
    )


def _throttled(local: LocalMember) -> float:
    row = local.throttled
    if row is None or not row.periods:
        return 0.0
    return (row.throttled or 0) / row.periods


def _of_disk(document: Mapping[str, Any], local: LocalMember) -> tuple[str, str]:
    folder = local.folder
    place, shared = "", _shared(document)
    if folder is not None:
        disk = folder.disk or folder.source or folder.filesystem
        place = f" ({one_line(f'{folder.path} on {disk}', 200)})"
    cause = f", because its disk is slow{place}"
    if shared:
        cause += f", which it shares with {shared}"
    return cause, (
        "see what else writes there (iostat -x 5, pidstat -d 5), and give etcd's data a disk of"
        " its own that syncs in less than 10 ms (an SSD or NVMe; fio with --fdatasync=1 measures"
        " it). Slow leases of leaders and restarts of controllers follow from it"
    )


def _shared(document: Mapping[str, Any]) -> str:
    """Return what else lies on the file system of etcd's data, in words."""
    stores = contract.answer(document, Spaces).stores or ()
    devices = {store.device for store in stores if store.use == ETCD} - {None}
    uses = dict.fromkeys(
        USES[store.use][0]
        for store in stores
        if store.device in devices and store.use != ETCD and store.use in USES
    )
    return and_others(list(uses), 3)


def _measured(host: Host, local: LocalMember, evidence: _Slow) -> tuple[EvidenceRef, ...]:
    facts = (*evidence.disk, *evidence.network)
    if not facts:
        return ()
    text = one_line("; ".join(facts), 300)
    return (EvidenceRef("http", host.host, object=local.metrics_url, text=text),)


def _said(host: Host, evidence: _Slow) -> tuple[EvidenceRef, ...]:
    return tuple(
        EvidenceRef("log", host.host, object=ETCD, text=ends(entry.line, 300))
        for entry in evidence.lines[:3]
    )
