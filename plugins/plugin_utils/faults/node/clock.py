# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM526, a node whose clock is not that of the others.

A node says what its clock shows, and the controller knows when it asked and when it had the answer:
the difference lies between two bounds, which a slow connection draws apart. Who is right is decided
by most of them, the controller among them; nobody's clock is believed alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...models import ages
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.result import Missing, Proof
from ..base import Hit, Outcome, cluster_check

# seconds: more than any of the bounds of an honest clock, and less than what Kubernetes forgives
OFF = 30.0
SLACK = 1.0  # of each bound

Bounds = tuple[float, float]


@cluster_check(
    "KM526",
    "Clock of a node differs",
    severity="warning",
    applies="nodes of a cluster",
    needs=("system",),
)
def differing(cluster: Cluster) -> Iterator[Outcome]:
    """KM526: a clock that is surely more than half a minute away from what most agree on."""
    if cluster.key is None:
        yield Outcome(applies=False, note="no Kubernetes found on these hosts")
        return
    missing = [one for host in cluster.hosts for one in _silent(host)]
    known = [(host, host.clock) for host in cluster.hosts if host.clock is not None]
    older = [one for one in missing if one.status == "not_asked"]
    # an older release collected it: whoever else was silent could have told nothing either
    if older and not known:
        yield Outcome(tuple(_of_servers(cluster)), tuple(older))
        return
    right = agreed([*(bounds for _host, bounds in known), (0.0, 0.0)])
    if right is None:
        apart = [host for host, bounds in known if abs(away(bounds, (0.0, 0.0))) > OFF]
        note = "clocks differ, and no majority of them agrees" if apart else ""
        yield Outcome(
            tuple(_of_servers(cluster)),
            (*missing, *(Missing(host.host, "system", "error") for host in apart)),
            note=note,
        )
        return
    hits = [
        _hit(host, away(bounds, right), len(known))
        for host, bounds in known
        if abs(away(bounds, right)) > OFF
    ]
    yield Outcome(tuple(hits or _of_servers(cluster)), tuple(missing))


def _of_servers(cluster: Cluster) -> Iterator[Hit]:
    """The host that read the API and the API servers, where their clocks differ so that no age
    is known. Which of them is right is not known here.
    """
    known = ages.clocks(cluster)
    if known.doubt:
        ways = {name: "ahead of" if ahead > 0 else "behind" for name, ahead in known.apart.items()}
        proofs = tuple(
            Proof(
                "http",
                cluster.api_host,
                object=name,
                text=(
                    f"its Date is {abs(known.apart[name]):.0f} s or more {ways[name]} the host that"
                    " asked"
                ),
            )
            for name in sorted(ways)
        )
        yield Hit(
            f"the clock of {cluster.api_host}, which reads the API, and that of API servers differ:"
            f" {and_others(sorted(ways))}; how old leases, locks and pods are is not known",
            proofs,
            "compare the clocks of the control-plane nodes (timedatectl, chronyc tracking), and let"
            " them be set slowly",
            host=cluster.api_host,
            component="clock",
        )


def _silent(host: Host) -> tuple[Missing, ...]:
    """What is missing of a host; evidence of an older release lacks the times of the controller."""
    return host.missing("system") or (
        () if host.clock is not None else (Missing(host.host, "system", "not_asked"),)
    )


def agreed(all_bounds: Sequence[Bounds]) -> Bounds | None:
    """Where most of these can be at once.

    None where no majority can, or several that contradict each other.

    One that is known only within more than what counts as a difference may agree with anybody, and
    has no say: it is none of the majority.
    """
    wider = [(low - SLACK, high + SLACK) for low, high in all_bounds if high - low <= OFF]
    groups = [[one for one in wider if one[0] <= point <= one[1]] for point, _high in wider]
    count = max(map(len, groups), default=0)
    if 2 * count <= len(all_bounds):
        return None
    spans = [
        (max(low for low, _high in group), min(high for _low, high in group))
        for group in groups
        if len(group) == count
    ]
    return (
        spans[0] if max(low for low, _high in spans) <= min(high for _low, high in spans) else None
    )


def away(bounds: Bounds, right: Bounds) -> float:
    """How far it is away at least; 0 where both may be the same."""
    if bounds[0] > right[1]:
        return bounds[0] - right[1]
    return bounds[1] - right[0] if bounds[1] < right[0] else 0.0


def _hit(host: Host, seconds: float, count: int) -> Hit:
    name, way = host.node or host.host, "ahead of" if seconds > 0 else "behind"
    return Hit(
        f"the clock of {name} is at least {abs(seconds):.0f} s {way} that of the others",
        (
            Proof(
                "process",
                host.host,
                text=(
                    f"its clock is {abs(seconds):.0f} s or more {way} what most of {count} hosts"
                    " and the controller agree on"
                ),
            ),
        ),
        "see why it is not set (timedatectl, chronyc tracking, systemctl status chronyd"
        " systemd-timesyncd), and let it be set slowly: certificates and tokens that were made"
        " meanwhile may be of the future, or have ended",
        host=host.host,
        node=host.node,
        component="clock",
    )
