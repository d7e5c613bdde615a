# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates about pods that a kubelet rejected, and the devices of its node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from ....module_utils.shared.pod_rejection import TELLING
from ...models import devices
from ...models.cluster import Cluster
from ...models.devices import GRACE_SECONDS, OWN_SECONDS, Holding, Node, Pod
from ...models.result import Missing, Proof
from ...parsers.admission_message import DEVICE_KINDS, Refusal
from ..base import Hit, Outcome, causes, cluster_check

SHOWN = 5
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
PerNode = Callable[[Node], Iterator[Hit]]


def per_node(
    look: PerNode,
    *needs: str,
    own: Callable[[Node], bool] | None = None,
    collector: str = "devices",
    silent: Callable[[Node], bool] | None = None,
) -> Callable[[Cluster], Iterator[Outcome]]:
    """A cluster predicate that looks at each node. needs: collectors of the API; own.

    Whether the node's own evidence decides there.

    collector: which of the node's own it is that decides. silent: whether what is told of its pods
    leaves out what decides.
    """

    def judge(cluster: Cluster) -> Iterator[Outcome]:
        missing = [lack for name in needs for lack in cluster.missing(name)]
        if not missing and "rejected" in needs:
            missing += cluster.cut("rejected")
        if not missing and not all(
            "devices" in item for item in (cluster.answer("nodes") or {}).get("items") or ()
        ):
            # an older release collected it
            missing.append(Missing(cluster.api_host or "cluster API", "nodes", "not_asked"))
        hits: list[Hit] = []
        for node in devices.nodes(cluster):
            hits += look(node)
            if own is not None and own(node):
                missing += node.missing(collector)
                missing += untimed(cluster, node) if collector == "kubelet" else ()
            if silent is not None and silent(node):
                missing.append(Missing(cluster.api_host or "cluster API", "rejected", "absent"))
        yield Outcome(tuple(hits), tuple(dict.fromkeys(missing)), cluster.key is not None)

    return judge


def each_node_check(
    code: str,
    title: str,
    *,
    cluster_needs: tuple[str, ...],
    own: Callable[[Node], bool] | None = None,
    collector: str = "devices",
    silent: Callable[[Node], bool] | None = None,
    **metadata: Any,
) -> Callable[[PerNode], PerNode]:
    """Register a cluster check that looks at each Node; see per_node and cluster_check."""

    def register(look: PerNode) -> PerNode:
        check = per_node(look, *cluster_needs, own=own, collector=collector, silent=silent)
        cluster_check(code, title, cluster_needs=cluster_needs, **metadata)(check)
        return look

    return register


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
def rejected(node: Node) -> Iterator[Hit]:
    """KM320: the symptom, and who holds what was asked for."""
    if not node.rejected:
        return
    newest = node.rejected[:SHOWN]
    proofs = [
        Proof("api", object=f"Pod {pod.name}", text=f"{pod.said} ({pod.way()})") for pod in newest
    ]
    asked = {pod.refusal.resource for pod in node.rejected if pod.refusal.kind in DEVICE_KINDS}
    proofs += [_held(node, one) for one in node.holdings() if one.resource in asked][: 2 * SHOWN]
    proofs += [
        Proof(
            "api",
            object=f"Node {node.name}",
            text=(
                f"{name}: capacity {node.resources[name][0]}, allocatable {node.resources[name][1]}"
            ),
        )
        for name in sorted(name for name in asked if name in node.resources)
    ]
    first = node.rejected[0].refusal
    what = _lacked(first)
    count = f"{node.count} pod{'s' if node.count > 1 else ''}"
    yield _hit(
        node,
        f"the kubelet of {node.name} rejected {count}, the newest {node.rejected[0].name}"
        + (f" ({what})" if what else ""),
        proofs,
        "repair what it is because of; where nothing is named, look at its timeline (-e"
        " kubemend_pod=NAMESPACE/NAME), and capture the next one with"
        " kubemend.remediation.capture_logs. A rejected pod never runs again: -e"
        " kubemend_cleanup_rejected=true -e kubemend_max_risk=1 deletes those that grant nobody"
        " another try",
    )


