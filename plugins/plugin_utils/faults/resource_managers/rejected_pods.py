# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of pods that a kubelet rejected, and the devices of its node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ....module_utils.shared.pod_rejection import TELLING
from ....module_utils.shared.text import counted
from ...evidence.answers.cluster.nodes import Nodes
from ...evidence.answers.cluster.rejected import DevicePlugin, PluginContainer
from ...evidence.document import one_line
from ...models import device_health, devices, pod_roles
from ...models.cluster import Cluster
from ...models.devices import GRACE_SECONDS, OWN_SECONDS, Holding, Node, Pod
from ...models.moments import moment
from ...models.result import EvidenceRef, Missing
from ...parsers import component_log
from ...parsers.admission_message import DEVICE_KINDS, Refusal
from ..base import CheckResult, Detection, causes, cluster_check
from ..known_causes import explained

SHOWN = 5
WITH_SHORTAGES = (
    "nodes with rejected pods that asked for devices, CPUs, memory, huge pages or storage, or found"
    " no place"
)
SECOND = "%Y-%m-%dT%H:%M:%SZ"
_STATES = {
    "alive": "runs",
    "terminating": "is still terminating",
    "ended": "has ended",
    "gone": "is no more",
}
_WORDS = {
    "cpu": "CPUs",
    "memory": "of memory",
    "ephemeral-storage": "of ephemeral storage",
    "pods": "places for pods",
}
# The release whose early kubelets, with this policy, take a pod without hints for one that does not
# fit (kubernetes #83775).
ALIGNS_NOTHING = (1, 16)
STRICTEST = "single-numa-node"
_LACKED = {"cpu": "CPUs of its own", "smt": "whole physical CPUs"}
PerNode = Callable[[Node], Iterator[Detection]]


def per_node(
    look: PerNode,
    *needs: str,
    own_evidence: Callable[[Node], bool] | None = None,
    collector: str = "devices",
    silent: Callable[[Node], bool] | None = None,
) -> Callable[[Cluster], Iterator[CheckResult]]:
    """Return a check of a cluster that evaluates each node. needs: collectors of the API.

    own_evidence: whether the node's own evidence, of this collector, decides there. silent:
    whether the evidence of its pods lacks what decides.
    """

    def node_missing(cluster: Cluster, node: Node) -> Iterator[Missing]:
        if own_evidence is not None and own_evidence(node):
            yield from node.missing(collector)
            if collector == "kubelet":
                yield from untimed(cluster, node)
        if silent is not None and silent(node):
            yield cluster.missing_answer("rejected", "absent")

    def check(cluster: Cluster) -> Iterator[CheckResult]:
        missing = _cluster_missing(cluster, needs)
        hits: list[Detection] = []
        for node in devices.nodes(cluster):
            hits += look(node)
            missing += node_missing(cluster, node)
        yield CheckResult(tuple(hits), tuple(dict.fromkeys(missing)), cluster.key is not None)

    return check


def _cluster_missing(cluster: Cluster, needs: Iterable[str]) -> list[Missing]:
    """Return what is missing of the answers of the API."""
    missing = [lack for name in needs for lack in cluster.missing(name)]
    if not missing and "rejected" in needs:
        missing += cluster.cut("rejected")
    if not missing and not _lists_devices(cluster):
        missing.append(cluster.missing_answer("nodes", "not_asked"))
    return missing


def _lists_devices(cluster: Cluster) -> bool:
    """Tell whether the evidence has the devices of nodes; an older release did not collect them."""
    return all(node.devices is not None for node in cluster.typed(Nodes).items)


def each_node_check(
    code: str,
    title: str,
    *,
    cluster_needs: tuple[str, ...],
    own_evidence: Callable[[Node], bool] | None = None,
    collector: str = "devices",
    silent: Callable[[Node], bool] | None = None,
    **metadata: Any,
) -> Callable[[PerNode], PerNode]:
    """Register a cluster check that looks at each Node; see per_node and cluster_check."""

    def register(look: PerNode) -> PerNode:
        check = per_node(
            look, *cluster_needs, own_evidence=own_evidence, collector=collector, silent=silent
        )
        cluster_check(code, title, cluster_needs=cluster_needs, **metadata)(check)
        return look

    return register


def uncounted(node: Node) -> bool:
    """Tell whether pods lacked something whose requests are not in the evidence.

    An older release counted devices alone.
    """
    return any(
        pod.refusal.kind == "resource" and pod.refusal.resource not in pod.requests
        for pod in node.rejected
    )


