# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes with the pods that their kubelets rejected, and who holds their devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ...module_utils.shared.checksum import MAX_ENTRIES
from ..evidence import memoize
from ..evidence.answers.cluster.api_pod import NOT_COLLECTED, OwnedPod
from ..evidence.answers.cluster.nodes import Nodes
from ..evidence.answers.cluster.rejected import DevicePlugin, NodePods, Rejected
from ..evidence.answers.node.devices import Checkpoint, Devices, Socket
from ..parsers import pflag
from ..parsers.admission_message import Refusal, refusal
from .cluster import Cluster, Host
from .moments import timestamp
from .result import Missing

# A pod that ended so shortly before is not blamed: the kubelet needs a moment to take its devices
# back.
GRACE_SECONDS = 5
# The usual time that a pod is given to end: one of the same owner that came sooner came in its
# place.
OWN_SECONDS = 30
# As much may the clocks of a node and of the API server differ.
CLOCK_SECONDS = 5
# A kubelet that starts gives each resource of its checkpoint so many seconds for its plugin to
# register; then it writes the checkpoint without it. It looks at most a status update later.
REGISTRATION_SECONDS, REGISTRATION_END_SECONDS = 290, 360
# Kubelets of these releases admit again even what has ended, or was rejected, so that its start
# time proves no acceptance
# (kubernetes #126341; repaired in 1.32 and in late patch releases of 1.28 to 1.31, which are not
# distinguished here).
ENDED_AGAIN = ((1, 22), (1, 31))
EARLY_SECONDS = 900.0  # after the start of a kubelet, until the plugins of a booted node are there
NO_CHECKPOINT = Checkpoint()


def _made(socket: Socket) -> float:
    return socket.made or 0.0


@dataclass(frozen=True)
class Pod:
    """A pod of one node.

    placed: whether its author named the node, None where that is not known
    deleted: when its deletion was requested
    """

    name: str
    uid: str
    owner: str | None
    owner_uid: str | None
    scheduler: str | None
    placed: bool | None
    requests: Mapping[str, int]
    created: datetime | None
    deleted: datetime | None
    ended: datetime | None
    alias: str | None
    refusal: Refusal = field(default_factory=lambda: Refusal("other"))
    said: str = ""
    started: datetime | None = None
    rejected_at: datetime | None = None
    timed: bool = True
    had: Mapping[str, int] = field(default_factory=dict)
    wanted: int | None = None
    runs: bool = False
    qos: str | None = None

    @property
    def came(self) -> datetime | None:
        """When it came to its kubelet: a scheduler may have let a rejected one wait for hours."""
        return self.rejected_at or self.created

    def alive_at(self, when: datetime | None) -> bool:
        """Return whether it held what it asks for at that time, and its deletion was not requested.

        Where no time is known, the time is now.
        """
        begun = self.created is None or when is None or self.created <= when
        ends = [end for end in (self.ended, self.deleted) if end is not None]
        return begun and (not ends or (when is not None and min(ends) > when))

    def uids(self) -> list[str]:
        """Return its uid, and that of a static pod's mirror in the kubelet's own records."""
        return [uid for uid in (self.uid, self.alias) if uid]

    def way(self) -> str:
        """Return how it got to its node, in words."""
        if self.placed:
            return f"nodeName set by {self.owner or 'its author'}"
        if self.owner:
            suffix = f", for {self.owner}"
        else:
            suffix = ", without an owner"
        return (
            f"placed by {self.scheduler or 'a scheduler'}"
            if self.placed is False
            else f"schedulerName {self.scheduler}"
        ) + suffix


@dataclass(frozen=True)
class Holding:
    """What the kubelet's checkpoint says one container holds, as of its last writing.

    state: alive, terminating, ended or gone.
    """

    pod_uid: str
    container: str
    resource: str
    devices: tuple[str, ...]
    state: str
    pod: Pod | None


