# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods leave a drained node, which stay and why, and what refuses the drain.

The module is pure. The drain is refused before anything is changed, with all reasons in one
sentence, so that an operator sees everything that is to be corrected.
"""

import calendar
import re
import time

from ...kubeapi.client import one_line
from ...shared.cordon_annotation import cordoned, has_foreign_cordon
from . import disruption_budgets

MIRROR = "kubernetes.io/config.mirror"
# of kubemend_allow
FENCED, BARE, LOCAL, KEEP = "fenced", "drain_bare_pods", "drain_local_storage", "keep_cordon"
RESTART = "kubelet_restart"
FENCES = ("node.kubernetes.io/out-of-service", "node.cloudprovider.kubernetes.io/shutdown")
DEFAULT_GRACE_SECONDS = 30
DRY_RUN = (1, 18)  # stable, so that it cannot be switched off
LEASE_SECONDS = 40
NAMED = 10  # names in one sentence; what is more is counted


class Pod:
    """One pod of the node: `item` is what the API has."""

    def __init__(self, item):
        meta, spec, status = (
            item.get("metadata") or {},
            item.get("spec") or {},
            item.get("status") or {},
        )
        self.namespace, self.short, self.uid = (
            meta.get("namespace"),
            meta.get("name"),
            meta.get("uid"),
        )
        self.name = f"{self.namespace}/{self.short}"
        self.labels = meta.get("labels") or {}
        self.finalizers = list(meta.get("finalizers") or [])
        self.ending = bool(meta.get("deletionTimestamp"))
        self.mirror = MIRROR in (meta.get("annotations") or {})
        self.owner = _controller(meta)
        self.phase = status.get("phase")
        self.finished = self.phase in ("Succeeded", "Failed")
        self.ready = _is_ready(status)
        self.local = any("emptyDir" in volume for volume in spec.get("volumes") or [])
        self.devices = devices_of(spec)
        self.grace = _grace(meta, spec, self.ending)
        self.stopped = self.finished or _is_terminated(status)

    @property
    def ignores_budgets(self):
        """Whether no budget counts the pod: it has ended, is terminating, or does not run yet."""
        return self.finished or self.ending or self.phase == "Pending"

    @property
    def is_held(self):
        """Whether only finalizers keep the object.

        The kubelet has ended the pod, and none of its containers runs.
        """
        if not self.ending or not self.finalizers:
            return False
        return self.grace == 0 and self.stopped

    @property
    def job(self):
        """(namespace, name, uid) of the Job that it belongs to, or None."""
        owner = self.owner or {}
        if owner.get("kind") != "Job":
            return None
        return self.namespace, owner.get("name"), owner.get("uid")


def _controller(meta):
    owners = meta.get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def _is_ready(status):
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or []
    )


def _grace(meta, spec, is_ending):
    """Return the grace period: the granted one of a pod that is ending, else its own."""
    grace = spec.get("terminationGracePeriodSeconds")
    if is_ending:
        grace = meta.get("deletionGracePeriodSeconds")
    return DEFAULT_GRACE_SECONDS if grace is None else grace


def _is_terminated(status):
    """Return whether all containers of a pod have terminated, as far as it has any."""
    containers = (status.get("initContainerStatuses") or []) + (
        status.get("containerStatuses") or []
    )
    return bool(containers) and all(
        "terminated" in (container.get("state") or {}) for container in containers
    )


def devices_of(spec):
    """Return the names of the devices that the containers of a pod request.

    The resource of a device plugin has a domain that is not Kubernetes' own.
    """
    containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
    resources = set()
    for container in containers:
        resources.update((container.get("resources") or {}).get("limits") or {})
    return sorted(name for name in resources if _is_device(name))


def _is_device(name):
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io")


class Plan:
    """What a drain does with each pod.

    evict: [Pod] to be evicted.
    wait: [Pod] that are terminating already.
    stay: {name: reason} of pods that stay.
    refused, notes: [sentence].
    """

    def __init__(self):
        self.evict, self.wait, self.stay, self.refused, self.notes = [], [], {}, [], []

    @property
    def going(self):
        """The pods that must be gone in the end."""
        return self.evict + self.wait

    def staying(self):
        """Return the clause that names the pods that stay, by reason; empty without any."""
        by_reason = {}
        for name, reason in sorted(self.stay.items()):
            by_reason.setdefault(reason, []).append(name)
        return "; ".join(
            f"{reason}: {names_of(names)}" for reason, names in sorted(by_reason.items())
        )


def plan(pods, budgets, allow=(), unfinished=frozenset(), seconds=None, restarts=False):
    """Return the Plan for these Pods.

    unfinished: Pod.job of each Job that has not ended.
    seconds: the time limit.
    restarts: whether a restart of the kubelet follows.
    """
    drain = Plan()
    staying = []
    for pod in sorted(pods, key=lambda pod: pod.name):
        reason = _stays(pod, unfinished)
        if reason:
            drain.stay[pod.name] = reason
            staying.append(pod)
        elif pod.ending:
            drain.wait.append(pod)
        else:
            drain.evict.append(pod)
    drain.refused = _refusals(drain.evict, staying, allow, restarts)
    crossings = [disruption_budgets.crossing(pod, budgets) for pod in drain.evict]
    drain.refused += [sentence for sentence in crossings if sentence]
    slow = _slow(drain.going, seconds)
    if slow:
        drain.notes.append(
            f"the grace period is longer than the time limit of {int(seconds)} s: {names_of(slow)}"
        )
    drain.notes += disruption_budgets.tight(drain.evict, budgets)
    return drain


def _refusals(evicted, staying, allow, restarts):
    """Return sentences about what would be lost, as far as that is not allowed."""
    refused = []
    running = [pod for pod in evicted if not pod.finished]
    bare = [pod.name for pod in running if not pod.owner]
    if bare and BARE not in allow:
        refused.append(
            "nothing would make these pods again, because no controller owns them:"
            f" {names_of(bare)}; delete or move them, or allow it with kubemend_allow: [{BARE}]"
        )
    local = [pod.name for pod in running if pod.local]
    if local and LOCAL not in allow:
        refused.append(
            f"these pods would lose what they keep in emptyDir volumes: {names_of(local)}; allow it"
            f" with kubemend_allow: [{LOCAL}]"
        )
    # the node asks its own kubelet too, but after the drain
    if restarts and RESTART not in allow:
        refused += _lost_devices(staying)
    return refused


def _lost_devices(pods):
    """Return the sentences about pods that may lose their devices by a restart of the kubelet."""
    holders = _with_devices(pods)
    if not holders:
        return []
    return [
        "its kubelet is to be restarted, and these pods, which stay, may lose their devices"
        f" then: {names_of(holders)}; wait for their end, or allow it with kubemend_allow:"
        f" [{RESTART}]"
    ]


def _with_devices(pods):
    return [
        "{} ({})".format(pod.name, ", ".join(pod.devices))
        for pod in pods
        if pod.devices and not pod.finished
    ]


def _slow(pods, seconds):
    """Return the pods whose grace period is longer than the time limit."""
    if seconds is None:
        return []
    return [
        f"{pod.name} ({int(pod.grace)} s)"
        for pod in pods
        if pod.grace > seconds and not pod.finished
    ]


def _stays(pod, unfinished):
    if pod.mirror:
        return "static pods stay, the kubelet runs them from files"
    if (pod.owner or {}).get("kind") == "DaemonSet":
        return "pods of DaemonSets stay, they would come back at once"
    if pod.finished and not pod.ending and pod.job in unfinished:
        return (
            "finished pods of a Job that has not ended stay: without them older releases run them"
            " again"
        )
    return None


def names_of(names):
    """Return at most NAMED of the names, and how many more there are."""
    rest = len(names) - NAMED
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {rest:d} more" if rest > 0 else shown


def ready_of(node):
    """Return (status, reason) of the Node's Ready condition."""
    for condition in (node.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "Ready":
            return condition.get("status") or "Unknown", condition.get("reason") or ""
    return "Unknown", ""


def silent(node):
    """Return why this Node's kubelet cannot end pods, None where it posts its status."""
    status, reason = ready_of(node)
    if status in ("True", "False") and not reason.startswith("NodeStatus"):
        return None
    cause = f", {one_line(reason, 60)}" if reason else ""
    return f"its kubelet does not post its status (Ready is {status}{cause})"


def refusal(node, allow=(), is_held=False):
    """Return the sentence that refuses the node as it is, or None.

    is_held: as in cordon_annotation.theirs().
    """
    name = node["metadata"]["name"]
    dead = silent(node)
    if dead:
        return (
            f"{name} is not drained: {dead}, so evicted pods would never end; bring the kubelet"
            f" back first, or when the machine is certainly off, taint it with {FENCES[0]}"
        )
    fences = [
        str(taint.get("key"))
        for taint in (node.get("spec") or {}).get("taints") or []
        if taint.get("key") in FENCES
    ]
    if FENCED in allow:
        return None
    if fences:
        return (
            "{} is not drained: it is fenced on purpose (taint {}); allow it with kubemend_allow:"
            " [{}]".format(name, ", ".join(fences), FENCED)
        )
    if has_foreign_cordon(node, is_held):
        return (
            f"{name} is not drained: another client cordoned it, and who did may be at work"
            f" there; uncordon it, or allow it with kubemend_allow: [{FENCED}] (their cordon stays"
            " in any case)"
        )
    return None


def old_lease(lease, now):
    """Return the age in seconds of a Lease that is older than its own duration, else None.

    now: seconds since the epoch.
    """
    spec = (lease or {}).get("spec") or {}
    renewed = moment(spec.get("renewTime"))
    if renewed is None:
        return None
    age = now - renewed
    return age if age > (spec.get("leaseDurationSeconds") or LEASE_SECONDS) else None


def moment(text):
    """Return the seconds since the epoch of a time as the API writes it, or None."""
    match = re.match(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z\Z", str(text))
    if not match:
        return None
    return calendar.timegm(time.strptime(match.group(1), "%Y-%m-%dT%H:%M:%S")) + float(
        match.group(2) or 0
    )


def may_take_out(nodes, name, limit):
    """Return why a node may not be taken out (kubemend_max_unavailable), or None.

    nodes: [Node objects], or [{name, ready, unschedulable}].

    A node that is not ready may always be taken out, because its capacity is lost already.
    """
    states = [_availability(node) for node in nodes]
    if not any(is_ready for other, is_ready, _is_away in states if other == name):
        return None
    out = sorted(
        f"{other} ({'cordoned' if is_ready else 'not ready'})"
        for other, is_ready, is_away in states
        if other != name and (is_away or not is_ready)
    )
    if len(out) < limit:
        return None
    return (
        f"{name} is not taken out, because other nodes are out already: {names_of(out)}; bring them"
        f" back, or raise kubemend_max_unavailable ({int(limit)})"
    )


def _availability(node):
    if "metadata" not in node:
        return node.get("name"), node.get("ready") == "True", bool(node.get("unschedulable"))
    return node["metadata"].get("name"), ready_of(node)[0] == "True", cordoned(node)


def can_dry_run(version):
    """Return whether an API server of this /version supports dryRun=All in any case.

    An API server that does not would evict the pod.
    """
    numbers = [re.match(r"\d+", str((version or {}).get(key) or "")) for key in ("major", "minor")]
    return all(numbers) and tuple(int(number.group()) for number in numbers) >= DRY_RUN


def eviction_version(resources):
    """Return v1 or v1beta1, as the API server's own resource list of /api/v1 shows.

    The result is None when the API server serves no eviction.
    """
    for resource in (resources or {}).get("resources") or []:
        if resource.get("name") == "pods/eviction":
            return resource.get("version") or "v1beta1"
    return None


def remaining(pod, answer, budgets, limit):
    """Return the clause for a pod that is still there at the end.

    answer: (the result of its eviction, text), or None where none was requested.
    """
    if pod.ending:
        return _ending(pod)
    if answer is None:
        return f"{pod.name}: there was no time left to evict it"
    result, text = answer
    if result == disruption_budgets.BUDGET:
        return disruption_budgets.blocked(pod, budgets, text)
    if result == disruption_budgets.CROSSING:
        return disruption_budgets.crossing(pod, budgets) or f"{pod.name}: {text}"
    return "{}: {}".format(pod.name, text or f"it was evicted within {int(limit)} s, and stays")


def _ending(pod):
    finalizers = ", ".join(pod.finalizers)
    if pod.is_held:
        return f"{pod.name}: it has ended, and {finalizers} holds the object"
    also = f", and then {finalizers} must let go of it" if finalizers else ""
    return f"{pod.name}: it is ending, with a grace period of {pod.grace} s{also}"
