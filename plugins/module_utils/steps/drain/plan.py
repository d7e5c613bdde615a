# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who leaves a node that is drained, who stays and why, and what refuses the drain. Pure.

Whatever refuses it does so before anything is touched, all of it in one sentence, so that nobody
mends it piece by piece.
"""

import calendar
import re
import time

from ...kubeapi.client import one_line
from ...shared.cordon_annotation import cordoned, theirs
from . import disruption_budgets as disruption

MIRROR = "kubernetes.io/config.mirror"
# of kubemend_allow
FENCED, BARE, LOCAL, KEEP = "fenced", "drain_bare_pods", "drain_local_storage", "keep_cordon"
RESTART = "kubelet_restart"
FENCES = ("node.kubernetes.io/out-of-service", "node.cloudprovider.kubernetes.io/shutdown")
DRY_RUN = (1, 18)  # stable, and with it nobody's to switch off
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
        self.owner = next(
            (one for one in meta.get("ownerReferences") or [] if one.get("controller")), None
        )
        self.phase = status.get("phase")
        self.finished = self.phase in ("Succeeded", "Failed")
        self.ready = any(
            one.get("type") == "Ready" and one.get("status") == "True"
            for one in status.get("conditions") or []
        )
        self.local = any("emptyDir" in volume for volume in spec.get("volumes") or [])
        self.devices = devices_of(spec)
        grace = (
            meta.get("deletionGracePeriodSeconds")
            if self.ending
            else spec.get("terminationGracePeriodSeconds")
        )
        self.grace = 30 if grace is None else grace
        states = [
            one.get("state") or {}
            for key in ("initContainerStatuses", "containerStatuses")
            for one in status.get(key) or []
        ]
        self.stopped = self.finished or (
            bool(states) and all("terminated" in state for state in states)
        )

    @property
    def ignores_budgets(self):
        """Whether no budget is asked about it: it disrupts nobody any more, or not yet."""
        return self.finished or self.ending or self.phase == "Pending"

    @property
    def held(self):
        """Whether only finalizers keep the object.

        The kubelet has let go of the pod, and none of its containers runs.
        """
        return self.ending and bool(self.finalizers) and self.grace == 0 and self.stopped

    @property
    def job(self):
        """(namespace, name, uid) of the Job that it belongs to, or None."""
        owner = self.owner or {}
        return (
            (self.namespace, owner.get("name"), owner.get("uid"))
            if owner.get("kind") == "Job"
            else None
        )


def devices_of(spec):
    """Names of the devices that the containers of a pod ask for.

    What a plugin gives has a domain that is not Kubernetes' own.
    """
    found = {
        name
        for kind in ("containers", "initContainers")
        for one in spec.get(kind) or []
        for name in (one.get("resources") or {}).get("limits") or {}
    }
    return sorted(
        name
        for name in found
        if "/" in name and not name.partition("/")[0].endswith("kubernetes.io")
    )


class Plan:
    """What a drain does: `evict` [Pod]; `wait` [Pod] that end already; `stay` {name: why}.

    `refused` and `notes` [sentence].
    """

    def __init__(self):
        self.evict, self.wait, self.stay, self.refused, self.notes = [], [], {}, [], []

    @property
    def going(self):
        """Everyone who must be gone in the end."""
        return self.evict + self.wait

    def staying(self):
        """The clause that names who was left, by reason; empty without any."""
        by_reason = {}
        for name, why in sorted(self.stay.items()):
            by_reason.setdefault(why, []).append(name)
        return "; ".join(f"{why}: {names_of(names)}" for why, names in sorted(by_reason.items()))


def plan(pods, budgets, allow=(), unfinished=frozenset(), seconds=None, restarts=False):
    """The Plan for these Pods. unfinished: Pod.job of Jobs that have not ended; seconds.

    The time limit; restarts: whether the kubelet is next.
    """
    made, bare, local, crossed, held = Plan(), [], [], [], []
    for pod in sorted(pods, key=lambda one: one.name):
        why = _stays(pod, unfinished)
        if why:
            made.stay[pod.name] = why
            held += (
                ["{} ({})".format(pod.name, ", ".join(pod.devices))]
                if pod.devices and not pod.finished
                else []
            )
        elif pod.ending:
            made.wait.append(pod)
        else:
            made.evict.append(pod)
            if not pod.finished:
                bare += [pod.name] if not pod.owner and BARE not in allow else []
                local += [pod.name] if pod.local and LOCAL not in allow else []
            crossed.append(disruption.crossing(pod, budgets))
    if bare:
        made.refused.append(
            "nothing would make these pods again, because no controller owns them:"
            f" {names_of(bare)}; delete or move them, or allow it with kubemend_allow: [{BARE}]"
        )
    if local:
        made.refused.append(
            f"these pods would lose what they keep in emptyDir volumes: {names_of(local)}; allow it"
            f" with kubemend_allow: [{LOCAL}]"
        )
    # the node asks its own kubelet too, but behind the drain
    if held and restarts and RESTART not in allow:
        made.refused.append(
            "its kubelet is to be restarted, and these pods, which stay, may lose their devices"
            f" then: {names_of(held)}; wait for their end, or allow it with kubemend_allow:"
            f" [{RESTART}]"
        )
    made.refused += [sentence for sentence in crossed if sentence]
    slow = [
        "%s (%d s)" % (pod.name, pod.grace)
        for pod in made.going
        if seconds is not None and pod.grace > seconds and not pod.finished
    ]
    if slow:
        made.notes.append(
            "the grace period is longer than the time limit of %d s: %s" % (seconds, names_of(slow))
        )
    made.notes += disruption.tight(made.evict, budgets)
    return made


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
    """At most NAMED of them, and how many more."""
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (" and %d more" % rest if rest > 0 else "")


def counted(pods):
    """How many pods."""
    return "1 pod" if len(pods) == 1 else "%d pods" % len(pods)


def ready_of(node):
    """(status, reason) of the Node's Ready condition."""
    found = next(
        (
            one
            for one in (node.get("status") or {}).get("conditions") or []
            if one.get("type") == "Ready"
        ),
        {},
    )
    return found.get("status") or "Unknown", found.get("reason") or ""