def undated(node: Node) -> bool:
    """Tell whether the evidence lacks when a pod that the checkpoint does not know was accepted.

    The evidence of an older release does.
    """
    return not node.checkpoint.error and any(
        pod.started is None for pod, resource in node.unknown_holders()
    )


def silent_nodes(node: Node) -> bool:
    """Tell whether a resource without a healthy device makes the node's own evidence necessary."""
    return any(not healthy for dummy, healthy in node.resources.values())


def manager_check(code: str, title: str) -> Callable[[PerNode], PerNode]:
    """Register a cluster check of the pods that one of the kubelets' managers rejected."""
    return each_node_check(
        code,
        title,
        severity="warning",
        applies="nodes with rejected pods",
        cluster_needs=("rejected", "nodes"),
    )


@manager_check("KM329", "CPU manager rejects pods")
def short_of_cpus(node: Node) -> Iterator[Detection]:
    """Report pods that the CPU manager rejected."""
    return _rejections(
        node,
        "cpu",
        "smt",
        reason="the CPU manager had not the CPUs that it asks for",
        advice=(
            "compare the node's exclusive CPUs and its reservation with the request; with"
            " full-pcpus-only whole cores are needed"
        ),
    )


@manager_check("KM330", "Memory manager rejects pods")
def short_of_memory(node: Node) -> Iterator[Detection]:
    """Report pods that the memory manager rejected."""
    return _rejections(
        node,
        "memory",
        reason="the memory manager had not the memory that it asks for",
        advice="compare reservedMemory and memory_manager_state of the node with the request",
    )


@manager_check("KM331", "Topology manager rejects pods")
def unaligned(node: Node) -> Iterator[Detection]:
    """Report pods that the topology manager rejected."""
    name = ""
    if node.topology_policy:
        name = f" (topologyManagerPolicy {one_line(node.topology_policy, 40)})"
    pods = [pod for pod in node.rejected if pod.refusal.kind == "topology"]
    if pods and all(_asks_for_nothing(node, pod) for pod in pods):
        reason = f"its topology manager{name} rejects what asks for nothing that could be aligned"
        advice = (
            "update the kubelet: early releases of 1.16 do that, and 1.17 does not; until then"
            " best-effort"
        )
    else:
        reason = f"its resources cannot be aligned to the node's topology{name}"
        advice = (
            "ask for what fits into one NUMA node, or choose another topologyManagerPolicy for this"
            " node"
        )
    return _rejections(node, "topology", reason=reason, advice=advice)


def _asks_for_nothing(node: Node, pod: Pod) -> bool:
    """Tell whether a kubelet that aligns what asks for nothing rejected such a pod."""
    is_bare = pod.qos == "BestEffort" and not pod.requests
    is_strictest = node.topology_policy in (None, "", STRICTEST)
    return is_bare and is_strictest and node.release == ALIGNS_NOTHING


@each_node_check(
    "KM320",
    "Pods were rejected by the kubelet",
    severity="warning",
    applies="Failed pods that still exist",
    needs=("devices",),
    cluster_needs=("rejected", "nodes"),
    explained_by=causes(
        "KM101",
        "KM102",
        "KM104",
        "KM106",
        "KM111",
        "KM205",
        "KM321",
        "KM322",
        "KM323",
        "KM324",
        "KM325",
        "KM326",
        "KM327",
        "KM328",
        "KM329",
        "KM330",
        "KM331",
    ),
)
def rejected(node: Node) -> Iterator[Detection]:
    """KM320: the symptom, and who holds what was asked for."""
    if not node.rejected:
        return
    first = node.rejected[0]
    summary = f"the kubelet rejected {_pod_count(node)}, the newest {first.name}"
    lacked = _lacked(first.refusal)
    if lacked:
        summary += f" ({lacked})"
    early, way = _before_its_plugin(node)
    yield _hit(
        node,
        summary + early,
        _rejection_proofs(node),
        f"{way}correct the cause that is named; where none is named, look at its timeline (-e"
        " kubemend_pod=NAMESPACE/NAME), and capture the next one with"
        " kubemend.remediation.capture_logs. A rejected pod never runs again: -e"
        " kubemend_cleanup_rejected=true -e kubemend_max_risk=1 deletes those that grant no owner"
        " another try",
    )