def _lacked(refusal: Refusal) -> str | None:
    """What the kubelet missed, as far as its words tell."""
    resource = refusal.resource or {"cpu": "CPUs of its own", "smt": "whole physical CPUs"}.get(
        refusal.kind
    )
    if resource is None or refusal.available is None or refusal.requested is None:
        return resource
    return (
        f"{resource}: {_number(refusal.requested, resource)} asked for,"
        f" {_number(refusal.available, resource)} available"
    )


def _number(count: int, resource: str) -> str:
    """So much of a resource, as quantities are written: millicores and bytes are nobody's units."""
    if resource == "cpu":
        return f"{count / 1000:g}"
    return (
        f"{count / 2**20:.0f} MiB"
        if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
        else str(count)
    )


def _held(node: Node, holding: Holding) -> Proof:
    who = holding.pod.name if holding.pod else f"pod {holding.pod_uid}"
    by = f" ({holding.pod.way()})" if holding.pod else ""
    still = holding.state in ("gone", "ended") and holding.pod_uid in (
        node.seen.get("running") or ()
    )
    return Proof(
        "file",
        node.inventory_host,
        path=node.checkpoint.get("path"),
        text=(
            f"{', '.join(holding.devices)} of {holding.resource} held by {who}, container"
            f" {holding.container}, which "
            f"{_STATES[holding.state]}{', but had processes when the node was asked' if still else ''}{by}"
        ),
    )


def _hit(
    node: Node, summary: str, proofs: Iterable[Proof], remedy: str, severity: str | None = None
) -> Hit:
    return Hit(
        summary, tuple(proofs), remedy, host=node.inventory_host, node=node.name, severity=severity
    )


def _short(node: Node) -> Iterator[tuple[Pod, str, int, int, list[Pod]]]:
    """(rejected pod, resource, asked, what there is, the others that asked for it then) of pods
    for which too little was left.
    """
    for pod in node.rejected:
        resource, there = pod.refusal.resource, _there(node, pod)
        if resource is None or not there or node.admitted_again(pod):
            continue
        asked = pod.requests.get(resource) or pod.refusal.requested or 0
        others = [one for one in node.pods if one.requests.get(resource) and one.alive_at(pod.came)]
        siblings = [one for one in others if _one_owner(one, pod)]
        # more than were asked for: two controller managers, or a replacement
        if len(siblings) >= (pod.wanted or 1):
            others = [one for one in others if one not in siblings]
        yield pod, resource, asked, there, others


def _there(node: Node, pod: Pod) -> int:
    """How much of what it lacked the node may give out; 0 where that is not told."""
    if pod.refusal.kind == "devices":
        return node.resources.get(pod.refusal.resource or "", (0, 0))[1]
    return pod.refusal.capacity or 0


def silent_nodes(node: Node) -> bool:
    """Whether a resource without a healthy device makes the node's own evidence necessary."""
    return any(not healthy for dummy, healthy in node.resources.values())


def uncounted(node: Node) -> bool:
    """Whether it lacked something of which evidence does not tell what each pod asks for.

    An older release counted devices alone.
    """
    return any(
        pod.refusal.kind == "resource" and pod.refusal.resource not in pod.requests
        for pod in node.rejected
    )


def undated(node: Node) -> bool:
    """Whether nobody tells when a pod was taken up whose devices the checkpoint does not know.

    As evidence of an older release.
    """
    return not node.checkpoint.get("error") and any(
        pod.started is None for pod, resource in node.unknown_holders()
    )


def _one_owner(one: Pod, other: Pod) -> bool:
    return one.owner_uid is not None and one.owner_uid == other.owner_uid


def _sum(pods: Iterable[Pod], resource: str) -> int:
    return sum(one.requests.get(resource, 0) for one in pods)


def _amount(count: int, resource: str) -> str:
    return f"{_number(count, resource)} {_WORDS.get(resource, resource)}"


def _askers(pods: list[Pod], resource: str) -> list[Proof]:
    """What each asks for and how it came, the largest first.

    The first of them is the rejected one.
    """
    pods = pods[:1] + sorted(pods[1:], key=lambda one: -one.requests.get(resource, 0))
    more = (
        [Proof("api", text=f"and {len(pods) - 2 * SHOWN} more pods")]
        if len(pods) > 2 * SHOWN
        else []
    )
    return [
        Proof(
            "api",
            object=f"Pod {one.name}",
            text=(
                "asks for"
                f" {_amount(one.requests.get(resource) or one.refusal.requested or 0, resource)};"
                f" {one.way()}"
            ),
        )
        for one in pods[: 2 * SHOWN]
    ] + more


