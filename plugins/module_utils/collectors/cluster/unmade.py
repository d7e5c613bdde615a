# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that were refused, or that a DaemonSet lacks for want of a toleration.

The controller judges them. The refused owners come from events, which end after an hour, and count
only while the owner still lacks pods.
"""

import itertools
import urllib.parse

from ...kubeapi import node_affinity
from ...kubeapi.client import dicts
from ...system import files
from . import jobs, pending, pod

MAX_EVENTS, MAX_OWNERS, MAX_DAEMONSETS, MAX_MISSED, MAX_LISTED, MAX_PODS, MAX_TEXT = (
    20000,
    50,
    2000,
    50,
    20,
    5000,
    1000,
)
MAX_NODES = 10  # whose pods are asked for
AGAIN = "(combined from similar events): "
NODE = "node.kubernetes.io/"
# What the DaemonSet controller makes every pod tolerate (network-unavailable only in the host's
# network: that goes by itself), and the nodes
# that most DaemonSets leave out on purpose.
TOLERATED = tuple(
    NODE + name
    for name in (
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
        "network-unavailable",
    )
)
CONTROL_PLANE = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/etcd",
)


def refusals(api):
    """Return ({(kind, namespace, name, uid): its FailedCreate events}, whether it was cut)."""
    by_owner = {}
    query = {"fieldSelector": "reason=FailedCreate"}
    for number, item in enumerate(api.items("/api/v1/events", query)):
        if number >= MAX_EVENTS:
            return by_owner, True
        about = item.get("involvedObject") or {}
        if about.get("kind") in pod.KINDS and about.get("name"):
            key = tuple(str(about.get(name) or "") for name in ("kind", "namespace", "name", "uid"))
            _take_refusal(by_owner, key, item)
    return by_owner, False


def _take_refusal(by_owner, key, item):
    event = jobs.event_of(item)
    created = (item.get("metadata") or {}).get("creationTimestamp")
    first, last = event["first"] or created or "", event["last"] or created or ""
    refusal = by_owner.setdefault(key, {"first": first, "last": "", "message": ""})
    refusal["first"] = min(refusal["first"], first)
    if last >= refusal["last"]:
        text = str(item.get("message") or "")
        if text.startswith(AGAIN):
            text = text[len(AGAIN) :]
        refusal.update(last=last, message=files.masked_text(text, MAX_TEXT))


def lacking(item, kind):
    """Return (how many pods it wants, how many it has) of a controller that works, or None."""
    meta = item.get("metadata") or {}
    spec, status = item.get("spec") or {}, item.get("status") or {}
    if meta.get("deletionTimestamp") or spec.get("suspend"):
        return None
    if kind == "Job":
        return _lacking_job(spec, status)
    if kind == "DaemonSet":
        return _lacking_daemonset(status)
    return spec.get("replicas", 1), status.get("replicas") or 0


def _lacking_job(spec, status):
    for condition in dicts(status.get("conditions")):
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            return None
    target, completions = spec.get("parallelism", 1), spec.get("completions")
    if completions is not None:
        target = min(target, completions - (status.get("succeeded") or 0))
    return target, status.get("active") or 0


def _lacking_daemonset(status):
    return status.get("desiredNumberScheduled") or 0, status.get("currentNumberScheduled") or 0


def _still(api, key, refusal):
    """Return the row of this owner, None where it lacks no pod any more."""
    kind, namespace, name, uid = key
    _dummy, path, plural = pod.KINDS[kind]
    item = api.find(
        "{}/namespaces/{}/{}/{}".format(
            path, urllib.parse.quote(namespace, safe=""), plural, urllib.parse.quote(name, safe="")
        )
    )
    if item is None or (uid and (item.get("metadata") or {}).get("uid") != uid):
        return None
    counts = lacking(item, kind)
    if counts is None or counts[1] >= counts[0]:
        return None
    return {
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "owner": pending.owner_of(item),
        "message": refusal["message"],
        "first": refusal["first"] or None,
        "last": refusal["last"] or None,
        "wanted": counts[0],
        "has": counts[1],
    }


def _keeping(node, everywhere, tolerations=()):
    """Return whether a taint of this node may keep such pods of a DaemonSet away.

    everywhere: whether the control plane's taints count too.
    """
    excluded = TOLERATED
    if not everywhere:
        excluded = (*TOLERATED, *CONTROL_PLANE)
    return any(
        taint.get("effect") in ("NoSchedule", "NoExecute")
        and taint.get("key") not in excluded
        and not any(_takes(toleration, taint) for toleration in tolerations)
        for taint in node["taints"]
    )


def _takes(toleration, taint):
    """Return whether a toleration matches a taint.

    An operator that only a feature gate allows counts as a match.
    """
    if any(
        toleration.get(name) and toleration[name] != taint.get(name) for name in ("effect", "key")
    ):
        return False
    return toleration.get("operator") not in (None, "", "Equal") or (
        toleration.get("value") or ""
    ) == (taint.get("value") or "")


class _Owners:
    """The owners of the pods of a few nodes; each node is read once."""

    def __init__(self, api):
        self.api, self.nodes, self.waiting, self.unlooked = api, {}, None, set()

    def has(self, uid, node):
        """Return whether this owner has a pod on the node, or one that waits for it.

        The result is None for a node beyond the first MAX_NODES.
        """
        if node not in self.nodes:
            if len(self.nodes) >= MAX_NODES:
                self.unlooked.add(node)
                return None
            self.nodes[node] = {owner_uid for pod in self._pods(node) for owner_uid in _owners(pod)}
        if self.waiting is None:
            self.waiting = {
                (owner_uid, pending.target_of(pod))
                for pod in self._pods("")
                for owner_uid in _owners(pod)
            }
        return uid in self.nodes[node] or (uid, node) in self.waiting

    def _pods(self, node):
        return itertools.islice(
            self.api.items("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"}), MAX_PODS
        )


def _owners(pod):
    return [
        reference.get("uid")
        for reference in dicts((pod.get("metadata") or {}).get("ownerReferences"))
    ]


def _strays(item):
    """Return whether a DaemonSet may have pods on nodes that are not its own any more.

    Its controller counts them. The count is mostly 0, and then no pod is read.
    """
    meta, status = item.get("metadata") or {}, item.get("status") or {}
    return bool(status.get("numberMisscheduled")) or status.get("observedGeneration") != meta.get(
        "generation"
    )


def missed(owners, item, nodes):
    """Return the tainted nodes without a pod of this DaemonSet that is meant for them, or None.

    A node counts only where the DaemonSet does not tolerate its taints: the controller makes
    the pods of the others. A taint that was set later leaves pods where they are.
    """
    meta, status = item.get("metadata") or {}, item.get("status") or {}
    template = _pod_spec(item)
    tolerations = dicts(template.get("tolerations"))
    if meta.get("deletionTimestamp") or len(tolerations) > pending.MAX_TOLERATIONS:
        return None
    everywhere = not status.get("desiredNumberScheduled")
    names = _tainted_nodes(nodes, template, tolerations, everywhere)
    if _strays(item):
        names = [name for name in names if owners.has(meta.get("uid"), name) is False]
    if not names:
        return None
    return {
        "namespace": meta.get("namespace"),
        "name": meta.get("name"),
        "nodes": names[:MAX_LISTED],
        "more": max(0, len(names) - MAX_LISTED),
        "desired": status.get("desiredNumberScheduled") or 0,
        "tolerations": [pending.toleration_of(toleration) for toleration in tolerations],
    }


def _pod_spec(item):
    """Return the spec of the pods that a workload makes."""
    return ((item.get("spec") or {}).get("template") or {}).get("spec") or {}


def _tainted_nodes(nodes, template, tolerations, everywhere):
    """Return the names of the nodes that suit such pods and whose taints keep them away."""
    return sorted(
        node["name"]
        for node in nodes
        if _keeping(node, everywhere, tolerations)
        and node_affinity.fits(template, node["name"], node["labels"])
    )


def collect(api, ended, nodes):
    """Return (data, truncated).

    nodes: [{name, labels, taints}], None where they are not known; unlooked: the number of
    nodes for which it is unknown whether DaemonSets have pods there. `ended(error)` returns
    whether an error may cut the answer short.
    """
    refused, daemonsets, cut, owners = [], [], nodes is None, _Owners(api)
    try:
        cut = _fill_refused(api, refused) or cut
        tainted = [node for node in nodes or () if _keeping(node, True)]
        if tainted:
            cut = _fill_missed(api, daemonsets, owners, tainted) or cut
    except Exception as error:  # pylint: disable=broad-except
        if not ended(error):
            raise
        cut = True
    return {
        "refused": sorted(refused, key=lambda row: (row["namespace"], row["kind"], row["name"])),
        "daemonsets": daemonsets,
        "unlooked": len(owners.unlooked),
    }, cut


def _fill_refused(api, refused):
    """Add the owners that still lack pods; return whether the list was cut."""
    by_owner, is_cut = refusals(api)
    newest = sorted(by_owner, key=lambda key: by_owner[key]["last"], reverse=True)
    for key in newest[:MAX_OWNERS]:
        row = _still(api, key, by_owner[key])
        if row:
            refused.append(row)
    return is_cut or len(newest) > MAX_OWNERS


def _fill_missed(api, daemonsets, owners, tainted):
    """Add the DaemonSets that leave out nodes; return whether the list was cut."""
    for number, item in enumerate(api.items("/apis/apps/v1/daemonsets")):
        if number >= MAX_DAEMONSETS or len(daemonsets) >= MAX_MISSED:
            return True
        row = missed(owners, item, tainted)
        if row:
            daemonsets.append(row)
    return False
