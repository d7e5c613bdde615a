# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: predicates about pods that a kubelet rejected, and the devices of its node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from ansible_collections.kubemend.remediation.plugins.plugin_utils import devices
from ansible_collections.kubemend.remediation.plugins.plugin_utils.cluster import Cluster
from ansible_collections.kubemend.remediation.plugins.plugin_utils.devices import GRACE_SECONDS, OWN_SECONDS, Holding, Node, Pod
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Hit, Outcome
from ansible_collections.kubemend.remediation.plugins.plugin_utils.model import Missing, Proof
from ansible_collections.kubemend.remediation.plugins.plugin_utils.rejection import DEVICE_KINDS

SHOWN = 5
SECOND = "%Y-%m-%dT%H:%M:%SZ"
_STATES = {"alive": "runs", "terminating": "is still terminating", "ended": "has ended", "gone": "is no more"}
PerNode = Callable[[Node], Iterator[Hit]]


def per_node(look: PerNode, *needs: str, own: Callable[[Node], bool] | None = None, collector: str = "devices") -> Callable[[Cluster], Iterator[Outcome]]:
    """A cluster predicate that looks at each node. needs: collectors of the API; own: whether the node's own evidence decides there.

    collector: which of the node's own it is that decides.
    """
    def judge(cluster: Cluster) -> Iterator[Outcome]:
        missing = [lack for name in needs for lack in cluster.missing(name)]
        if not missing and "rejected" in needs:
            missing += cluster.cut("rejected")
        if not missing and not all("devices" in item for item in (cluster.answer("nodes") or {}).get("items") or ()):
            missing.append(Missing(cluster.api_host or "cluster API", "nodes", "not_asked"))  # an older release collected it
        hits: list[Hit] = []
        for node in devices.nodes(cluster):
            hits += look(node)
            if own is not None and own(node):
                missing += node.missing(collector)
                missing += untimed(cluster, node) if collector == "kubelet" else ()
        yield Outcome(tuple(hits), tuple(dict.fromkeys(missing)), cluster.key is not None)

    return judge


def rejected(node: Node) -> Iterator[Hit]:
    """KM320: the symptom, and who holds what was asked for."""
    if not node.rejected:
        return
    newest = node.rejected[:SHOWN]
    proofs = [Proof("api", object=f"Pod {pod.name}", text=f"{pod.said} ({pod.way()})") for pod in newest]
    asked = {pod.refusal.resource for pod in node.rejected if pod.refusal.kind in DEVICE_KINDS}
    proofs += [_held(node, one) for one in node.holdings() if one.resource in asked][:2 * SHOWN]
    first = node.rejected[0].refusal
    what = f"{first.resource}: {first.requested} asked for, {first.available} available" if first.available is not None else first.resource
    count = f"{len(node.rejected)} pod{'s' if len(node.rejected) > 1 else ''}"
    yield _hit(node, f"the kubelet of {node.name} rejected {count}, the newest {node.rejected[0].name}" + (f" ({what})" if what else ""),
               proofs, "repair what the other findings name; a rejected pod never runs again, and its owner makes another")


def _held(node: Node, holding: Holding) -> Proof:
    who = holding.pod.name if holding.pod else f"pod {holding.pod_uid}"
    by = f" ({holding.pod.way()})" if holding.pod else ""
    return Proof("file", node.inventory_host, path=node.checkpoint.get("path"),
                 text=f"{', '.join(holding.devices)} of {holding.resource} held by {who}, container {holding.container}, which "
                      f"{_STATES[holding.state]}{by}")


def _hit(node: Node, summary: str, proofs: Iterable[Proof], remedy: str, severity: str | None = None) -> Hit:
    return Hit(summary, tuple(proofs), remedy, host=node.inventory_host, node=node.name, severity=severity)


def _short(node: Node) -> Iterator[tuple[Pod, str, int, int, list[Pod]]]:
    """(rejected pod, resource, asked, allocatable, the others that asked for it then) of pods that lacked devices."""
    for pod in node.rejected:
        resource = pod.refusal.resource
        if pod.refusal.kind != "devices" or resource is None or not node.resources.get(resource, (0, 0))[1] or node.admitted_again(pod):
            continue
        asked = pod.requests.get(resource) or pod.refusal.requested or 0
        others = [one for one in node.pods if one.requests.get(resource) and one.alive_at(pod.came) and not _surplus(one, pod)]
        yield pod, resource, asked, node.resources[resource][1], others


def _surplus(one: Pod, other: Pod) -> bool:
    """Pods of one Job at one time: that is two controller managers, or a replacement, and not too much asked for."""
    return one.owner_uid is not None and one.owner_uid == other.owner_uid


def oversubscribed(node: Node) -> Iterator[Hit]:
    """KM321: what was put on the node past the scheduler asks for more than there is."""
    for pod, resource, asked, there, others in _short(node):
        total = asked + sum(one.requests[resource] for one in others)
        if total > there and (pod.placed or any(one.placed for one in others)):
            yield _hit(node, f"pods that ask for {total} {resource} were put on {node.name}, which has {there}, past the scheduler",
                       [Proof("api", object=f"Pod {one.name}", text=f"asks for {one.requests.get(resource, asked)} {resource}; {one.way()}")
                        for one in [pod, *others]],
                       "take spec.nodeName out of the pod templates and let the scheduler count (a nodeSelector still chooses the node)")
            return