def silent(node):
    """Why this Node's kubelet cannot end pods, None where it posts its status."""
    status, reason = ready_of(node)
    if status in ("True", "False") and not reason.startswith("NodeStatus"):
        return None
    return "its kubelet does not post its status (Ready is {}{})".format(
        status,
        f", {one_line(reason, 60)}" if reason else "",
    )


def refusal(node, allow=(), held=False):
    """The sentence that refuses the node as it is, or None; held: as cordon_mark.theirs has it."""
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
    if theirs(node, held):
        return (
            f"{name} is not drained: somebody else cordoned it, and who did may be at work there;"
            f" uncordon it, or allow it with kubemend_allow: [{FENCED}] (their cordon stays in any"
            " case)"
        )
    return None


def old_lease(lease, now):
    """The age in seconds of a Lease that is older than its own duration, else None; now.

    Seconds since the epoch.
    """
    spec = (lease or {}).get("spec") or {}
    renewed = moment(spec.get("renewTime"))
    if renewed is None:
        return None
    age = now - renewed
    return age if age > (spec.get("leaseDurationSeconds") or LEASE_SECONDS) else None


def moment(text):
    """Seconds since the epoch of a time as the API writes it, or None."""
    match = re.match(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z\Z", str(text))
    if not match:
        return None
    return calendar.timegm(time.strptime(match.group(1), "%Y-%m-%dT%H:%M:%S")) + float(
        match.group(2) or 0
    )


def may_take_out(nodes, name, limit):
    """None, or the sentence why the node `name` may not be taken out now
    (kubemend_max_unavailable).

    nodes: [Node objects], or [{name, ready, unschedulable}]. A node that is not ready itself takes
    nothing from the cluster.
    """
    seen = [_availability(node) for node in nodes]
    if not any(ready for one, ready, dummy in seen if one == name):
        return None
    out = sorted(
        "{} ({})".format(one, "cordoned" if ready else "not ready")
        for one, ready, away in seen
        if one != name and (away or not ready)
    )
    if len(out) < limit:
        return None
    return (
        "%s is not taken out, because other nodes are out already: %s; bring them back, or raise"
        " kubemend_max_unavailable (%d)" % (name, names_of(out), limit)
    )


def _availability(node):
    if "metadata" not in node:
        return node.get("name"), node.get("ready") == "True", bool(node.get("unschedulable"))
    return node["metadata"].get("name"), ready_of(node)[0] == "True", cordoned(node)


def can_dry_run(version):
    """Whether an API server of this /version keeps to dryRun=All in any case.

    One that did not would evict.
    """
    numbers = [re.match(r"\d+", str((version or {}).get(key) or "")) for key in ("major", "minor")]
    return all(numbers) and tuple(int(number.group()) for number in numbers) >= DRY_RUN


def eviction_version(resources):
    """v1 or v1beta1, by the API server's own list of what /api/v1 serves.

    None when it serves no eviction.
    """
    for one in (resources or {}).get("resources") or []:
        if one.get("name") == "pods/eviction":
            return one.get("version") or "v1beta1"
    return None


def remaining(pod, said, budgets, limit):
    """The clause for a pod that is still there at the end. said.

    (what became of its eviction, text) or None where none was asked for.
    """
    if pod.ending:
        if pod.held:
            return "{}: it has ended, and {} holds the object".format(
                pod.name,
                ", ".join(pod.finalizers),
            )
        also = (
            ", and then {} must let go of it".format(", ".join(pod.finalizers))
            if pod.finalizers
            else ""
        )
        return f"{pod.name}: it is ending, with a grace period of {pod.grace} s{also}"
    if said is None:
        return f"{pod.name}: there was no time left to evict it"
    kind, text = said
    if kind == disruption.BUDGET:
        return disruption.blocked(pod, budgets, text)
    if kind == disruption.CROSSING:
        return disruption.crossing(pod, budgets) or f"{pod.name}: {text}"
    return "{}: {}".format(pod.name, text or "it was evicted within %d s, and stays" % limit)
