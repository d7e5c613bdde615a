# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that a node accepted and that do not start: for how long, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..evidence import memoize
from ..evidence.answers.cluster.pod_start import PodEvents, PodStart, WaitingPods
from ..evidence.document import one_line
from ..parsers import pod_start_message
from ..parsers.pod_start_message import NODE, WORKLOAD, Trouble
from . import ages
from .cluster import Cluster

INIT = "Init:"
RUNNING = INIT + "Running"  # an init container works
# A container that was created, and ended: that is for its image or its configuration to answer.
ENDED = frozenset(("CrashLoopBackOff", "Error", "Completed"))
ENDS = Trouble(
    "container_ends",
    WORKLOAD,
    "a container of theirs ends again and again",
    "see the container's log (kubectl logs --previous)",
)


@dataclass(frozen=True)
class Waiting:
    """Pods of one owner that wait on one node.

    age: seconds since the kubelet accepted the oldest, None where no age is known
    trouble: why they wait, None where no text says it
    text: the message that says most
    """

    row: WaitingPods
    node: str
    age: float | None
    trouble: Trouble | None
    text: str

    @property
    def owner(self) -> str:
        """Return the owner of the pods, or the first of them where they have none."""
        namespace = one_line(self.row.namespace or "", 80)
        name = self.row.owner or f"Pod/{next(iter(self.row.names), '?')}"
        return f"{one_line(name, 300)} (namespace {namespace})"

    @property
    def pods(self) -> int:
        """Return how many pods wait."""
        return max(1, self.row.pods)

    def is_of(self, party: str) -> bool:
        """Tell whether they wait for this one's mistake."""
        return self.trouble is not None and self.trouble.whose == party


@memoize.last
def waiting(cluster: Cluster) -> tuple[Waiting, ...]:
    """Return the pods that wait on their nodes, without those whose init containers work."""
    rows = cluster.typed(PodStart).pods
    return tuple(_waiting(cluster, row) for row in rows if row.state != RUNNING)


def _waiting(cluster: Cluster, row: WaitingPods) -> Waiting:
    trouble, text = _trouble(row)
    age = ages.age(cluster, row.since)
    return Waiting(row, one_line(row.node, 253), age, trouble, one_line(text, 600))


def _trouble(row: WaitingPods) -> tuple[Trouble | None, str]:
    """Return why pods wait, and the text that says it."""
    state = row.state.removeprefix(INIT)
    if state in ENDED:
        return ENDS, row.message
    for reason, message in _texts(row, state):
        trouble = pod_start_message.trouble(reason, message)
        if trouble is not None:
            return trouble, message
    return None, row.message or (row.event.message if row.event else "")


def _texts(row: WaitingPods, state: str) -> Iterator[tuple[str, str]]:
    """Yield (reason, message) of a container and of the newest event, the telling ones first."""
    pairs = [(state, row.message)]
    if row.event is not None:
        pairs.append((row.event.reason, row.event.message))
    yield from (pair for pair in pairs if not pod_start_message.vague(pair[1]))
    yield from (pair for pair in pairs if pod_start_message.vague(pair[1]))


def repeated(cluster: Cluster, node: str) -> PodEvents | None:
    """Return what is reported of most pods that wait on a node, and is not their workload's."""
    rows = [
        row
        for row in cluster.typed(PodStart).events
        if row.node == node and row.waiting and not pod_start_message.vague(row.message)
    ]
    rows = [row for row in rows if _is_of_node(row)]
    return max(rows, key=lambda row: (row.waiting, row.count), default=None)


def _is_of_node(row: PodEvents) -> bool:
    trouble = pod_start_message.trouble(row.reason, row.message)
    return trouble is not None and trouble.whose == NODE


def total(cluster: Cluster, node: str) -> int | None:
    """Return how many pods a node has that have not ended, None where that was not read."""
    for row in cluster.typed(PodStart).nodes:
        if row.node == node and row.states is not None:
            return sum(row.states.values()) - row.states.get("Completed", 0)
    return None
