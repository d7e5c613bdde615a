# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How old something of the API is, by the clock of the host that read it. Pure.

No age is measured by another object of the API: objects that stopped changing at the same time
would all look fresh. The clock of the host that reads is checked against the `Date` of the API
servers' answers. Where the two differ, no age is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from ..evidence import memoize
from ..evidence.answers.cluster.locks import Locks
from ..evidence.answers.cluster.nodes import Nodes
from ..evidence.answers.cluster.server import Server
from ..evidence.answers.http_answer import Clock
from ..evidence.document import one_line
from .cluster import LAST, Cluster, Host
from .moments import moment, timestamp

APART = 10.0  # seconds: more than the answer to a request takes
YOUNG = 60.0  # seconds: a kubelet that has just started posts within these
SLACK = 1.0  # the Date of an answer has whole seconds

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Clocks:
    """What is known of the clocks of a reading.

    read: by collector, when it was read, by the clock of the host that read it
    apart: by API server, how many seconds its clock is ahead of that host's, if they differ
    checked: whether an API server's clock agrees with that of the host that read
    doubt: why no age is known; empty where ages are known
    """

    read: Mapping[str, datetime]
    apart: Mapping[str, float]
    checked: bool = False
    doubt: str = ""


@memoize.last
def clocks(cluster: Cluster) -> Clocks:
    """Return the clocks by which the API's answers were read."""
    readings = _readings(cluster)
    apart = {
        name: ahead for name, _collector, clock in readings if (ahead := _ahead(clock)) is not None
    }
    off = {name: ahead for name, ahead in apart.items() if abs(ahead) > APART}
    read = {
        collector: at
        for _name, collector, clock in readings
        if (at := moment(clock.read_at)) is not None
    }
    # Each API server says its own time. One on the host that reads has the same clock, so that half
    # of them are no majority.
    doubtful = bool(off) and 2 * len(off) >= len(apart)
    return Clocks(read, off, bool(apart) and not doubtful, _doubt(cluster, off) if doubtful else "")


def _readings(cluster: Cluster) -> list[tuple[str, str, Clock]]:
    """Return (API server, collector, its clock) of each clock in the evidence.

    Evidence of an older release has none.
    """
    readings = []
    server = cluster.typed(Server)
    name = one_line((server.url or "the API server").rpartition("://")[2], 120)
    for collector, clock in (("server", server.clock), ("nodes", cluster.typed(Nodes).clock)):
        if clock is not None:
            readings.append((name, collector, clock))
    for lock_server in cluster.typed(Locks).servers:
        if lock_server.clock is not None:
            readings.append((one_line(lock_server.address, 120), "locks", lock_server.clock))
    return readings


def _ahead(clock: Clock) -> float | None:
    """Return by how many seconds, at least, the API server's clock is ahead of the reading host's.

    The result is negative where the clock is behind, and None where the evidence does not show it.
    """
    request_time, read = moment(clock.asked_at), moment(clock.read_at)
    try:
        server_time = parsedate_to_datetime(clock.date or "")
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    if request_time is None or read is None or server_time.tzinfo is None:
        return None
    if request_time > read:
        return None
    least, most = (
        (server_time - read).total_seconds(),
        (server_time - request_time).total_seconds() + SLACK,
    )
    if least > 0:
        return least
    if most < 0:
        return most
    return 0.0


def _doubt(cluster: Cluster, off: Mapping[str, float]) -> str:
    name, ahead = max(off.items(), key=lambda pair: abs(pair[1]))
    if ahead > 0:
        way = "ahead of"
    else:
        way = "behind"
    return (
        f"ages are not known: the clock of the API server {name} is {abs(ahead):.0f} s {way} that"
        f" of {cluster.api_host}, which read it (KM526)"
    )


def now(cluster: Cluster, collector: str = "") -> datetime | None:
    """Return when a collector was read, by the clock of the host that read it.

    Older evidence has only the time of the whole reading. The result is None where no time is
    known.
    """
    all_clocks = clocks(cluster)
    if all_clocks.doubt:
        return None
    return all_clocks.read.get(collector) or timestamp(cluster.collected_at)


def age(cluster: Cluster, since: datetime | str | None, collector: str = "") -> float | None:
    """Return the seconds since a time, by the clock of the host that read it.

    The result is None where one of the two times is not known.
    """
    at = since if isinstance(since, datetime) else timestamp(since)
    read = now(cluster, collector)
    if at is None or read is None:
        return None
    return (read - at).total_seconds()


def age_of(
    cluster: Cluster, since: datetime | None, writer: Host | None, collector: str = ""
) -> Bounds | None:
    """Return how many seconds ago, at least and at most, the host wrote this time.

    The bounds come from the difference of both clocks, as far as it is known.
    """
    seconds = age(cluster, since, collector)
    if seconds is None:
        return None
    low, high = difference(cluster, writer) or (0.0, 0.0)
    return seconds + low, seconds + high


def has_just_started(cluster: Cluster, host: Host) -> bool:
    """Tell whether a kubelet started within the last minute, by the clocks of both hosts."""
    bounds = age_of(cluster, host.kubelet_started, host, "nodes")
    return bounds is not None and bounds[0] < YOUNG and bounds[1] > -YOUNG


def difference(cluster: Cluster, writer: Host | None) -> Bounds | None:
    """Return the bounds between which a host's clock is ahead of the reading host's.

    The result is None where that is not known.
    """
    reader = next((host for host in cluster.hosts if host.host == cluster.api_host), None)
    if writer is None or reader is None:
        return None
    if writer.clock is None or reader.clock is None:
        return None
    if writer is reader:
        return 0.0, 0.0
    return writer.clock[0] - reader.clock[1], writer.clock[1] - reader.clock[0]


def seconds_of(value: float | None) -> float | None:
    """Return a number of seconds in evidence, None for one that no time has."""
    if value is None or not 0 <= value < LAST:
        return None
    return float(value)
