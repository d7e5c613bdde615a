# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cause of a lost node, for KM202: the order in which nodes joined, replayed.

The text also says which part of that order is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....module_utils.shared.text import counted
from ...evidence.answers.cluster.nodes import Nodes
from ...evidence.answers.node.scheduler_log import SchedulerLog
from ...evidence.document import one_line
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.control_plane import Process
from ...models.moments import moment, timestamp
from ...models.result import EvidenceRef
from ...models.scheduling import node_tree_history
from ...models.scheduling.node_tree import Replay

# The scheduler's start is measured by its host's clock and a Node's creation by an API server's,
# and it asks for its first list a moment later.
SLACK_SECONDS = 30
AT_ONCE = "the order of those that were there when it started is not known"


@dataclass(frozen=True)
class Explained:
    """The cause of a lost node, by a replay.

    proof: what is known of the order of joining, and the result of its replay
    others: nodes that are lost by it, though no pod tells
    """

    proof: EvidenceRef
    others: tuple[str, ...] = ()


def explained(
    cluster: Cluster,
    host: Host | None,
    process: Process | None,
    zone_of: Mapping[str, str],
    targets: frozenset[str],
) -> Explained:
    """Return what is known of how the nodes were lost.

    host, process: the scheduler that leads, None where that is not known. targets: the nodes that
    pods prove to be lost.
    """
    if host is None or process is None:
        text = "which scheduler leads is not known, so that nothing can be replayed"
        return _by_nodes(cluster, text)
    log = _log(host, process)
    replay = None
    if log is not None and log.whole:
        replay = node_tree_history.from_log(log.events, zone_of)
    if log is None or replay is None:
        return _by_nodes(cluster, _by_joining(cluster, process, zone_of, targets))
    return Explained(
        EvidenceRef(
            "log",
            host.host,
            path=one_line(log.path, 400),
            text=_log_text(replay, targets),
        ),
        tuple(one_line(name, 253) for name in replay.lost if name not in targets),
    )


def _by_nodes(cluster: Cluster, text: str) -> Explained:
    return Explained(EvidenceRef("api", cluster.api_host, object="Nodes", text=text))


def _log(host: Host, process: Process) -> SchedulerLog | None:
    """Return the collected log of a scheduler, None without."""
    return next((log for log in host.scheduler_log.logs if log.pid == process.pid), None)


def _log_text(replay: Replay, targets: frozenset[str]) -> str:
    """Return what the replay of a log tells, and whether the pods tell more."""
    lost = and_others([one_line(name, 253) for name in replay.lost]) or "none"
    text = f"its log shows in which order nodes joined; replayed, its list lacks {lost}"
    doubled = and_others([one_line(name, 253) for name in replay.doubled])
    if doubled:
        text += f" and holds {doubled} twice"
    if not targets <= set(replay.lost):
        text += (
            "; the pods show more than that: something moved the list that the log does not have"
        )
    return text


def _by_joining(
    cluster: Cluster, process: Process, zone_of: Mapping[str, str], targets: frozenset[str]
) -> str:
    """Return what the times of creation tell."""
    ages = _ages_at_start(cluster, process, zone_of)
    if ages is None:
        return (
            "when the scheduler started, or when nodes joined, is not known, so that nothing can be"
            " replayed"
        )
    later = sorted((age, name) for name, age in ages.items() if age > SLACK_SECONDS)
    if not _has_order(ages):
        return (
            f"nodes joined within {SLACK_SECONDS} s of the scheduler's start, or several in one"
            f" second: in which order it saw them is not known ({AT_ONCE})"
        )
    if not later:
        return (
            "no node that is there joined since the scheduler started: one that left, or whose"
            f" zone changed, moved its list ({AT_ONCE})"
        )
    first = {name: zone_of[name] for name, age in ages.items() if age < -SLACK_SECONDS}
    came = and_others([f"{one_line(name, 253)} ({_zone(zone_of[name])})" for _age, name in later])
    return (
        f"{counted(len(first), 'node was', 'nodes were')} there when it started, then joined"
        f" {came};"
        f" {_replayed(first, [(name, zone_of[name]) for _age, name in later], targets)}"
    )


def _ages_at_start(
    cluster: Cluster, process: Process, zone_of: Mapping[str, str]
) -> dict[str, float] | None:
    """Return {node: seconds from the scheduler's start to its creation}; None where unknown."""
    started = moment(process.started_at)
    if started is None:
        return None
    nodes = cluster.typed(Nodes).items
    created = {str(node.name): timestamp(node.created) for node in nodes}
    ages = {}
    for name in zone_of:
        creation = created.get(name)
        if creation is None:
            return None
        ages[name] = (creation - started).total_seconds()
    return ages


def _has_order(ages: Mapping[str, float]) -> bool:
    """Tell whether it is known which nodes joined after the start, and in which order."""
    later = [age for age in ages.values() if age > SLACK_SECONDS]
    return len(set(later)) == len(later) and all(abs(age) > SLACK_SECONDS for age in ages.values())


def _replayed(
    first: Mapping[str, str], later: list[tuple[str, str]], targets: frozenset[str]
) -> str:
    """Return what the scheduler's list lacks after the replay, and what of it is not known."""
    zone_nodes: dict[str, list[str]] = {}
    for name in sorted(targets & first.keys()):
        zone_nodes.setdefault(first[name], []).append(name)
    counts = {zone: len(names) for zone, names in zone_nodes.items()}
    joined = node_tree_history.from_joins(first, later, counts)
    incomplete = joined.unnamed is not None and not targets <= {*first, *joined.named}
    if joined.impossible or incomplete:
        return (
            f"replayed, that alone does not lose {and_others(sorted(targets))}: a node that left,"
            " or whose zone changed, moved its list too"
        )
    if joined.unnamed is None:
        return (
            f"which nodes its list lacks then depends on what is not known ({AT_ONCE}, nor when"
            " pods were scheduled in between)"
        )
    parts = [
        f"{count} of {_zone(zone)}{_named(zone_nodes.get(zone, []), count)}"
        for zone, count in sorted(joined.unnamed.items())
    ]
    return (
        f"replayed, its list lacks {' and '.join([*parts, *sorted(joined.named)])}; {AT_ONCE},"
        " nor that of nodes that left meanwhile"
    )


def _named(names: list[str], count: int) -> str:
    """Return which of the lost nodes of a zone pods name."""
    if len(names) == count == 1:
        return f", which is {and_others(names)}"
    if len(names) == count:
        return f", which are {and_others(names)}"
    if names:
        return f", {and_others(names)} among them: which others is not known"
    return ": which is not known"


def _zone(zone: str) -> str:
    return one_line(zone, 80).strip("/") or "no zone"
