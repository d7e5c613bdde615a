# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why the scheduler lost a node, for KM202.

The order in which nodes joined, replayed, and what of it is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...evidence.document import one_line
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host, moment, timestamp
from ...models.control_plane import Process
from ...models.result import Proof
from ...models.scheduling import node_tree_history as tree_history

# The scheduler's start is told by its host's clock and a Node's creation by an API server's, and it
# asks for its first list a moment later.
SLACK = 30
AT_ONCE = "nobody knows the order of those that were there when it started"


@dataclass(frozen=True)
class Explained:
    """proof: what is known of the order, and what the replay of it says; others.

    Nodes that are lost by it, though no pod tells.
    """

    proof: Proof
    others: tuple[str, ...] = ()


def explained(
    cluster: Cluster,
    host: Host | None,
    process: Process | None,
    zone_of: Mapping[str, str],
    targets: frozenset[str],
) -> Explained:
    """host, process: the scheduler that leads, None where that is not known. targets.

    The nodes that pods prove to be lost.
    """
    if host is None or process is None:
        return Explained(
            Proof(
                "api",
                cluster.api_host,
                object="Nodes",
                text="which scheduler leads is not known, so that nothing can be replayed",
            )
        )
    log = next(
        (
            one
            for one in host.scheduler_log.get("logs") or ()
            if isinstance(one, Mapping) and one.get("pid") == process.pid
        ),
        {},
    )
    listed = tree_history.from_log(log.get("events"), zone_of) if log.get("whole") else None
    if listed is not None:
        others = tuple(one_line(name, 253) for name in listed.lost if name not in targets)
        lost, twice = (
            and_others([one_line(name, 253) for name in listed.lost]) or "nobody",
            and_others([one_line(name, 253) for name in listed.doubled]),
        )
        text = f"its log tells in which order nodes joined; replayed, its list lacks {lost}" + (
            f" and holds {twice} twice" if twice else ""
        )
        agrees = (
            ""
            if targets <= set(listed.lost)
            else (
                "; the pods tell more than that: something moved the list that the log does not"
                " have"
            )
        )
        return Explained(
            Proof("log", host.host, path=one_line(log.get("path"), 400), text=text + agrees), others
        )
    return Explained(
        Proof(
            "api",
            cluster.api_host,
            object="Nodes",
            text=_by_joining(cluster, process, zone_of, targets),
        )
    )


def _by_joining(
    cluster: Cluster, process: Process, zone_of: Mapping[str, str], targets: frozenset[str]
) -> str:
    """What the times of creation tell."""
    started = moment(process.started_at)
    created = {
        str(item.get("name")): timestamp(item.get("created"))
        for item in (cluster.answer("nodes") or {}).get("items") or ()
    }
    if started is None or any(created.get(name) is None for name in zone_of):
        return (
            "when the scheduler started, or when nodes joined, is not known, so that nothing can be"
            " replayed"
        )
    ages = {
        name: (at - started).total_seconds()
        for name in zone_of
        if (at := created[name]) is not None
    }
    later = sorted((age, name) for name, age in ages.items() if age > SLACK)
    if any(abs(age) <= SLACK for age in ages.values()) or len({age for age, _name in later}) < len(
        later
    ):
        return (
            f"nodes joined within {SLACK} s of the scheduler's start, or several in one second: in"
            f" which order it saw them is not known ({AT_ONCE})"
        )
    if not later:
        return (
            "no node that is there joined since the scheduler started: one that left, or whose"
            f" zone changed, moved its list ({AT_ONCE})"
        )
    first = {name: zone_of[name] for name in ages if ages[name] < -SLACK}
    came = and_others([f"{one_line(name, 253)} ({_zone(zone_of[name])})" for _age, name in later])
    return (
        f"{len(first)} nodes were there when it started, then joined {came};"
        f" {_replayed(first, [(name, zone_of[name]) for _age, name in later], targets)}"
    )


def _replayed(
    first: Mapping[str, str], later: list[tuple[str, str]], targets: frozenset[str]
) -> str:
    """What its list lacks then, and what of it is not known."""
    seen: dict[str, list[str]] = {}
    for name in sorted(targets & first.keys()):
        seen.setdefault(first[name], []).append(name)
    found = tree_history.from_joins(
        first, later, {zone: len(names) for zone, names in seen.items()}
    )
    if found.impossible or (found.unnamed is not None and not targets <= {*first, *found.named}):
        return (
            f"replayed, that alone does not lose {and_others(sorted(targets))}: a node that left,"
            " or whose zone changed, moved its list too"
        )
    if found.unnamed is None:
        return (
            f"which nodes its list lacks then depends on what is not known ({AT_ONCE}, nor when"
            " pods were scheduled in between)"
        )
    parts = [
        f"{count} of {_zone(zone)}{_named(seen.get(zone, []), count)}"
        for zone, count in sorted(found.unnamed.items())
    ]
    return (
        f"replayed, its list lacks {' and '.join([*parts, *sorted(found.named)])}; {AT_ONCE}, and"
        " of nodes that left meanwhile"
    )


def _named(names: list[str], count: int) -> str:
    """Which of them pods name."""
    if len(names) == count:
        return f", which {'is' if count == 1 else 'are'} {and_others(names)}"
    return (
        f", {and_others(names)} among them: which others, nobody can tell"
        if names
        else ": which, nobody can tell"
    )


def _zone(zone: str) -> str:
    return one_line(zone, 80).strip("/") or "no zone"