@each_node_check(
    "KM321",
    "Pods with nodeName ask for more than their node has",
    severity="critical",
    applies=(
        "nodes with rejected pods that asked for devices, CPUs, memory, huge pages or storage, or"
        " found no place"
    ),
    cluster_needs=("rejected", "nodes"),
    silent=uncounted,
)
def oversubscribed(node: Node) -> Iterator[Hit]:
    """KM321: what was put on the node past the scheduler asks for more than there is."""
    for pod, resource, asked, there, others in _short(node):
        total, past = (
            asked + _sum(others, resource),
            [one for one in others if one.placed and not one.alias],
        )
        # where the rejected one was scheduled itself, it would have found room without the others
        if total > there and (
            (pod.placed and not pod.alias) or (past and total - _sum(past, resource) <= there)
        ):
            yield _hit(
                node,
                f"pods that ask for {_amount(total, resource)} were put on {node.name}, which has"
                f" {_amount(there, resource)}, past the scheduler",
                _askers([pod, *past, *(one for one in others if one not in past)], resource),
                "take spec.nodeName out of the pod templates and let the scheduler count (a"
                " nodeSelector still chooses the node)",
            )
            return


@each_node_check(
    "KM205",
    "Two schedulers place pods on one node",
    severity="critical",
    applies=(
        "nodes with rejected pods that asked for devices, CPUs, memory, huge pages or storage, or"
        " found no place"
    ),
    cluster_needs=("rejected", "nodes"),
    silent=uncounted,
)
def two_schedulers(node: Node) -> Iterator[Hit]:
    """KM205: schedulers that do not see each other's choices filled one node."""
    for pod, resource, asked, there, others in _short(node):
        chosen = [
            one
            for one in [pod, *others]
            if one.placed is not True and one.scheduler and not one.alias
        ]
        foreign = [one for one in chosen if one.scheduler != pod.scheduler]
        total = asked + _sum(others, resource)
        if pod in chosen and foreign and total > there >= total - _sum(foreign, resource):
            names = sorted({one.scheduler for one in chosen if one.scheduler})
            yield _hit(
                node,
                f"{' and '.join(names)} each placed pods with {resource} on {node.name}",
                _askers(chosen, resource),
                "give each scheduler nodes of its own (labels and taints), or let one of them place"
                " every pod with this resource",
            )
            return


@each_node_check(
    "KM322",
    "Devices held by pods that end or have ended",
    severity="critical",
    applies="nodes with rejected pods that asked for devices",
    needs=("devices",),
    cluster_needs=("rejected", "nodes"),
    own=lambda node: bool(node.rejected),
)
def not_given_back(node: Node) -> Iterator[Hit]:
    """KM322: the kubelet counted devices of pods that end or have ended."""
    for pod in node.rejected:
        resource, told = pod.refusal.resource, pod.refusal.available
        if (
            pod.refusal.kind != "devices"
            or resource is None
            or told is None
            or not node.resources.get(resource, (0, 0))[1]
        ):
            continue
        if node.admitted_again(pod):
            continue  # nobody came when it was created: the kubelet did
        held = [one for one in node.holdings() if one.resource == resource]
        living = sum(len(one.devices) for one in held if one.pod and one.pod.alive_at(pod.came))
        lacking = node.resources[resource][1] - living - told
        stuck = [one for one in held if _before(one, pod)]
        if 0 < lacking <= sum(len(one.devices) for one in stuck):
            yield _hit(
                node,
                f"{lacking} {resource} of {node.name} were still held by pods that are ending or"
                f" have ended when {pod.name} came",
                [_held(node, one) for one in stuck],
                "wait until they are gone, or find what keeps them (a volume that does not unmount,"
                " a process that does not end: the kubelet's log names the pod); restarting the"
                " kubelet is no cure and endangers the other device pods",
            )
            return


def _before(holding: Holding, pod: Pod) -> bool:
    """Whether it was asked to go, or had ended, before the other came.

    Of one that is no more nobody can tell: it may have lived then.
    """
    if holding.pod is None or pod.came is None:
        return False
    # Pods of one owner follow each other, with two controller managers several times a second: that
    # is no device that is not given back.
    usual = timedelta(seconds=OWN_SECONDS if _one_owner(holding.pod, pod) else 0)
    going = holding.pod.deleted is not None and holding.pod.deleted + usual <= pod.came
    return going or (
        holding.pod.ended is not None
        and holding.pod.ended + max(usual, timedelta(seconds=GRACE_SECONDS)) <= pod.came
    )