def _before_its_plugin(node: Node) -> tuple[str, str]:
    """Return that pods came before the plugin of their devices, as a clause, and what to do."""
    early = [(pod, node.came_early(pod)) for pod in of_devices(node)]
    explained = [(pod, socket) for pod, socket in early if socket is not None]
    if not explained or node.host is None or len(explained) < len(early):
        return "", ""
    pod, socket = explained[0]
    resource, creation = one_line(pod.refusal.resource or "", 120), moment(socket.made)
    healthy = node.resources[pod.refusal.resource or ""][1]
    clause = (
        f"; they came when the kubelet had started ({_time(node.host.kubelet_started)}), and the"
        f" plugin of {resource} was not there before {_time(creation)}; the node has {healthy} of"
        f" {resource} now"
    )
    way = (
        "the devices are there now, so delete the rejected pods (kubectl delete pod). A kubelet"
        " that starts admits its pods in any order: cordon and drain the node before a reboot, and"
        " uncordon it when its Node shows the devices. Where that is not all of it, "
    )
    return clause, way


def _pod_count(node: Node) -> str:
    return counted(node.count, "pod")


def _rejection_proofs(node: Node) -> list[EvidenceRef]:
    proofs = [_pod_proof(pod, f"{pod.said} ({pod.way()})") for pod in node.rejected[:SHOWN]]
    resources = {pod.refusal.resource for pod in node.rejected if pod.refusal.kind in DEVICE_KINDS}
    holdings = [holding for holding in node.holdings() if holding.resource in resources]
    proofs += [_holding_proof(node, holding) for holding in holdings[: 2 * SHOWN]]
    for resource in sorted(
        name for name in resources if name is not None and name in node.resources
    ):
        capacity, allocatable = node.resources[resource]
        proofs.append(_capacity_proof(node, resource, capacity, allocatable))
    return proofs


def _capacity_proof(node: Node, resource: str, capacity: int, allocatable: int) -> EvidenceRef:
    return EvidenceRef(
        "api",
        object=f"Node {node.name}",
        text=f"{resource}: capacity {capacity}, allocatable {allocatable}",
    )


def _pod_proof(pod: Pod, text: str) -> EvidenceRef:
    return EvidenceRef("api", object=f"Pod {pod.name}", text=text)


def _checkpoint_proof(node: Node, text: str) -> EvidenceRef:
    return EvidenceRef("file", node.inventory_host, path=node.checkpoint.path, text=text)


def _lacked(refusal: Refusal) -> str | None:
    """Return what the kubelet lacked, as far as its message tells."""
    resource = refusal.resource or _LACKED.get(refusal.kind)
    if resource is None or refusal.available is None or refusal.requested is None:
        return resource
    return (
        f"{resource}: {_number(refusal.requested, resource)} asked for,"
        f" {_number(refusal.available, resource)} available"
    )


def _number(count: int, resource: str) -> str:
    """Return an amount of a resource as quantities are written, not in millicores or bytes."""
    if resource == "cpu":
        return f"{count / 1000:g}"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return f"{count / 2**20:.0f} MiB"
    return str(count)


def _holding_proof(node: Node, holding: Holding) -> EvidenceRef:
    owner, origin = f"pod {holding.pod_uid}", ""
    if holding.pod:
        owner, origin = holding.pod.name, f" ({holding.pod.way()})"
    text = (
        f"{', '.join(holding.devices)} of {holding.resource} held by {owner}, container"
        f" {holding.container}, which {_holding_state(node, holding)}{origin}"
    )
    return _checkpoint_proof(node, text)


def _holding_state(node: Node, holding: Holding) -> str:
    state = _STATES[holding.state]
    running = (node.evidence and node.evidence.running) or ()
    if holding.state in ("gone", "ended") and holding.pod_uid in running:
        state += ", but had processes when the node was asked"
    return state


@dataclass(frozen=True)
class _Shortage:
    """A rejected pod for which too little was left.

    others: pods that requested it as well
    """

    pod: Pod
    resource: str
    requested: int
    available: int
    others: list[Pod]

    @property
    def total(self) -> int:
        """What all of them request."""
        return self.requested + _sum(self.others, self.resource)


