# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check pods of a node that do not end (KM609) or end again and again (KM611)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ....module_utils.shared.pod_states import CRASHES
from ....module_utils.shared.text import times
from ...evidence.answers.cluster.pod_start import PodEvents, PodStart
from ...evidence.answers.cluster.pod_states import EndingPods, PodStates
from ...evidence.document import ends, one_line, shell_name
from ...models import ages
from ...models.cluster import Cluster
from ...models.repeated_errors import RuntimeObstacle
from ...models.result import EvidenceRef
from ...parsers.known_message import EVENT, RUNTIMES
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes
from ..known_causes import Source, explained
from ..node import wording
from . import late_docker

LATE_SECONDS = 600  # after the grace period: volumes and networks are taken down by then
# One workload that fails lies on one node often enough: two count that run elsewhere.
CRASHING, WORKLOADS, SHARE = 3, 2, 0.5
KILLS = ("FailedKillPod", "FailedSync")
PLACES = (EVENT, "kubelet", *RUNTIMES)  # who writes what an event of a pod quotes
# runc's words where it may not signal a container's first process. It runs as root, and the kernel
# alone does not refuse that.
_DENIED = re.compile(r"unable to signal init: (?:permission denied|operation not permitted)")
DENIED = (
    "; runc may not signal their processes: a security module denies it to root (AppArmor with a"
    " profile of its own for runc, or SELinux)"
)
DENIED_ADVICE = (
    "see what is denied (journalctl -k -b -g 'apparmor=\"DENIED\"', ausearch -m avc -ts boot). With"
    ' AppArmor and peer="runc" (AppArmor 4, Ubuntu 23.10 and later): update containerd to 1.7.19 or'
    " later, whose profile takes signals of runc, and make the pods again; until then, as root:"
    " ln -s /etc/apparmor.d/runc /etc/apparmor.d/disable/ and apparmor_parser -R"
    " /etc/apparmor.d/runc. See https://github.com/containerd/containerd/pull/10123"
)