@each_node_check(
    "KM328",
    "Pods were admitted again after their node's kubelet started",
    severity="warning",
    applies="nodes with rejected pods that asked for devices",
    needs=("kubelet", "devices"),
    cluster_needs=("rejected", "nodes"),
    explained_by=causes("KM324", "KM325"),
    own=lambda node: bool(of_devices(node)),
    collector="kubelet",
)
def admitted_again(node: Node) -> Iterator[Hit]:
    """KM328: a kubelet that started rejected what one before it had accepted."""
    pods = [pod for pod in of_devices(node) if node.admitted_again(pod)]
    if not pods:
        return
    since = node.host.kubelet_started if node.host else None
    proofs = (
        [Proof("process", node.inventory_host, text=f"the kubelet runs since {since:{SECOND}}")]
        if since
        else []
    )
    for pod in pods[:SHOWN]:
        had = f"; it had been given its {pod.refusal.resource}" if node.had_devices(pod) else ""
        proofs.append(
            Proof(
                "api",
                object=f"Pod {pod.name}",
                text=(
                    f"{pod.said} (first seen by a kubelet {_time(pod.started)}, rejected "
                    f"{_time(pod.rejected_at)}{had})"
                ),
            )
        )
    more = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
    yield _hit(
        node,
        f"the kubelet of {node.name} rejected {pods[0].name}{more} when it had started and admitted"
        " again what was accepted before",
        proofs,
        f"see that the device plugin of {node.name} has registered, then delete the rejected pods,"
        " and create anew those that have no owner that does it; drain the device pods before the"
        " next reboot",
    )


def _time(when: datetime | None) -> str:
    return f"{when:{SECOND}}" if when else "at a time that nobody tells any more"


def of_devices(node: Node) -> list[Pod]:
    """Rejected pods that asked for devices, and were rejected for want of them."""
    return [
        pod
        for pod in node.rejected
        if pod.refusal.kind in DEVICE_KINDS
        or (
            pod.refusal.kind == "resource"
            and "/" in (pod.refusal.resource or "")
            and pod.refusal.resource in pod.requests
        )
    ]


def untimed(cluster: Cluster, node: Node) -> Iterator[Missing]:
    """Times without which it is not known whether a pod was admitted again."""
    if not node.host or node.host.missing("kubelet"):
        return
    for pod in of_devices(node):
        if node.admitted_again(pod) is not None:
            continue
        if node.host.kubelet_started is None:
            yield Missing(node.host.host, "kubelet", "absent")
        else:  # evidence of an older release has no such time at all
            yield Missing(
                cluster.api_host or "cluster API",
                "rejected",
                "absent" if pod.timed else "not_asked",
            )


@each_node_check(
    "KM323",
    "Unhealthy devices",
    severity="warning",
    applies="nodes with device plugins",
    needs=("devices",),
    cluster_needs=("nodes",),
    own=silent_nodes,
)
def unhealthy(node: Node) -> Iterator[Hit]:
    """KM323: fewer devices may be given out than the plugin reports."""
    for resource, (there, healthy) in sorted(node.resources.items()):
        if healthy < there and (healthy or node.unserved(resource) is False):
            yield _hit(
                node,
                f"{there - healthy} of {there} {resource} on {node.name}"
                f" {'are' if there - healthy > 1 else 'is'} unhealthy",
                [
                    Proof(
                        "api",
                        object=f"Node {node.name}",
                        text=f"{resource}: capacity {there}, allocatable {healthy}",
                    ),
                    *_known(node, resource),
                ],
                "read the plugin pod's log and the driver's (nvidia-smi, dmesg for Xid); the"
                " devices that are left stay in use",
            )


def _known(node: Node, resource: str) -> list[Proof]:
    if resource not in node.registered:
        return []
    return [
        Proof(
            "file",
            node.inventory_host,
            path=node.checkpoint.get("path"),
            text=f"healthy at its last writing: {', '.join(node.registered[resource]) or 'none'}",
        )
    ]


