# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that a node accepted and that do not start: for how long, and why. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..evidence import memoize
from ..evidence.answers.cluster.pod_start import LastEvent, PodEvents, PodStart, WaitingPods
from ..evidence.document import COMPONENTS, ends, one_line
from ..parsers import pod_start_message
from ..parsers.pod_start_message import NODE, WORKLOAD, Trouble
from . import ages, docker_image_size
from .cluster import Cluster

STATIC = ("etcd", "cloud-controller-manager", *COMPONENTS)
INIT, ATTACHING = "Init:", "FailedAttachVolume"
RUNNING = INIT + "Running"  # an init container works
# A kubelet that tries again reports one pod at least every five minutes, however often it tries.
CURRENT_SECONDS = 400
CRASH, MANY = "restarting failed container", 3  # workloads of one node
# A container that was created, and ended: that is for its image or its configuration to answer.
ENDED = frozenset(("CrashLoopBackOff", "Error", "Completed"))
# What keeps a node from creating a container: none of it is for the container to answer.
UNCREATED = frozenset(
    (
        pod_start_message.PROGRAM,
        pod_start_message.STORE,
        pod_start_message.CGROUP_DRIVER,
        pod_start_message.RUNTIME,
    )
)
ENDS = Trouble(
    "container_ends",
    WORKLOAD,
    "a container of theirs ends again and again",
    "see the container's log (kubectl logs --previous)",
)
# No text says why an image is not pulled; the kubelet of that node has removed images.
REMOVED = Trouble(
    "image_removed",
    NODE,
    "they wait for an image, and the kubelet of their node has removed images to free its disk",
    "see whether a registry has the image (crictl pull); where it was loaded into the nodes, load"
    " it again and pin it, and make room: a kubelet removes unused images from"
    " imageGCHighThresholdPercent on, which is below the limit of DiskPressure",
)


def qualified(owner: str, namespace: str) -> str:
    """Return an object (kind and name) as kubectl names it; a pod needs no kind."""
    kind, _slash, name = owner.rpartition("/")
    if kind in ("", "Pod"):
        return f"{namespace}/{name}"
    return f"{kind} {namespace}/{name}"


@dataclass(frozen=True)
class Waiting:
    """Pods of one owner that wait on one node.

    ages: seconds for which the oldest of them wait, the oldest first; empty where none is known
    trouble: why they wait, None where no text says it
    reason: that of the event, or of the container, whose message says it
    text: the message that says most
    """

    row: WaitingPods
    node: str
    ages: tuple[float, ...]
    trouble: Trouble | None
    reason: str
    text: str

    @property
    def owner(self) -> str:
        """Return the owner of the pods, or the first of them where they have none."""
        namespace = one_line(self.row.namespace or "", 80)
        name = self.row.owner or f"Pod/{next(iter(self.row.names), '?')}"
        return qualified(one_line(name, 300), namespace)

    @property
    def pods(self) -> int:
        """Return how many pods wait."""
        return max(1, self.row.pods)

    @property
    def is_control_plane(self) -> bool:
        """Tell whether they are static pods of the control plane, which other faults judge."""
        static = {f"{component}-{self.row.node}" for component in STATIC}
        names = self.row.names
        return self.row.namespace == "kube-system" and bool(names) and static.issuperset(names)

    def late(self, seconds: float) -> int:
        """Return how many pods wait for at least so long."""
        late = sum(age >= seconds for age in self.ages)
        return self.pods if late == len(self.ages) > 0 else late

    def is_of(self, party: str) -> bool:
        """Tell whether they wait for this one's mistake."""
        return self.trouble is not None and self.trouble.whose == party


@memoize.last
def waiting(cluster: Cluster) -> tuple[Waiting, ...]:
    """Return the pods that wait on their nodes, without those whose init containers work."""
    rows = cluster.typed(PodStart).pods
    return tuple(_waiting(cluster, row) for row in rows if row.state != RUNNING)


def _waiting(cluster: Cluster, row: WaitingPods) -> Waiting:
    trouble, reason, text = _trouble(cluster, row)
    trouble = docker_image_size.with_release(cluster, row.node, trouble)
    times = [ages.age(cluster, since) for since in row.times or (row.since,)]
    seconds = tuple(sorted((age for age in times if age is not None), reverse=True))
    return Waiting(row, one_line(row.node, 253), seconds, trouble, reason, ends(text, 600))


def _trouble(cluster: Cluster, row: WaitingPods) -> tuple[Trouble | None, str, str]:
    """Return why pods wait, and the reason and the text that say it."""
    state = row.state.removeprefix(INIT)
    if state in ENDED:
        return _uncreated(cluster, row) or (ENDS, state, row.message)
    is_pull = state in pod_start_message.PULL_REASONS
    # The kubelet reports few of many tries, so that the answer of a registry may be an older one.
    event = row.event if is_pull else _event(cluster, row)
    hits = list(_told_troubles(cluster, row, state, event))
    if hits:
        return _telling(hits)
    text = row.message or (event.message if event else "")
    if is_pull and removed_image(cluster, row.node):
        return REMOVED, state, text
    return None, state, text


