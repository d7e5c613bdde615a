# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell a scheduler that renews its lease and takes no pods, for KM204.

A scheduler that lost its watch of pods, or hangs, keeps its lease: no other one takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...evidence.answers.cluster.locks import LockObject
from ...evidence.answers.cluster.pending import Pending, UnseenPods
from ...evidence.document import one_line
from ...models import ages
from ...models.cluster import Cluster, Host
from ...models.control_plane import Process
from ...models.moments import timestamp
from ...models.result import EvidenceRef
from ..base import Detection
from ..control_plane import leader_lease
from . import waiting_pods

COMPONENT = "kube-scheduler"
# Even with thousands of pods in its queue, a scheduler reaches each within minutes.
STALLED_SECONDS = 1800
# A message of another pod shows that it works if it came so much later than the pods that wait.
LATER_SECONDS = 60
# The units of distributions that have the scheduler within another program, by an own folder.
_UNITS = (
    ("/var/snap/microk8s", "snap.microk8s.daemon-kubelite"),
    ("/var/lib/rancher/rke2", "rke2-server"),
    ("/var/lib/rancher/k3s", "k3s"),
    ("/var/lib/k0s", "k0scontroller"),
)
_POD = (
    "on that node move kube-scheduler.yaml out of the kubelet's folder of static pods for 20"
    " seconds, and back"
)


def hit(
    cluster: Cluster, entry: UnseenPods, running: list[tuple[Host, Process]]
) -> Detection | None:
    """Return the hit where a scheduler leads and has said nothing of its pods for long."""
    waited = ages.age(cluster, entry.since)
    if waited is None or waited < STALLED_SECONDS or _has_spoken(cluster, entry):
        return None
    lock, _holders = leader_lease.holding(cluster, running, COMPONENT)
    if lock is None or not lock.holder:
        return None
    return _hit(cluster, entry, lock)


def _has_spoken(cluster: Cluster, entry: UnseenPods) -> bool:
    """Tell whether that scheduler has refused other pods since: then these wait for else."""
    since = timestamp(entry.since)
    times = (
        timestamp(row.since)
        for row in cluster.typed(Pending).items
        if row.scheduler == entry.scheduler
    )
    return since is not None and any(
        time is not None and (time - since).total_seconds() > LATER_SECONDS for time in times
    )


def _hit(cluster: Cluster, entry: UnseenPods, lock: LockObject) -> Detection:
    scheduler, since = one_line(entry.scheduler, 120), one_line(entry.since, 40)
    holder = one_line((lock.holder or "").rpartition("_")[0] or lock.holder, 120)
    names = ", ".join(one_line(pod, 320) for pod in entry.names)
    return Detection(
        f"{waiting_pods.wait(waiting_pods.count(entry))} for {scheduler} since {since}, and it has"
        f" written no condition to them. The instance on {holder} is the leader and renews its"
        " lease, but takes no pods: its watch of pods stopped, or it hangs. As long as it renews"
        " its lease, no other instance takes its place",
        (
            EvidenceRef(
                "api",
                cluster.api_host,
                object=f"Pod {names}",
                text=f"spec.schedulerName is {scheduler}, and there is no condition PodScheduled",
            ),
            EvidenceRef(
                "api",
                cluster.api_host,
                object=f"{one_line(lock.kind, 40)} kube-system/{one_line(lock.name, 80)}",
                text=f"held by {one_line(lock.holder, 120)}, renewed at"
                f" {one_line(lock.renew_time, 40)}",
            ),
        ),
        f"read its log, then restart it, so that another instance takes the lease:"
        f" {_start(cluster)}; pods are then placed within seconds. A pod whose ResourceClaim does"
        f" not exist, or whose group is not complete, waits without an event too: look for these"
        f" where only some of the pods of {scheduler} wait",
        component=COMPONENT,
    )


def _start(cluster: Cluster) -> str:
    """Return how a scheduler is started again, by what these hosts run it with."""
    unit = _unit(path for host in cluster.hosts for path in host.installer)
    if unit is None:
        return _POD
    return f"systemctl restart {unit} on that node, one node after the other"


def _unit(paths: Iterable[str]) -> str | None:
    """Return the unit of the distribution that left one of these paths, or None."""
    folders = tuple(paths)
    return next(
        (unit for folder, unit in _UNITS if any(path.startswith(folder) for path in folders)), None
    )