def two_schedulers(node: Node) -> Iterator[Hit]:
    """KM205: schedulers that do not see each other's choices filled one node."""
    for pod, resource, asked, there, others in _short(node):
        chosen = [one for one in [pod, *others] if one.placed is not True and one.scheduler]
        names = sorted({one.scheduler for one in chosen if one.scheduler})
        if len(names) > 1 and pod in chosen and asked + sum(one.requests[resource] for one in others) > there:
            yield _hit(node, f"{' and '.join(names)} each placed pods with {resource} on {node.name}",
                       [Proof("api", object=f"Pod {one.name}", text=f"asks for {one.requests.get(resource, asked)} {resource}; {one.way()}")
                        for one in chosen],
                       "give each scheduler nodes of its own (labels and taints), or let one of them place every pod with this resource")
            return


def not_given_back(node: Node) -> Iterator[Hit]:
    """KM322: the kubelet counted devices of pods that end or have ended."""
    for pod in node.rejected:
        resource, told = pod.refusal.resource, pod.refusal.available
        if pod.refusal.kind != "devices" or resource is None or told is None or not node.resources.get(resource, (0, 0))[1]:
            continue
        if node.admitted_again(pod):
            continue  # nobody came when it was created: the kubelet did
        held = [one for one in node.holdings() if one.resource == resource]
        living = sum(len(one.devices) for one in held if one.pod and one.pod.alive_at(pod.came))
        lacking = node.resources[resource][1] - living - told
        stuck = [one for one in held if _before(one, pod)]
        if 0 < lacking <= sum(len(one.devices) for one in stuck):
            yield _hit(node, f"{lacking} {resource} of {node.name} were still held by pods that are ending or have ended when {pod.name} came",
                       [_held(node, one) for one in stuck],
                       "wait until they are gone, or find what keeps them (a volume that does not unmount, a process that does not end: "
                       "the kubelet's log names the pod); restarting the kubelet is no cure and endangers the other device pods")
            return


def _before(holding: Holding, pod: Pod) -> bool:
    """Whether it was asked to go, or had ended, before the other came. Of one that is no more nobody can tell: it may have lived then."""
    if holding.pod is None or pod.came is None:
        return False
    # Pods of one owner follow each other, with two controller managers several times a second: that is no device that is not given back.
    usual = timedelta(seconds=OWN_SECONDS if _surplus(holding.pod, pod) else 0)
    going = holding.pod.deleted is not None and holding.pod.deleted + usual <= pod.came
    return going or (holding.pod.ended is not None and holding.pod.ended + max(usual, timedelta(seconds=GRACE_SECONDS)) <= pod.came)


def admitted_again(node: Node) -> Iterator[Hit]:
    """KM328: a kubelet that started rejected what one before it had accepted."""
    pods = [pod for pod in of_devices(node) if node.admitted_again(pod)]
    if not pods:
        return
    since = node.host.kubelet_started if node.host else None
    proofs = [Proof("process", node.inventory_host, text=f"the kubelet runs since {since:{SECOND}}")] if since else []
    for pod in pods[:SHOWN]:
        had = f"; it had been given its {pod.refusal.resource}" if node.had_devices(pod) else ""
        proofs.append(Proof("api", object=f"Pod {pod.name}", text=f"{pod.said} (first seen by a kubelet {_time(pod.started)}, rejected "
                                                                  f"{_time(pod.rejected_at)}{had})"))
    more = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
    yield _hit(node, f"the kubelet of {node.name} rejected {pods[0].name}{more} when it had started and admitted again what was accepted before", proofs,
               f"see that the device plugin of {node.name} has registered, then delete the rejected pods, and create anew those that have no owner "
               "that does it; drain the device pods before the next reboot")


def _time(when: datetime | None) -> str:
    return f"{when:{SECOND}}" if when else "at a time that nobody tells any more"


def of_devices(node: Node) -> list[Pod]:
    """Rejected pods that asked for devices, and were rejected for want of them."""
    return [pod for pod in node.rejected if pod.refusal.kind in DEVICE_KINDS
            or (pod.refusal.kind == "resource" and pod.refusal.resource in pod.requests)]


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
            yield Missing(cluster.api_host or "cluster API", "rejected", "absent" if pod.timed else "not_asked")


def unhealthy(node: Node) -> Iterator[Hit]:
    """KM323: fewer devices may be given out than the plugin reports."""
    for resource, (there, healthy) in sorted(node.resources.items()):
        if healthy < there and (healthy or node.unserved(resource) is False):
            yield _hit(node, f"{there - healthy} of {there} {resource} on {node.name} {'are' if there - healthy > 1 else 'is'} unhealthy",
                       [Proof("api", object=f"Node {node.name}", text=f"{resource}: capacity {there}, allocatable {healthy}"), *_known(node, resource)],
                       "read the plugin pod's log and the driver's (nvidia-smi, dmesg for Xid); the devices that are left stay in use")