def _shortages(node: Node) -> Iterator[_Shortage]:
    for pod in node.rejected:
        resource, available = pod.refusal.resource, _available(node, pod)
        if resource is None or not available or node.admitted_again(pod):
            continue
        requested = pod.requests.get(resource) or pod.refusal.requested or 0
        yield _Shortage(pod, resource, requested, available, _competitors(node, pod, resource))


def _competitors(node: Node, pod: Pod, resource: str) -> list[Pod]:
    """Return the other pods that requested this resource when the rejected one came."""
    other_pods = [
        other for other in node.pods if other.requests.get(resource) and other.alive_at(pod.came)
    ]
    siblings = [other for other in other_pods if _one_owner(pod, other)]
    # More than were asked for: two controller managers, or a replacement.
    if len(siblings) >= (pod.wanted or 1):
        return [other for other in other_pods if other not in siblings]
    return other_pods


def _available(node: Node, pod: Pod) -> int:
    """Return how much of what a pod lacked the node may give out; 0 where that is not known."""
    if pod.refusal.kind == "devices":
        return node.resources.get(pod.refusal.resource or "", (0, 0))[1]
    return pod.refusal.capacity or 0


def _hit(
    node: Node,
    summary: str,
    proofs: Iterable[EvidenceRef],
    remedy: str,
    severity: str | None = None,
) -> Detection:
    return Detection(
        summary, tuple(proofs), remedy, host=node.inventory_host, node=node.name, severity=severity
    )


def _one_owner(pod: Pod, other: Pod) -> bool:
    return pod.owner_uid is not None and pod.owner_uid == other.owner_uid


def _sum(pods: Iterable[Pod], resource: str) -> int:
    return sum(pod.requests.get(resource, 0) for pod in pods)


def _amount(count: int, resource: str) -> str:
    return f"{_number(count, resource)} {_WORDS.get(resource, resource)}"


def _askers(pods: list[Pod], resource: str) -> list[EvidenceRef]:
    """Return what each pod requests and how it came, the largest first.

    The first of them is the rejected one.
    """
    pods = pods[:1] + sorted(pods[1:], key=lambda pod: -pod.requests.get(resource, 0))
    proofs = [_request_proof(pod, resource) for pod in pods[: 2 * SHOWN]]
    if len(pods) > 2 * SHOWN:
        proofs.append(EvidenceRef("api", text=f"and {counted(len(pods) - 2 * SHOWN, 'more pod')}"))
    return proofs


def _request_proof(pod: Pod, resource: str) -> EvidenceRef:
    requested = pod.requests.get(resource) or pod.refusal.requested or 0
    return _pod_proof(pod, f"asks for {_amount(requested, resource)}; {pod.way()}")


@each_node_check(
    "KM321",
    "Pods with a fixed nodeName exceed their node's capacity",
    severity="critical",
    applies=WITH_SHORTAGES,
    cluster_needs=("rejected", "nodes"),
    silent=uncounted,
)
def oversubscribed(node: Node) -> Iterator[Detection]:
    """KM321: what was put on the node past the scheduler asks for more than there is."""
    for shortage in _shortages(node):
        past = [pod for pod in shortage.others if _is_placed(pod)]
        if not _is_oversubscribed(shortage, past):
            continue
        resource = shortage.resource
        remaining = [pod for pod in shortage.others if pod not in past]
        yield _hit(
            node,
            f"pods that ask for {_amount(shortage.total, resource)} were put on a node that has"
            f" {_amount(shortage.available, resource)}, past the scheduler",
            _askers([shortage.pod, *past, *remaining], resource),
            "take spec.nodeName out of the pod templates and let the scheduler count (a"
            " nodeSelector still chooses the node)",
        )
        return


def _is_placed(pod: Pod) -> bool:
    """Tell whether the author of a pod, and no scheduler, chose its node."""
    return bool(pod.placed and not pod.alias)


def _is_oversubscribed(shortage: _Shortage, past: list[Pod]) -> bool:
    """Tell whether the pods that no scheduler placed (past) are what made it too much."""
    if shortage.total <= shortage.available:
        return False
    if _is_placed(shortage.pod):
        return True
    # Where the rejected one was scheduled itself, it would have found room without the others.
    scheduled = shortage.total - _sum(past, shortage.resource)
    return bool(past) and scheduled <= shortage.available