@each_node_check(
    "KM324",
    "Device plugin is not registered",
    severity="warning",
    applies="nodes with device plugins",
    needs=("devices",),
    cluster_needs=("nodes",),
    own=silent_nodes,
)
def unregistered(node: Node) -> Iterator[Hit]:
    """KM324: nobody serves a resource that the kubelet knows."""
    for resource, (there, healthy) in sorted(node.resources.items()):
        known = (
            there
            or resource in node.registered
            or any(pod.refusal.resource == resource for pod in node.rejected)
        )
        if healthy or not known or not node.unserved(resource):
            continue
        kubelet = node.seen.get("kubelet_socket") or {}
        dead = [
            one.get("name") for one in node.seen.get("sockets") or () if one.get("answers") is False
        ]
        text = f"{node.live_sockets()} plugin sockets answer" + (
            f"; nobody listens on {', '.join(map(str, dead))}" if dead else ""
        )
        older = [
            one.get("name")
            for one in node.seen.get("sockets") or ()
            if one.get("answers") and node.is_older(one)
        ]
        text += (
            "; older than the kubelet's own, so not registered with it:"
            f" {', '.join(map(str, older))}"
            if older
            else ""
        )
        since = (
            ""
            if dead or not kubelet
            else (
                "; the kubelet made its own socket anew when it started, and no plugin has come"
                " since"
            )
        )
        wanted = any(pod.refusal.resource == resource for pod in node.rejected)
        # Nobody asks and nothing is held: the plugin may have been taken away on purpose.
        severity = (
            "critical"
            if wanted
            else (
                None
                if there or any(one.resource == resource for one in node.holdings())
                else "info"
            )
        )
        yield _hit(
            node,
            f"no device plugin serves {resource} on {node.name}",
            [
                Proof(
                    "api",
                    object=f"Node {node.name}",
                    text=f"{resource}: capacity {there}, allocatable 0",
                ),
                Proof("file", node.inventory_host, path=node.seen.get("folder"), text=text + since),
            ],
            f"let the plugin's pod on {node.name} be made anew (delete that one pod); it registers"
            " with the kubelet that runs now",
            severity,
        )


@each_node_check(
    "KM325",
    "Device plugin does not stay up",
    severity="critical",
    applies="nodes with rejected pods",
    cluster_needs=("rejected", "nodes"),
)
def crash_looping(node: Node) -> Iterator[Hit]:
    """KM325: the plugin's own pod does not stay up."""
    for plugin in node.plugins:
        for one in plugin.get("containers") or ():
            crashed = one.get("restarts") and one.get("exit_code") and not one.get("ready")
            if one.get("waiting") != "CrashLoopBackOff" and not crashed:
                continue
            said = (
                f"{one.get('restarts')} restarts, {one.get('waiting') or 'not ready'}, last exit"
                f" code {one.get('exit_code')}"
            )
            files = TELLING in str(one.get("message")).lower()
            yield _hit(
                node,
                f"the device plugin {plugin.get('namespace')}/{plugin.get('name')} on {node.name}"
                " does not stay up" + (f": {TELLING}" if files else ""),
                [
                    Proof(
                        "api",
                        object=f"Pod {plugin.get('namespace')}/{plugin.get('name')}",
                        text=f"container {one.get('name')}: {said}"
                        + (f": {one['message']}" if one.get("message") else ""),
                    )
                ],
                (
                    "the plugin is not at fault, but a limit of its node (mostly inotify"
                    " instances: KM401, KM402): run kubemend.remediation.too_many_open_files,"
                    f" which names who holds them and raises what is too small on {node.name}"
                    if files
                    else (
                        f"kubectl -n {plugin.get('namespace')} logs {plugin.get('name')} -c"
                        f" {one.get('name')} --previous"
                    )
                ),
            )


@each_node_check(
    "KM326",
    "Device names changed under running pods",
    severity="warning",
    applies="nodes with rejected pods",
    needs=("devices",),
    cluster_needs=("rejected", "nodes"),
    own=lambda node: bool(node.rejected),
)
def changed_ids(node: Node) -> Iterator[Hit]:
    """KM326: running pods hold devices that the plugin knows no more."""
    for resource, ids in sorted(node.registered.items()):
        if not ids or len(ids) != node.resources.get(resource, (0, 0))[0]:
            continue  # unhealthy devices are not in the list either
        lost = [
            one
            for one in node.holdings()
            if one.resource == resource and one.state == "alive" and set(one.devices) - set(ids)
        ]
        if lost:
            yield _hit(
                node,
                f"running pods on {node.name} hold {resource} under names that its plugin does not"
                " use any more",
                [*(_held(node, one) for one in lost[:SHOWN]), *_known(node, resource)],
                "drain the node's device pods before a change of MIG or time-slicing settings;"
                " those named here keep hardware that the kubelet may give to another pod",
            )