@dataclass
class Node:
    """One node of the cluster.

    resources: {device resource: (capacity, allocatable)}
    count: how many pods it rejected, also those that are not listed
    """

    name: str
    host: Host | None
    resources: Mapping[str, tuple[int, int]]
    pods: list[Pod] = field(default_factory=list)
    rejected: list[Pod] = field(default_factory=list)
    plugins: tuple[DevicePlugin, ...] = ()
    asked: bool = False
    release: tuple[int, int] | None = None
    count: int = 0

    @property
    def inventory_host(self) -> str | None:
        """Return the host of the inventory that this node is."""
        if self.host:
            return self.host.host
        return None

    @property
    def topology_policy(self) -> str | None:
        """The policy of its topology manager, None where it is not known."""
        if self.host:
            return self.host.pinning.topology
        return None

    @property
    def evidence(self) -> Devices | None:
        """The evidence of its device plugin folder, None without."""
        if self.host:
            return self.host.devices
        return None

    @property
    def checkpoint(self) -> Checkpoint:
        """Return the kubelet's record of devices, an empty one where it is not known."""
        if self.evidence is None or self.evidence.checkpoint is None:
            return NO_CHECKPOINT
        return self.evidence.checkpoint

    @property
    def registered(self) -> Mapping[str, tuple[str, ...]]:
        """Return the devices that plugins registered, by resource."""
        return self.checkpoint.registered or {}

    @property
    def sockets(self) -> tuple[Socket, ...]:
        """Return the sockets in the device plugin folder, without the kubelet's own."""
        if self.evidence is None:
            return ()
        return self.evidence.sockets

    def missing(self, collector: str = "devices") -> tuple[Missing, ...]:
        """Return what is missing of its own evidence."""
        if self.host:
            return self.host.missing(collector)
        return (Missing(self.name, "host", "not_asked"),)

    def admitted_again(self, pod: Pod) -> bool | None:
        """Tell whether a kubelet rejected a pod that one before it had accepted.

        The result is None where that is not known.

        The first kubelet that writes a pod's status, accepting or rejecting, sets the start time,
        and nothing changes it afterwards. In some releases a kubelet may also admit an ended pod
        again. There, devices that the pod once got must prove that it was accepted. In other
        releases they prove it
        alone: a pod that was given devices is rejected only by a kubelet that has started since.
        """
        once = self.release is not None and not ENDED_AGAIN[0] <= self.release <= ENDED_AGAIN[1]
        proof = self.had_devices(pod)
        if once and proof:
            return True
        across = self._across_restart(pod)
        if across and not (once or proof):
            return None
        return across

    def _across_restart(self, pod: Pod) -> bool | None:
        """Tell whether a pod started before the kubelet that runs, which then rejected it.

        The result is None where that is not known.
        """
        if self.host is None or self.host.kubelet_started is None:
            return None
        early = self.host.kubelet_started - timedelta(seconds=CLOCK_SECONDS)
        if pod.started is not None and pod.started >= early:
            return False
        if pod.rejected_at is not None and pod.rejected_at < early:
            return False
        if pod.started is None or pod.rejected_at is None:
            return None
        return True

    def had_devices(self, pod: Pod) -> bool:
        """Return whether it got all that it asks for of the resource that it was rejected for.

        A rejected pod may also get some of it.
        """
        resource = pod.refusal.resource or ""
        count = sum(
            len(holding.devices)
            for holding in self.holdings()
            if holding.pod_uid == pod.uid and holding.resource == resource
        )
        return 0 < pod.requests.get(resource, 0) <= max(count, pod.had.get(resource, 0))

    def holdings(self) -> list[Holding]:
        """Who holds devices by the checkpoint, and what became of those pods.

        Without the API's pods all that is known is their uid.
        """
        by_uid = {uid: pod for pod in self.pods for uid in pod.uids()}
        return [
            Holding(
                entry.pod_uid,
                entry.container,
                entry.resource,
                entry.devices,
                self._state(by_uid.get(entry.pod_uid)),
                by_uid.get(entry.pod_uid),
            )
            for entry in self.checkpoint.entries
        ]

    def forgotten(self) -> list[tuple[Pod, str]]:
        """Return (pod, resource) of running pods with devices that the newer checkpoint lacks.

        Both times are of the kubelet's own clock. Devices that no plugin ever registered here are
        another's, as a DRA driver's.
        """
        written = self.checkpoint.mtime
        if self.checkpoint.error or written is None:
            return []
        return [
            (pod, resource)
            for pod, resource in self.unknown_holders()
            if pod.started and pod.started.timestamp() + CLOCK_SECONDS < written
        ]

    def unknown_holders(self) -> list[tuple[Pod, str]]:
        """Return (pod, resource) of running pods with devices that the checkpoint lacks."""
        entries = self.checkpoint.entries
        if len(entries) >= MAX_ENTRIES:
            return []
        recorded_pairs = {(entry.pod_uid, entry.resource) for entry in entries}
        running = [pod for pod in self.pods if pod.runs and not pod.deleted]
        requested = [(pod, name) for pod in running for name in self._registered_of(pod)]
        return [
            (pod, resource)
            for pod, resource in requested
            if recorded_pairs.isdisjoint((uid, resource) for uid in pod.uids())
        ]

    def _registered_of(self, pod: Pod) -> list[str]:
        """Return the resources that a pod requests and that a plugin registered here."""
        registered = self.registered
        return [name for name, count in pod.requests.items() if count and name in registered]

    @staticmethod
    def _state(pod: Pod | None) -> str:
        if pod is None:
            return "gone"
        if pod.ended:
            return "ended"
        if pod.deleted:
            return "terminating"
        return "alive"

    def live_sockets(self) -> int:
        """Plugins that may have registered with the kubelet that runs."""
        return sum(1 for socket in self.sockets if socket.answers and not self.is_older(socket))

    def is_older(self, socket: Socket) -> bool:
        """Return whether it was made before the kubelet's own.

        A kubelet empties the folder before it makes that, and plugins register later.
        """
        if self.evidence is None or self.evidence.kubelet_socket is None:
            return False
        own_time = self.evidence.kubelet_socket.made
        return own_time is not None and socket.made is not None and socket.made + 1 < own_time

    def has_unused_socket(self) -> bool:
        """Tell whether more plugins answer than resources have one that is registered.

        A plugin without devices is registered too, with an empty list.
        """
        served = {name for name, (dummy, healthy) in self.resources.items() if healthy}
        return self.live_sockets() > len(served | set(self.registered))

    def came_early(self, pod: Pod) -> Socket | None:
        """Return the socket of a plugin that came after a pod was rejected for want of its devices.

        The kubelet that runs rejected the pod soon after its start, and has the devices now.
        """
        resource, when = pod.refusal.resource or "", pod.rejected_at or pod.started
        begun = self.host.kubelet_started if self.host else None
        if begun is None or when is None or not self.resources.get(resource, (0, 0))[1]:
            return None
        age = (when - begun).total_seconds()
        if resource not in self.registered or not -CLOCK_SECONDS <= age <= EARLY_SECONDS:
            return None
        return self._first_plugin_after(when)

    def _first_plugin_after(self, when: datetime) -> Socket | None:
        """Return the oldest socket that answers where all of them are younger than that."""
        # Which socket is whose is not known: a plugin that was there already may have been its own.
        there = sorted((row for row in self.sockets if row.answers), key=_made)
        if not there or _made(there[0]) <= when.timestamp():
            return None
        return there[0]

    def dropped_after_start(self) -> bool:
        """Tell whether the kubelet that runs wrote its checkpoint when its plugins' time was over.

        What the checkpoint lacks since then had a plugin before the kubelet started.
        """
        written = self.checkpoint.mtime
        started = self.host.kubelet_started if self.host else None
        if written is None or started is None or self.checkpoint.error:
            return False
        age = written - started.timestamp()
        return REGISTRATION_SECONDS <= age <= REGISTRATION_END_SECONDS

    def unserved(self, resource: str) -> bool | None:
        """Tell whether no plugin can be at work for a resource without a healthy device.

        The result is None where the node was not asked.

        A plugin serves one resource behind one socket. If no more sockets answer than other
        resources have healthy devices, none is left for this resource.
        """
        if self.evidence is None:
            return None
        served = sum(
            1 for name, (dummy, healthy) in self.resources.items() if healthy and name != resource
        )
        return self.live_sockets() <= served