@each_node_check(
    "KM205",
    "Two schedulers place pods on one node",
    severity="critical",
    applies=WITH_SHORTAGES,
    cluster_needs=("rejected", "nodes"),
    silent=uncounted,
)
def two_schedulers(node: Node) -> Iterator[Detection]:
    """KM205: schedulers that do not see each other's choices filled one node."""
    for shortage in _shortages(node):
        scheduled = [pod for pod in [shortage.pod, *shortage.others] if _is_scheduled(pod)]
        foreign = [pod for pod in scheduled if pod.scheduler != shortage.pod.scheduler]
        if shortage.pod not in scheduled or not foreign:
            continue
        own_count = shortage.total - _sum(foreign, shortage.resource)
        if shortage.total > shortage.available >= own_count:
            names = sorted({pod.scheduler for pod in scheduled if pod.scheduler})
            yield _hit(
                node,
                f"{' and '.join(names)} each placed pods with {shortage.resource} on this node",
                _askers(scheduled, shortage.resource),
                "give each scheduler nodes of its own (labels and taints), or let one of them place"
                " every pod with this resource",
            )
            return


def _is_scheduled(pod: Pod) -> bool:
    """Tell whether a scheduler may have chosen the node of a pod."""
    return pod.placed is not True and bool(pod.scheduler) and not pod.alias


@each_node_check(
    "KM322",
    "Devices held by pods that end or have ended",
    severity="critical",
    applies="nodes with rejected pods that asked for devices",
    needs=("devices",),
    cluster_needs=("rejected", "nodes"),
    own_evidence=lambda node: bool(node.rejected),
)
def not_given_back(node: Node) -> Iterator[Detection]:
    """KM322: the kubelet counted devices of pods that end or have ended."""
    for pod in node.rejected:
        resource, available = pod.refusal.resource, pod.refusal.available
        if pod.refusal.kind != "devices" or resource is None or available is None:
            continue
        allocatable = node.resources.get(resource, (0, 0))[1]
        if not allocatable or node.admitted_again(pod):
            continue  # Of one admitted again only the kubelet came later, no other pod.
        holdings = [holding for holding in node.holdings() if holding.resource == resource]
        lacking = allocatable - _held_by_living(holdings, pod) - available
        stuck = [holding for holding in holdings if _before(holding, pod)]
        if 0 < lacking <= _device_count(stuck):
            yield _not_given_back_hit(node, pod, lacking, stuck)
            return


def _not_given_back_hit(node: Node, pod: Pod, lacking: int, stuck: list[Holding]) -> Detection:
    return _hit(
        node,
        f"{lacking} {pod.refusal.resource} were still held by pods that are ending"
        f" or have ended when {pod.name} came",
        [_holding_proof(node, holding) for holding in stuck],
        "wait until they are gone, or find what keeps them (a volume that does not unmount,"
        " a process that does not end: the kubelet's log names the pod); restarting the"
        " kubelet is no cure and endangers the other device pods",
    )


def _held_by_living(holdings: Iterable[Holding], pod: Pod) -> int:
    """Return how many devices were held by pods that were alive when this pod came."""
    return _device_count(
        holding for holding in holdings if holding.pod and holding.pod.alive_at(pod.came)
    )


def _device_count(holdings: Iterable[Holding]) -> int:
    return sum(len(holding.devices) for holding in holdings)


def _before(holding: Holding, pod: Pod) -> bool:
    """Tell whether the holder was asked to go, or had ended, before the other pod came.

    The result is False for a holder that does not exist any more: it may have lived then.
    """
    holder = holding.pod
    if holder is None or pod.came is None:
        return False
    # Pods of one owner follow each other, with two controller managers several times a second: that
    # is no device that is not given back.
    usual = timedelta(0)
    if _one_owner(holder, pod):
        usual = timedelta(seconds=OWN_SECONDS)
    if holder.deleted is not None and holder.deleted + usual <= pod.came:
        return True
    grace = max(usual, timedelta(seconds=GRACE_SECONDS))
    return holder.ended is not None and holder.ended + grace <= pod.came