def _known(node: Node, resource: str) -> list[Proof]:
    if resource not in node.registered:
        return []
    return [Proof("file", node.inventory_host, path=node.checkpoint.get("path"),
                  text=f"healthy at its last writing: {', '.join(node.registered[resource]) or 'none'}")]


def silent_nodes(node: Node) -> bool:
    """Whether a resource without a healthy device makes the node's own evidence necessary."""
    return any(not healthy for dummy, healthy in node.resources.values())


def unregistered(node: Node) -> Iterator[Hit]:
    """KM324: nobody serves a resource that the kubelet knows."""
    for resource, (there, healthy) in sorted(node.resources.items()):
        known = there or resource in node.registered or any(pod.refusal.resource == resource for pod in node.rejected)
        if healthy or not known or not node.unserved(resource):
            continue
        kubelet = node.seen.get("kubelet_socket") or {}
        dead = [one.get("name") for one in node.seen.get("sockets") or () if one.get("answers") is False]
        text = f"{node.live_sockets()} plugin sockets answer" + (f"; nobody listens on {', '.join(map(str, dead))}" if dead else "")
        since = "" if dead or not kubelet else "; the kubelet made its own socket anew when it started, and no plugin has come since"
        wanted = any(pod.refusal.resource == resource for pod in node.rejected)
        # Nobody asks and nothing is held: the plugin may have been taken away on purpose.
        severity = "critical" if wanted else None if there or any(one.resource == resource for one in node.holdings()) else "info"
        yield _hit(node, f"no device plugin serves {resource} on {node.name}",
                   [Proof("api", object=f"Node {node.name}", text=f"{resource}: capacity {there}, allocatable 0"),
                    Proof("file", node.inventory_host, path=node.seen.get("folder"), text=text + since)],
                   f"let the plugin's pod on {node.name} be made anew (delete that one pod); it registers with the kubelet that runs now",
                   severity)


def crash_looping(node: Node) -> Iterator[Hit]:
    """KM325: the plugin's own pod does not stay up."""
    for plugin in node.plugins:
        for one in plugin.get("containers") or ():
            crashed = one.get("restarts") and one.get("exit_code") and not one.get("ready")
            if one.get("waiting") != "CrashLoopBackOff" and not crashed:
                continue
            said = f"{one.get('restarts')} restarts, {one.get('waiting') or 'not ready'}, last exit code {one.get('exit_code')}"
            yield _hit(node, f"the device plugin {plugin.get('namespace')}/{plugin.get('name')} on {node.name} does not stay up",
                       [Proof("api", object=f"Pod {plugin.get('namespace')}/{plugin.get('name')}",
                              text=f"container {one.get('name')}: {said}" + (f": {one['message']}" if one.get("message") else ""))],
                       f"kubectl -n {plugin.get('namespace')} logs {plugin.get('name')} -c {one.get('name')} --previous; "
                       "'too many open files' there means inotify instances (fs.inotify.max_user_instances), not the plugin")


def changed_ids(node: Node) -> Iterator[Hit]:
    """KM326: running pods hold devices that the plugin knows no more."""
    for resource, ids in sorted(node.registered.items()):
        if not ids or len(ids) != node.resources.get(resource, (0, 0))[0]:
            continue  # unhealthy devices are not in the list either
        lost = [one for one in node.holdings() if one.resource == resource and one.state == "alive" and set(one.devices) - set(ids)]
        if lost:
            yield _hit(node, f"running pods on {node.name} hold {resource} under names that its plugin does not use any more",
                       [*(_held(node, one) for one in lost[:SHOWN]), *_known(node, resource)],
                       "drain the node's device pods before a change of MIG or time-slicing settings; those named here keep hardware that "
                       "the kubelet may give to another pod")


def corrupt(node: Node) -> Iterator[Hit]:
    """KM327: what the kubelet wrote about devices cannot be read, or is not what it wrote."""
    error = node.checkpoint.get("error") or ("its checksum is not that of its content" if node.checkpoint.get("checksum") == "wrong" else None)
    if error:
        yield _hit(node, f"the kubelet of {node.name} cannot trust its device checkpoint: {error}",
                   [Proof("file", node.inventory_host, path=node.checkpoint.get("path"), text=str(error))],
                   "drain the device pods of this node, then move the file away and restart the kubelet: after its next start it knows of no "
                   "device that is in use, and would give them out twice")


def of_kind(*kinds: str, what: str, advice: str) -> PerNode:
    """Rejections with these words of the kubelet."""
    def look(node: Node) -> Iterator[Hit]:
        pods = [pod for pod in node.rejected if pod.refusal.kind in kinds]
        if pods:
            more = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
            yield _hit(node, f"the kubelet of {node.name} rejected {pods[0].name}{more}: {what}",
                       [Proof("api", object=f"Pod {pod.name}", text=pod.said) for pod in pods[:SHOWN]], advice)

    return look