@memoize.last
def nodes(cluster: Cluster) -> list[Node]:
    """Return every Node of the API's list, with what its host and its rejected pods tell."""
    rows = []
    answer = cluster.typed(Rejected)
    hosts = cluster.hosts_by_node()
    rejected: dict[str, list[Pod]] = {}
    for pod in answer.items:
        rejected.setdefault(str(pod.node), []).append(_pod(pod))
    pods_of = answer.nodes or {}
    for item in cluster.typed(Nodes).items:
        name = str(item.name)
        node = Node(
            name,
            hosts.get(name),
            item.devices or {},
            rejected=rejected.get(name, []),
            release=pflag.parse_version(item.kubelet_version or ""),
            count=len(rejected.get(name, [])),
        )
        if name in pods_of:
            _add_pods(node, pods_of[name])
        rows.append(node)
    return rows


def _add_pods(node: Node, node_pods: NodePods) -> None:
    """Add the pods of a node that rejected one."""
    node.asked = True
    node.pods = [_pod(pod) for pod in node_pods.pods]
    node.plugins = node_pods.plugins
    node.count = max(node.count, node_pods.rejected or 0)


def _pod(pod: OwnedPod) -> Pod:
    ended = timestamp(pod.finished_at)
    if ended is None and pod.phase in ("Succeeded", "Failed"):
        ended = timestamp(pod.created)
    return Pod(
        f"{pod.namespace}/{pod.name}",
        str(pod.uid),
        pod.owner,
        pod.owner_uid,
        pod.scheduler,
        pod.placed,
        {**(pod.requests or {}), **(pod.compute or {})},
        timestamp(pod.created),
        timestamp(pod.deletion_requested),
        ended,
        pod.hash,
        refusal(pod.reason, pod.message),
        f"{pod.reason}: {pod.message}",
        timestamp(pod.started),
        timestamp(pod.rejected_at),
        pod.rejected_at != NOT_COLLECTED,
        pod.had or {},
        pod.wanted,
        pod.phase == "Running",
        pod.qos,
    )