@each_node_check(
    "KM328",
    "Pods were admitted again after their node's kubelet started",
    severity="warning",
    applies="nodes with rejected pods that asked for devices",
    needs=("kubelet", "devices"),
    cluster_needs=("rejected", "nodes"),
    explained_by=causes("KM324", "KM325"),
    own_evidence=lambda node: bool(of_devices(node)),
    collector="kubelet",
)
def admitted_again(node: Node) -> Iterator[Detection]:
    """KM328: a kubelet that started rejected what one before it had accepted."""
    pods = [pod for pod in of_devices(node) if node.admitted_again(pod)]
    if not pods:
        return
    proofs = [_readmission_proof(node, pod) for pod in pods[:SHOWN]]
    if node.host and node.host.kubelet_started:
        text = f"the kubelet runs since {node.host.kubelet_started:{SECOND}}"
        proofs.insert(0, EvidenceRef("process", node.inventory_host, text=text))
    yield _hit(
        node,
        "the kubelet started, checked the pods of this node again, and rejected"
        f" {_first_of(pods)}, which was accepted before",
        proofs,
        "check that the device plugin of this node has registered. Then delete the rejected pods,"
        " and create those again that no controller replaces. Before the next reboot, drain the"
        " pods with devices",
    )


def _readmission_proof(node: Node, pod: Pod) -> EvidenceRef:
    times = f"first seen by a kubelet {_time(pod.started)}, rejected {_time(pod.rejected_at)}"
    if node.had_devices(pod):
        times += f"; it had been given its {pod.refusal.resource}"
    return _pod_proof(pod, f"{pod.said} ({times})")


def _first_of(pods: list[Pod]) -> str:
    if len(pods) > 1:
        return f"{pods[0].name} and {len(pods) - 1} more"
    return pods[0].name


def _time(when: datetime | None) -> str:
    if when is None:
        return "at a time that is no longer known"
    return f"{when:{SECOND}}"


def of_devices(node: Node) -> list[Pod]:
    """Return the rejected pods that requested devices, and were rejected for want of them."""
    return [pod for pod in node.rejected if _lacked_devices(pod)]


def _lacked_devices(pod: Pod) -> bool:
    resource = pod.refusal.resource
    if pod.refusal.kind in DEVICE_KINDS:
        return True
    return pod.refusal.kind == "resource" and "/" in (resource or "") and resource in pod.requests


def untimed(cluster: Cluster, node: Node) -> Iterator[Missing]:
    """Yield the times without which it is not known whether a pod was admitted again."""
    if not node.host or node.host.missing("kubelet"):
        return
    for pod in of_devices(node):
        if node.admitted_again(pod) is not None:
            continue
        if node.host.kubelet_started is None:
            yield Missing(node.host.host, "kubelet", "absent")
            continue
        status = "absent"
        if not pod.timed:  # evidence of an older release has no such time at all
            status = "not_asked"
        yield cluster.missing_answer("rejected", status)


@each_node_check(
    "KM323",
    "Unhealthy devices",
    severity="warning",
    applies="nodes with device plugins",
    needs=("devices", "system_pods"),
    cluster_needs=("nodes",),
    own_evidence=silent_nodes,
)
def unhealthy(node: Node) -> Iterator[Detection]:
    """KM323: fewer devices may be given out than the plugin reports."""
    for resource, (capacity, healthy) in sorted(node.resources.items()):
        if healthy < capacity and (healthy or node.unserved(resource) is False):
            yield _unhealthy(node, resource, capacity, healthy)


def _unhealthy(node: Node, resource: str, capacity: int, healthy: int) -> Detection:
    """Return the hit of devices that are unhealthy, with what their plugin says of that."""
    plugin = device_health.plugin(node.host, resource)
    quote, proofs = "", []
    if plugin is not None:
        name = f"{plugin.namespace}/{plugin.pod}"
        quote = f"; its device plugin {name} said: {component_log.text(plugin.told[0]).rstrip('.')}"
        proofs = [
            EvidenceRef("log", node.inventory_host, path=plugin.path, object=name, text=line)
            for line in plugin.told
        ]
    hit = _hit(
        node,
        f"{capacity - healthy} of {capacity} {resource} {_verb(capacity - healthy)} unhealthy"
        f"{quote}",
        [_capacity_proof(node, resource, capacity, healthy), *_known(node, resource), *proofs],
        "read the plugin pod's log and the driver's (nvidia-smi, dmesg for Xid); the"
        " devices that are left stay in use",
    )
    if plugin is None:
        return hit
    return explained(hit, (pod_roles.DEVICES,), plugin.told)


def _verb(count: int) -> str:
    if count > 1:
        return "are"
    return "is"


def _known(node: Node, resource: str) -> list[EvidenceRef]:
    if resource not in node.registered:
        return []
    text = f"healthy at its last writing: {', '.join(node.registered[resource]) or 'none'}"
    return [_checkpoint_proof(node, text)]