def _told_troubles(
    cluster: Cluster, row: WaitingPods, state: str, event: LastEvent | None
) -> Iterator[tuple[Trouble, str, str]]:
    """Yield the causes that the texts name, with their reasons and texts."""
    versions = cluster.versions(row.node)
    for reason, message in _texts(row, state, event):
        is_current = _may_tell(cluster, reason, event)
        trouble = pod_start_message.trouble(reason, message, versions, is_current=is_current)
        if trouble is not None:
            yield trouble, reason, message


def _telling(hits: Sequence[tuple[Trouble, str, str]]) -> tuple[Trouble, str, str]:
    """Return the first cause, or what a runtime says later of the try whose time ran out."""
    reserved = [hit for hit in hits if hit[0].kind == pod_start_message.RESERVED]
    if hits[0][0].kind == pod_start_message.DEADLINE and reserved:
        return reserved[0]
    return hits[0]


def _uncreated(cluster: Cluster, row: WaitingPods) -> tuple[Trouble, str, str] | None:
    """Return what a node lacks to create a container, whose next try waits as after a crash."""
    event = _event(cluster, row)
    if event is None or event.reason != "Failed":
        return None
    versions = cluster.versions(row.node)
    trouble = pod_start_message.trouble(event.reason, event.message, versions)
    if trouble is None:
        return None
    kind = trouble.kind
    if pod_start_message.base(kind) in UNCREATED or pod_start_message.is_of_machine(kind):
        return trouble, event.reason, event.message
    return None


def removed_image(cluster: Cluster, node: str | None) -> str:
    """Return the newest line of a node's kubelet about an image that it removed, or ""."""
    host = cluster.hosts_by_node().get(node or "")
    return host.image_removed if host is not None else ""


def _event(cluster: Cluster, row: WaitingPods) -> LastEvent | None:
    """Return the newest event about pods, None where what it reports is over."""
    event = row.event
    if event is None or not _is_current(cluster, event.reason, event.last):
        return None
    return event


def _is_current(cluster: Cluster, reason: str, last: str | None) -> bool:
    """Tell whether what an event reports may still be so.

    The controller that attaches volumes reports once that a volume is attached elsewhere.
    """
    return reason == ATTACHING or not _is_old(cluster, last)


def _may_tell(cluster: Cluster, reason: str, event: LastEvent | None) -> bool:
    """Tell whether what is said may be of the node: an attachment that failed long ago is not."""
    return event is None or reason != ATTACHING or not _is_old(cluster, event.last)


def _is_old(cluster: Cluster, last: str | None) -> bool:
    ago = ages.age(cluster, last)
    return ago is not None and ago > CURRENT_SECONDS


def _texts(row: WaitingPods, state: str, event: LastEvent | None) -> Iterator[tuple[str, str]]:
    """Yield (reason, message) of a container and of the newest event, the telling ones first."""
    pairs = [(state, row.message)]
    if event is not None:
        pairs.append((event.reason, event.message))
    yield from (pair for pair in pairs if not pod_start_message.vague(pair[1]))
    yield from (pair for pair in pairs if pod_start_message.vague(pair[1]))


def crash_loops(cluster: Cluster) -> tuple[Waiting, ...]:
    """Return pods that started and whose containers end again and again, by their events.

    Where many workloads of a node do, they are not its workloads' alone.
    """
    rows = [row for row in cluster.typed(PodStart).events if _is_crash_loop(cluster, row)]
    workloads = Counter(row.node for row in rows)
    return tuple(_crash_loop(cluster, row) for row in rows if workloads[row.node] < MANY)


def _is_crash_loop(cluster: Cluster, row: PodEvents) -> bool:
    if row.reason != "BackOff" or CRASH not in row.message or row.waiting:
        return False
    return _is_current(cluster, row.reason, row.last)


def _crash_loop(cluster: Cluster, row: PodEvents) -> Waiting:
    namespace, _slash, name = (row.pod or "").partition("/")
    pods = WaitingPods(row.node, namespace, None, "CrashLoopBackOff", row.pods, (name,), row.first)
    age = ages.age(cluster, row.first)
    times = () if age is None else (age,)
    return Waiting(pods, one_line(row.node, 253), times, ENDS, row.reason, ends(row.message, 600))


def repeated(cluster: Cluster, node: str) -> PodEvents | None:
    """Return what is reported of most pods that wait on a node, and is not their workload's."""
    rows = [
        row
        for row in cluster.typed(PodStart).events
        if row.node == node and row.waiting and not pod_start_message.vague(row.message)
    ]
    rows = [row for row in rows if _is_of_node(row)]
    rows = [row for row in rows if _is_current(cluster, row.reason, row.last)]
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