@cluster_check(
    "KM609",
    "Pods of a node stay Terminating",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pod_states", "nodes"),
    tier="deep",
    current_only=True,
    same_node=True,
    explained_by=causes("KM115", "KM508", "KM512", "KM525", "KM536", "KM601", "KM607"),
)
def not_ending(cluster: Cluster) -> Iterator[CheckResult]:
    """KM609: report nodes whose pods stay Terminating long after their grace period."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    missing = [*cluster.missing("pod_states"), *cluster.cut("pod_states")]
    hits = []
    for row in cluster.typed(PodStates).ending:
        late = ages.age(cluster, row.since)
        if row.pods and late is None:
            missing.append(cluster.missing_answer("pod_states", "error"))
        elif row.pods > row.finalizers and late is not None and late >= LATE_SECONDS:
            hits.append(_ending(cluster, row))
    yield CheckResult(tuple(hits), tuple(missing))


def _ending(cluster: Cluster, row: EndingPods) -> Detection:
    node = one_line(row.node, 253)
    host = wording.host_of(cluster, node)
    names = ", ".join(one_line(name, 320) for name in row.names)
    text = f"{row.pods} Terminating, the oldest grace period ended at {one_line(row.since, 40)}"
    if row.finalizers:
        text += f"; {row.finalizers} of them have a finalizer, which its owner takes away"
    pods = row.pods - row.finalizers
    events = [event for event in cluster.typed(PodStart).events if _is_kill(event, node)]
    clause, advice = "", _advice(node)
    because: tuple[str, ...] = ()
    obstacle = _obstacle(cluster, node)
    if any(_DENIED.search(event.message) for event in events):
        clause, advice = DENIED, DENIED_ADVICE
    elif obstacle is not None:
        clause = f"; {obstacle.component}: {obstacle.clause}"
        advice, because = f"{obstacle.advice}. Else {advice}", ("KM529",)
    summary = f"{wording.pods(pods)} {wording.do(pods)} not end{wording.since(row.since)}: {names}"
    hit = Detection(
        f"{summary}{clause}",
        (
            EvidenceRef("api", cluster.api_host, object=f"Node {node}", text=text),
            *(_kill_proof(cluster, event) for event in events[:1]),
        ),
        advice,
        host=host,
        node=node,
        because=because,
    )
    if not clause:
        hit = late_docker.with_late_docker(cluster, hit, node)
    texts = [event.message for event in events]
    return explained(hit, PLACES, texts, source=Source(versions=cluster.versions(node)))


def _obstacle(cluster: Cluster, node: str) -> RuntimeObstacle | None:
    """Return what keeps the runtime of a node from its work, if that is known."""
    host = cluster.node_hosts.get(node)
    return host.runtime_obstacle if host is not None else None


def _advice(node: str) -> str:
    return (
        "see what their processes wait for on that node (ps -eo pid,stat,wchan:32,cmd | grep ' D'),"
        " dead mounts, and what kubelet and runtime log of them; a pod that is deleted by force"
        f" (--force) is forgotten by the API and may run on: kubectl describe node"
        f" {shell_name(node, 'NODE')} first"
    )


def _is_kill(event: PodEvents, node: str) -> bool:
    return event.node == node and event.reason in KILLS


def _kill_proof(cluster: Cluster, event: PodEvents) -> EvidenceRef:
    text = f"{one_line(event.reason, 80)}, {times(event.count)}: {ends(event.message, 400)}"
    about = f"Event of Pod {one_line(event.pod, 320)}"
    return EvidenceRef("api", cluster.api_host, object=about, text=text)


@cluster_check(
    "KM611",
    "Pods of one node crash repeatedly",
    severity="warning",
    applies="clusters with two nodes or more whose API answers",
    cluster_needs=("pod_states", "nodes"),
    tier="deep",
    current_only=True,
    same_node=True,
    explained_by=causes(
        "KM115", "KM401", "KM402", "KM404", "KM516", "KM520", "KM523", "KM524", "KM527", "KM607"
    ),
)
def crashing(cluster: Cluster) -> Iterator[CheckResult]:
    """KM611: report a node on which pods crash that is alone with it."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    missing = [*cluster.missing("pod_states"), *cluster.cut("pod_states")]
    rows = cluster.typed(PodStates).nodes or ()
    total = sum(_crashes(row.states or {}) for row in rows)
    hits = [
        _crashing(cluster, row.node, row.states or {}, total)
        for row in rows
        if row.elsewhere >= WORKLOADS and _is_alone(row.states or {}, total)
    ]
    yield CheckResult(tuple(hits), tuple(missing))


def _is_alone(states: Mapping[str, int], total: int) -> bool:
    """Tell whether a node has more crashes than all others, and many for its pods."""
    count = _crashes(states)
    is_many = count >= CRASHING and 4 * count >= sum(states.values())
    return is_many and count > SHARE * total


def _crashes(states: Mapping[str, int]) -> int:
    return sum(states.get(state, 0) for state in CRASHES)


def _crashing(cluster: Cluster, name: str, states: Mapping[str, int], total: int) -> Detection:
    node, count = one_line(name, 253), _crashes(states)
    host = wording.host_of(cluster, node)
    listed = ", ".join(f"{states[state]} {one_line(state, 80)}" for state in sorted(states))
    selector = f"spec.nodeName={shell_name(node, 'NODE')}"
    return Detection(
        f"{count} of {sum(states.values())} pods crash again and again; on all other nodes"
        f" together {total - count} do",
        (EvidenceRef("api", cluster.api_host, object=f"Node {node}", text=f"its pods: {listed}"),),
        "see the end of the logs of two of them (kubectl logs --previous): what they have in common"
        f" is the node's; kubectl get pods -A -o wide --field-selector {selector} lists them",
        host=host,
        node=node,
    )