@each_node_check(
    "KM324",
    "Device plugin is not registered",
    severity="warning",
    applies="nodes with device plugins",
    needs=("devices",),
    cluster_needs=("nodes",),
    own_evidence=silent_nodes,
)
def unregistered(node: Node) -> Iterator[Detection]:
    """KM324: no plugin serves a resource that the kubelet knows."""
    for resource, (capacity, healthy) in sorted(node.resources.items()):
        requested = any(pod.refusal.resource == resource for pod in node.rejected)
        if healthy:
            continue
        if not (capacity or resource in node.registered or requested):
            yield from _dropped_hits(node, resource)
        elif node.unserved(resource):
            yield _unregistered_hit(node, resource, capacity, requested)


def _dropped_hits(node: Node, resource: str) -> Iterator[Detection]:
    """Yield the hit of a resource that the kubelet has dropped from its checkpoint.

    A resource whose plugin was taken away on purpose remains in the Node, with 0.
    """
    if node.evidence is None or node.checkpoint.error:
        return
    if node.has_unused_socket():
        summary = (
            f"a device plugin answers, and the kubelet is not connected to it: {resource} is 0"
        )
        advice = (
            "the kubelet never connects again to a plugin whose stream (ListAndWatch) ended:"
            " delete the plugin's pod on this node, so that it registers again"
        )
    elif node.dropped_after_start():
        summary = f"no device plugin has registered for {resource} since the kubelet started"
        advice = (
            "delete the plugin's pod on this node: a plugin that does not watch the kubelet's"
            " socket registers only when it starts"
        )
    else:
        return
    folder = node.evidence.folder
    yield _hit(
        node,
        summary,
        [
            _capacity_proof(node, resource, 0, 0),
            EvidenceRef("file", node.inventory_host, path=folder, text=_sockets(node)),
            _checkpoint_proof(node, f"written without {resource}"),
        ],
        f"{advice}. See the kubelet's log (journalctl -u kubelet | grep ListAndWatch)",
    )


def _unregistered_hit(node: Node, resource: str, capacity: int, requested: bool) -> Detection:
    severity = None
    if requested:
        severity = "critical"
    elif not capacity and not _is_held(node, resource):
        # The plugin may have been taken away on purpose.
        severity = "info"
    folder = None
    if node.evidence is not None:
        folder = node.evidence.folder
    return _hit(
        node,
        f"no device plugin serves {resource}",
        [
            _capacity_proof(node, resource, capacity, 0),
            EvidenceRef("file", node.inventory_host, path=folder, text=_sockets(node)),
        ],
        "let the plugin's pod on this node be recreated (delete that one pod); it registers"
        " with the kubelet that runs now",
        severity,
    )


def _is_held(node: Node, resource: str) -> bool:
    return any(holding.resource == resource for holding in node.holdings())


def _sockets(node: Node) -> str:
    """Return the state of the sockets of device plugins, as text."""
    dead = [socket.name for socket in node.sockets if socket.answers is False]
    older = [socket.name for socket in node.sockets if socket.answers and node.is_older(socket)]
    text = f"{node.live_sockets()} plugin sockets answer"
    if dead:
        text += f"; nothing listens on {', '.join(dead)}"
    if older:
        text += f"; older than the kubelet's own, so not registered with it: {', '.join(older)}"
    if node.evidence and node.evidence.kubelet_socket and not dead:
        text += (
            "; the kubelet created its own socket again when it started, and no plugin has come"
            " since"
        )
    return text


@each_node_check(
    "KM325",
    "Device plugin does not stay up",
    severity="critical",
    applies="nodes with rejected pods",
    cluster_needs=("rejected", "nodes"),
)
def crash_looping(node: Node) -> Iterator[Detection]:
    """KM325: the plugin's own pod does not stay up."""
    for plugin in node.plugins:
        for container in plugin.containers:
            if _is_crashing(container):
                yield _crash_hit(node, plugin, container)


def _is_crashing(container: PluginContainer) -> bool:
    if container.waiting == "CrashLoopBackOff":
        return True
    ended = container.restarts and container.exit_code
    return bool(ended) and not container.ready


