# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM526: check that each node's clock agrees with the others.

A node reports its clock, and the controller knows when it sent the request and received the answer:
the difference lies between two bounds, which a slow connection draws apart. The majority of the
clocks, the controller's among them, decides which is correct; no clock is trusted alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...models import ages
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.result import EvidenceRef, Missing
from ..base import CheckResult, Detection, cluster_check, without_kubernetes

# seconds: more than any of the bounds of an honest clock, and less than what Kubernetes forgives
OFF = 30.0
SLACK = 1.0  # of each bound

Bounds = tuple[float, float]
CONTROLLER: Bounds = (0.0, 0.0)  # its own clock, which the others are compared with


@cluster_check(
    "KM526",
    "Clock of a node differs",
    severity="warning",
    applies="nodes of a cluster",
    needs=("system",),
)
def differing(cluster: Cluster) -> Iterator[CheckResult]:
    """KM526: report a clock that is surely more than half a minute away from the majority."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    missing = [lack for host in cluster.hosts for lack in _silent(host)]
    host_clocks = [(host, host.clock) for host in cluster.hosts if host.clock is not None]
    older = [lack for lack in missing if lack.status == "not_asked"]
    # an older release collected it: other silent hosts could not have shown anything either
    if older and not host_clocks:
        yield CheckResult(tuple(_of_servers(cluster)), tuple(older))
        return
    yield _compared(cluster, host_clocks, missing)


def _compared(
    cluster: Cluster, host_clocks: Sequence[tuple[Host, Bounds]], missing: list[Missing]
) -> CheckResult:
    """Return the result of comparing the clocks that are known with what most agree on."""
    majority = agreed([*(bounds for _host, bounds in host_clocks), CONTROLLER])
    if majority is None:
        return _without_majority(cluster, host_clocks, missing)
    hits = [
        _hit(host, away(bounds, majority), len(host_clocks))
        for host, bounds in host_clocks
        if abs(away(bounds, majority)) > OFF
    ]
    return CheckResult(tuple(hits or _of_servers(cluster)), tuple(missing))


def _without_majority(
    cluster: Cluster, host_clocks: Sequence[tuple[Host, Bounds]], missing: list[Missing]
) -> CheckResult:
    """Return the result where no majority decides: each clock that differs is unknown."""
    apart = [host for host, bounds in host_clocks if abs(away(bounds, CONTROLLER)) > OFF]
    note = ""
    if apart:
        note = "clocks differ, and no majority of them agrees"
    doubts = [Missing(host.host, "system", "error") for host in apart]
    return CheckResult(tuple(_of_servers(cluster)), (*missing, *doubts), note=note)


def _of_servers(cluster: Cluster) -> Iterator[Detection]:
    """Report that the clocks of the host that read the API and of API servers differ.

    No age is known then, and neither is which of them is correct.
    """
    clocks = ages.clocks(cluster)
    if not clocks.doubt:
        return
    names = sorted(clocks.apart)
    yield Detection(
        f"the clock of {cluster.api_host}, which reads the API, and that of API servers differ:"
        f" {and_others(names)}; how old leases, locks and pods are is not known",
        tuple(_server_clock(cluster, name, clocks.apart[name]) for name in names),
        "compare the clocks of the control-plane nodes (timedatectl, chronyc tracking), and let"
        " them be set slowly",
        host=cluster.api_host,
        component="clock",
    )


def _server_clock(cluster: Cluster, name: str, seconds: float) -> EvidenceRef:
    text = f"its Date is {abs(seconds):.0f} s or more {_direction(seconds)} the host that asked"
    return EvidenceRef("http", cluster.api_host, object=name, text=text)


def _direction(seconds: float) -> str:
    if seconds > 0:
        return "ahead of"
    return "behind"


def _silent(host: Host) -> tuple[Missing, ...]:
    """Return what is missing of a host: an older release did not record the controller's times."""
    missing = host.missing("system")
    if missing or host.clock is not None:
        return missing
    return (Missing(host.host, "system", "not_asked"),)


def agreed(all_bounds: Sequence[Bounds]) -> Bounds | None:
    """Return where most of these clocks can be at once.

    It is None if no majority can, or if several contradict each other. A clock that is known less
    exactly than what counts as a difference is not counted for a majority: it may agree with all.
    """
    wider = [(low - SLACK, high + SLACK) for low, high in all_bounds if high - low <= OFF]
    groups = [
        [bounds for bounds in wider if bounds[0] <= point <= bounds[1]] for point, _high in wider
    ]
    count = max(map(len, groups), default=0)
    if 2 * count <= len(all_bounds):
        return None
    spans = [_common(group) for group in groups if len(group) == count]
    if max(low for low, _high in spans) <= min(high for _low, high in spans):
        return spans[0]
    return None


def _common(group: Sequence[Bounds]) -> Bounds:
    return max(low for low, _high in group), min(high for _low, high in group)


def away(bounds: Bounds, majority: Bounds) -> float:
    """Return how far a clock is away at least, or 0 if both may be the same."""
    if bounds[0] > majority[1]:
        return bounds[0] - majority[1]
    if bounds[1] < majority[0]:
        return bounds[1] - majority[0]
    return 0.0


def _hit(host: Host, seconds: float, count: int) -> Detection:
    direction = _direction(seconds)
    text = (
        f"its clock is {abs(seconds):.0f} s or more {direction} what most of {count} hosts"
        " and the controller agree on"
    )
    return Detection(
        f"the clock is at least {abs(seconds):.0f} s {direction} that of the others",
        (EvidenceRef("process", host.host, text=text),),
        "see why it is not set (timedatectl, chronyc tracking, systemctl status chronyd"
        " systemd-timesyncd), and let it be set slowly: certificates and tokens that were made"
        " meanwhile may be of the future, or have ended",
        host=host.host,
        node=host.node,
        component="clock",
    )