@each_node_check(
    "KM327",
    "Device checkpoint is stale or corrupt",
    severity="critical",
    applies="nodes with device plugins",
    risk=3,
    needs=("devices",),
    cluster_needs=("rejected", "nodes"),
    own=lambda node: bool(node.resources),
    silent=undated,
)
def corrupt(node: Node) -> Iterator[Hit]:
    """KM327: what the kubelet wrote about devices cannot be read, is not what it wrote, or knows
    nothing of pods that run.
    """
    error = node.checkpoint.get("error") or (
        "its checksum is not that of its content"
        if node.checkpoint.get("checksum") == "wrong"
        else None
    )
    if error:
        yield _hit(
            node,
            f"the kubelet of {node.name} cannot trust its device checkpoint: {error}",
            [Proof("file", node.inventory_host, path=node.checkpoint.get("path"), text=str(error))],
            "drain the device pods of this node, then move the file away and restart the kubelet:"
            " after its next start it knows of no device that is in use, and would give them out"
            " twice",
        )
    lost = [] if error else node.forgotten()
    if lost:
        more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
        yield _hit(
            node,
            f"the kubelet of {node.name} does not know that {lost[0][0].name} has"
            f" {lost[0][1]}{more}: it may give these devices to another pod",
            [
                Proof(
                    "api",
                    object=f"Pod {pod.name}",
                    text=(
                        f"runs, asks for {_amount(pod.requests[resource], resource)}, taken up"
                        f" {_time(pod.started)}"
                    ),
                )
                for pod, resource in lost[:SHOWN]
            ]
            + [
                Proof(
                    "file",
                    node.inventory_host,
                    path=node.checkpoint.get("path"),
                    text="written later, without them",
                )
            ],
            "take these pods away and let them be made anew, one after the other: each is given"
            " devices then that the kubelet counts. The file was lost or replaced while the kubelet"
            " was down",
        )


def of_kind(*kinds: str, what: str, advice: str) -> PerNode:
    """Rejections with these words of the kubelet."""

    def look(node: Node) -> Iterator[Hit]:
        pods = [pod for pod in node.rejected if pod.refusal.kind in kinds]
        if pods:
            more = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
            yield _hit(
                node,
                f"the kubelet of {node.name} rejected {pods[0].name}{more}: {what}",
                [Proof("api", object=f"Pod {pod.name}", text=pod.said) for pod in pods[:SHOWN]],
                advice,
            )

    return look


@each_node_check(
    "KM329",
    "CPU manager rejects pods",
    severity="warning",
    applies="nodes with rejected pods",
    cluster_needs=("rejected", "nodes"),
)
def short_of_cpus(node: Node) -> Iterator[Hit]:
    """Report pods that the CPU manager rejected."""
    return of_kind(
        "cpu",
        "smt",
        what="the CPU manager had not the CPUs that it asks for",
        advice=(
            "compare the node's exclusive CPUs and its reservation with the request; with"
            " full-pcpus-only whole cores are needed"
        ),
    )(node)


@each_node_check(
    "KM330",
    "Memory manager rejects pods",
    severity="warning",
    applies="nodes with rejected pods",
    cluster_needs=("rejected", "nodes"),
)
def short_of_memory(node: Node) -> Iterator[Hit]:
    """Report pods that the memory manager rejected."""
    return of_kind(
        "memory",
        what="the memory manager had not the memory that it asks for",
        advice="compare reservedMemory and memory_manager_state of the node with the request",
    )(node)


@each_node_check(
    "KM331",
    "Topology manager rejects pods",
    severity="warning",
    applies="nodes with rejected pods",
    cluster_needs=("rejected", "nodes"),
)
def unaligned(node: Node) -> Iterator[Hit]:
    """Report pods that the topology manager rejected."""
    return of_kind(
        "topology",
        what="its resources cannot be aligned to the node's topology",
        advice=(
            "ask for what fits into one NUMA node, or choose another topologyManagerPolicy for this"
            " node"
        ),
    )(node)