def _crash_hit(node: Node, plugin: DevicePlugin, container: PluginContainer) -> Detection:
    name = f"{plugin.namespace}/{plugin.name}"
    text = (
        f"container {container.name}: {counted(container.restarts, 'restart')},"
        f" {container.waiting or 'not ready'}, last exit code {container.exit_code}"
    )
    if container.message:
        text += f": {container.message}"
    summary = f"the device plugin {name} does not stay up"
    remedy = f"kubectl -n {plugin.namespace} logs {plugin.name} -c {container.name} --previous"
    if TELLING in str(container.message).lower():
        summary += f": {TELLING}"
        remedy = (
            "the plugin is not at fault, but a limit of its node (mostly inotify"
            " instances: KM401, KM402): run kubemend.remediation.too_many_open_files,"
            " which names who holds them and raises what is too small there"
        )
    return _hit(node, summary, [EvidenceRef("api", object=f"Pod {name}", text=text)], remedy)


@each_node_check(
    "KM326",
    "Device names changed under running pods",
    severity="warning",
    applies="nodes with rejected pods",
    needs=("devices",),
    cluster_needs=("rejected", "nodes"),
    own_evidence=lambda node: bool(node.rejected),
)
def changed_ids(node: Node) -> Iterator[Detection]:
    """KM326: running pods hold devices that the plugin no longer reports."""
    for resource, ids in sorted(node.registered.items()):
        if not ids or len(ids) != node.resources.get(resource, (0, 0))[0]:
            continue  # unhealthy devices are not in the list either
        lost = [holding for holding in node.holdings() if _is_lost(holding, resource, ids)]
        if lost:
            yield _hit(
                node,
                f"running pods hold {resource} under names that its plugin does not use any more",
                [
                    *(_holding_proof(node, holding) for holding in lost[:SHOWN]),
                    *_known(node, resource),
                ],
                "drain the node's device pods before a change of MIG or time-slicing settings;"
                " those named here keep hardware that the kubelet may give to another pod",
            )


def _is_lost(holding: Holding, resource: str, ids: Iterable[str]) -> bool:
    """Tell whether a running pod holds a device of this resource under an unknown name."""
    if holding.resource != resource or holding.state != "alive":
        return False
    return not set(holding.devices) <= set(ids)


@each_node_check(
    "KM327",
    "Device checkpoint is stale or corrupt",
    severity="critical",
    applies="nodes with device plugins",
    risk=3,
    needs=("devices",),
    cluster_needs=("rejected", "nodes"),
    own_evidence=lambda node: bool(node.resources),
    silent=undated,
)
def corrupt(node: Node) -> Iterator[Detection]:
    """KM327: the device checkpoint cannot be read, was changed, or lacks pods that run."""
    error = node.checkpoint.error
    if not error and node.checkpoint.checksum == "wrong":
        error = "its checksum is not that of its content"
    if error:
        yield _hit(
            node,
            f"the kubelet cannot trust its device checkpoint: {error}",
            [_checkpoint_proof(node, str(error))],
            "drain the device pods of this node, then move the file away and restart the kubelet:"
            " after its next start it knows of no device that is in use, and would give them out"
            " twice",
        )
        return
    forgotten = node.forgotten()
    if forgotten:
        yield _forgotten_hit(node, forgotten)


def _forgotten_hit(node: Node, forgotten: list[tuple[Pod, str]]) -> Detection:
    first, first_resource = forgotten[0]
    more = ""
    if len(forgotten) > 1:
        more = f", and {len(forgotten) - 1} more"
    proofs = [
        _pod_proof(
            pod,
            f"runs, asks for {_amount(pod.requests[resource], resource)}, taken up"
            f" {_time(pod.started)}",
        )
        for pod, resource in forgotten[:SHOWN]
    ]
    return _hit(
        node,
        f"the kubelet does not know that {first.name} has {first_resource}{more}: it"
        " may give these devices to another pod",
        [*proofs, _checkpoint_proof(node, "written later, without them")],
        "take these pods away and let them be recreated, one after the other: each is given"
        " devices then that the kubelet counts. The file was lost or replaced while the kubelet"
        " was down",
    )


def _rejections(node: Node, *kinds: str, reason: str, advice: str) -> Iterator[Detection]:
    """Yield the hit of a node's rejections of these kinds."""
    pods = [pod for pod in node.rejected if pod.refusal.kind in kinds]
    if pods:
        yield _hit(
            node,
            f"the kubelet rejected {_first_of(pods)}: {reason}",
            [_pod_proof(pod, pod.said) for pod in pods[:SHOWN]],
            advice,
        )
