# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that are Pending, and what they wait for. The controller judges them.

Pods of one owner with equal messages are one entry, but for the requested pod. The message is in
the pod itself. Events end after an hour, and are read only where the pod has no message.
"""

import json
import re
import urllib.parse

from ...kubeapi import node_affinity
from ...kubeapi.client import TABLE, ApiError, dicts
from . import jobs, rejected

MAX_READ, MAX_ITEMS, MAX_NAMES, MAX_TEXT, MAX_TOLERATIONS, MAX_TARGETS, MAX_SCHEDULERS = (
    5000,
    200,
    5,
    2000,
    50,
    50,
    50,
)
MAX_SILENT, MAX_EVENTS, MAX_GATES, MAX_PLACED, MAX_ABSENT, MAX_ASKED = 500, 20000, 20, 50000, 10, 20
CROWDED = re.compile(r"Too many pods|Insufficient pods")
FIELDS = ("key", "operator", "value", "effect")
REFUSALS = ("Unschedulable", "SchedulerError")
# Pods that are equal in these are one entry.
ALIKE = (
    "namespace",
    "owner",
    "scheduler",
    "message",
    "tolerations",
    "off",
    "unfit",
    "asked",
    "asks",
)


def refused(item):
    """Return the condition by which a scheduler finds no node, or fails, else None."""
    for condition in dicts((item.get("status") or {}).get("conditions")):
        if (
            condition.get("type") == "PodScheduled"
            and condition.get("status") == "False"
            and condition.get("reason") in REFUSALS
        ):
            return condition
    return None


def is_asked(item, requested_pod):
    """Return whether this is the requested pod, by namespace/name or UID."""
    meta = item.get("metadata") or {}
    return bool(requested_pod) and (
        requested_pod == "{}/{}".format(meta.get("namespace"), meta.get("name"))
        or requested_pod.lower() == meta.get("uid")
    )


def unseen(item):
    """Return whether a pod waits for a scheduler, and none has set its condition."""
    meta, spec, status = (item.get(name) or {} for name in ("metadata", "spec", "status"))
    if not spec.get("schedulerName") or meta.get("deletionTimestamp"):
        return False
    if spec.get("nodeName") or spec.get("schedulingGates"):
        return False
    return not any(
        condition.get("type") == "PodScheduled" for condition in dicts(status.get("conditions"))
    )


def target_of(item):
    """Return the node that a DaemonSet's pod is meant for, or None.

    Each term of its affinity names the same node in its fields.
    """
    affinity = ((item.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    named = set(map(_named, dicts(required.get("nodeSelectorTerms"))))
    if len(named) == 1:
        return named.pop()
    return None


def _named(term):
    """Return the one node that a term names in its fields, or None."""
    fields = [
        field.get("values")
        for field in dicts(term.get("matchFields"))
        if field.get("key") == "metadata.name" and field.get("operator") == "In"
    ]
    if len(fields) != 1 or not isinstance(fields[0], list) or len(fields[0]) != 1:
        return None
    return str(fields[0][0])[:253]


def owner_of(item):
    """Return kind/name of the controller, None without one."""
    owner = [
        reference
        for reference in dicts((item.get("metadata") or {}).get("ownerReferences"))
        if reference.get("controller")
    ]
    if owner:
        return "{}/{}".format(owner[0].get("kind"), owner[0].get("name"))
    return None


def asks_of(spec):
    """Return {resource: amount} of what a pod requests, as schedulers count it.

    CPU is in millicores, a plugin's resource in pieces, every other one in bytes.
    """
    amounts = dict(rejected.compute(spec), **rejected.requests(spec))
    return dict(
        sorted((name, value) for name, value in amounts.items() if value and name != "pods")[
            :MAX_ASKED
        ]
    )


def entry_of(item, condition):
    """Return a pod's owner, its tolerations, and what keeps it waiting."""
    meta, spec = item.get("metadata") or {}, item.get("spec") or {}
    target = target_of(item)
    targets = []
    if target:
        targets = [[meta.get("name"), target]]
    return {
        "namespace": meta.get("namespace"),
        "names": [meta.get("name")],
        "pods": 1,
        "since": condition.get("lastTransitionTime"),
        "owner": owner_of(item),
        "scheduler": spec.get("schedulerName"),
        "message": str(condition.get("message") or "")[:MAX_TEXT],
        "targets": targets,
        "asks": asks_of(spec),
        "tolerations": _tolerations(spec),
    }


def _tolerations(spec):
    """Return the tolerations of a pod, or None where there are too many of them."""
    listed = dicts(spec.get("tolerations"))
    if len(listed) > MAX_TOLERATIONS:
        return None
    return [toleration_of(toleration) for toleration in listed]


def toleration_of(toleration):
    """Return the set fields of a toleration, bounded."""
    return {
        name: str(toleration[name])[:320] for name in FIELDS if toleration.get(name) is not None
    }


class _Pending:
    """The Pending pods that were read so far, whatever ends the reading.

    asked: the requested pod; labels: {node: its labels} or None.
    """

    def __init__(self, requested_pod, labels):
        self.asked, self.match = requested_pod, node_affinity.Matcher(labels)
        self.refused, self.waiting, self.gated, self.bound, self.silent = {}, {}, {}, {}, []
        self.read = self.total = self.taken = 0
        self.cut = False

    def take_all(self, api):
        """Take the Pending pods that the API lists, bounded but for the requested pod."""
        for item in api.items("/api/v1/pods", {"fieldSelector": "status.phase=Pending"}):
            if self.read >= MAX_READ and not self._is_asked(item):
                self.cut = True
                break
            self.read += 1
            self.take(item)

    def take(self, item):
        """Take one Pending pod."""
        spec, condition = item.get("spec") or {}, refused(item)
        if spec.get("nodeName"):
            self._placed(item)
        elif (item.get("metadata") or {}).get("deletionTimestamp"):
            return
        elif spec.get("schedulingGates"):
            self._gated(item)
        elif condition is not None and condition.get("message"):
            self.say(item, condition)
        elif condition is not None or unseen(item):
            self._silent(item, condition)

    def _gated(self, item):
        gates = dicts(item["spec"]["schedulingGates"])
        names = sorted(str(gate.get("name"))[:320] for gate in gates)[:MAX_GATES]
        row = {
            "namespace": item["metadata"].get("namespace"),
            "owner": owner_of(item),
            "gates": names,
        }
        self._count(self.gated, MAX_ITEMS, item, row)

    def _silent(self, item, condition):
        if len(self.silent) < MAX_SILENT:
            self.silent.append((item, condition))
        else:
            self._unheard(item, condition)

    def say(self, item, condition):
        """Take a pod with a message of a scheduler."""
        self.total += 1
        entry = entry_of(item, condition)
        if entry["targets"]:
            entry["off"] = None
        else:
            entry["off"] = self.match.left_out(item["spec"], self._is_asked(item))
        if self.match.refuses(item["spec"], [target for _dummy, target in entry["targets"]]):
            entry["unfit"] = True
        if self._is_asked(item):
            entry["asked"] = True
        self.cut = not _add(self.refused, entry) or self.cut

    def hear(self, heard):
        """Take the events about pods that have no message themselves."""
        for item, condition in self.silent:
            event = heard.get((item.get("metadata") or {}).get("uid"))
            if event:
                since = (condition or {}).get("lastTransitionTime") or item["metadata"].get(
                    "creationTimestamp"
                )
                self.say(item, {"message": event, "lastTransitionTime": since})
            else:
                self._unheard(item, condition)

    def _unheard(self, item, condition):
        if condition is not None:
            self.say(item, condition)
        else:
            self._count(
                self.waiting,
                MAX_SCHEDULERS,
                item,
                {"scheduler": str(item["spec"]["schedulerName"])[:253]},
            )

    def _placed(self, item):
        """Take a pod that has its node.

        It waits for the kubelet until the kubelet sets its startTime.
        """
        meta, status = item.get("metadata") or {}, item.get("status") or {}
        if meta.get("deletionTimestamp"):
            return
        if status.get("startTime"):
            self.taken += 1
            return
        placed = [
            condition.get("lastTransitionTime")
            for condition in dicts(status.get("conditions"))
            if condition.get("type") == "PodScheduled"
        ]
        self._count(
            self.bound,
            MAX_TARGETS,
            item,
            {"node": str(item["spec"]["nodeName"])[:253]},
            placed[0] if placed else None,
        )

    def _count(self, rows, most, item, fields, since=None):
        """Count pods that wait for the same in one row, with the time since the oldest waits."""
        meta = item.get("metadata") or {}
        if self._is_asked(item):
            fields["asked"] = True
        key = json.dumps(fields, sort_keys=True)
        if key not in rows and len(rows) >= most:
            self.cut = True
            return
        row = rows.setdefault(key, dict(fields, pods=0, names=[], since=None))
        row["pods"] += 1
        if len(row["names"]) < MAX_NAMES:
            row["names"].append("{}/{}".format(meta.get("namespace"), meta.get("name")))
        row["since"] = _earlier(row["since"], since or meta.get("creationTimestamp"))

    def _is_asked(self, item):
        return is_asked(item, self.asked)


def full_nodes(api, room):
    """Return the names of the nodes that have as many pods as they may have; None if unknown.

    room: {node: how many}, or None.

    It reads pods only where a scheduler says that some node has too many pods; all of them, as
    rows of a table, which are small. A row has no UID by which a repeated one is known, so a
    list that expires (410) is no answer.
    """
    if room is None:
        return None
    has = {}
    query = {
        "fieldSelector": "spec.nodeName!=,status.phase!=Failed,status.phase!=Succeeded",
        "includeObject": "None",
    }
    try:
        for number, item in enumerate(api.items("/api/v1/pods", query, accept=TABLE, restarts=0)):
            name = item.get("Node") or (item.get("spec") or {}).get("nodeName")
            if number >= MAX_PLACED or not name:
                return None
            has[name] = has.get(name, 0) + 1
    except ApiError:
        return None
    return sorted(
        name for name, most in room.items() if most is not None and has.get(name, 0) >= most
    )


def tell_absent(api, rows, node_names):
    """Mark the rows whose node does not exist.

    node_names: the names listed before the pods were. A node that has joined since then is asked
    for by its name.
    """
    unlisted = [row for row in rows if node_names is not None and row["node"] not in node_names]
    try:
        for row in unlisted[:MAX_ABSENT]:
            if api.find("/api/v1/nodes/" + urllib.parse.quote(row["node"], safe="")) is None:
                row["absent"] = True
    except ApiError:
        pass  # the others are not known


def largest(allocatable):
    """Return {resource: the most that any one node has of it for pods}."""
    amounts = {}
    for node in allocatable:
        for name, value in node.items():
            amounts[name] = max(amounts.get(name, 0), value)
    return amounts


def collect(api, ended, requested_pod=None, labels=None, room=None, allocatable=None):
    """Return (data, truncated).

    `ended(error)` returns whether an error may cut the list short instead of costing all of it.

    labels: {node: its labels}; room: {node: how many pods it may have}; allocatable: {node:
    what it has for them}. Each is None where it is not known.
    """
    pods = _Pending(requested_pod, labels)
    try:
        pods.take_all(api)
    except Exception as error:  # pylint: disable=broad-except
        if not ended(error):
            raise
        pods.cut = True
    pods.hear(_said(api) if pods.silent else {})
    items = sorted(
        pods.refused.values(), key=lambda entry: (str(entry["namespace"]), str(entry["names"][0]))
    )
    data = {
        "items": items,
        "total": pods.total,
        "read": pods.read,
        "taken": pods.taken,
        "unseen": _rows(pods.waiting, "scheduler"),
        "gated": _rows(pods.gated, "namespace"),
        "bound": _rows(pods.bound, "node"),
    }
    tell_absent(api, data["bound"], labels)
    if items and allocatable:
        data["largest"] = largest(allocatable.values())
    if any(CROWDED.search(entry["message"]) for entry in items):
        data["full"] = full_nodes(api, room)
    return data, pods.cut


def _rows(kept, name):
    return sorted(kept.values(), key=lambda row: (str(row[name]), row["names"]))


def _said(api):
    """Return {uid of a pod: the message of the newest FailedScheduling event about it}.

    Events that cannot be read are left out.
    """
    newest = {}
    try:
        for number, item in enumerate(
            api.items(
                "/api/v1/events",
                {"fieldSelector": "involvedObject.kind=Pod,reason=FailedScheduling"},
            )
        ):
            if number >= MAX_EVENTS:
                break
            uid, at = (
                (item.get("involvedObject") or {}).get("uid"),
                jobs.event_of(item)["last"] or "",
            )
            if uid and item.get("message") and at >= newest.get(uid, ("",))[0]:
                newest[uid] = (at, str(item["message"])[:MAX_TEXT])
    except ApiError:
        pass
    return {uid: text for uid, (_dummy, text) in newest.items()}


def _add(entries, entry):
    """Add an entry, or count it in an equal one; return whether there was room for it."""
    key = json.dumps([entry.get(name) for name in ALIKE], sort_keys=True)
    alike = entries.get(key)
    if alike is not None:
        _merge(alike, entry)
        return True
    if len(entries) >= MAX_ITEMS:
        return False
    entries[key] = entry
    return True


def _merge(alike, entry):
    """Count the pod of an entry in the one that is equal to it."""
    alike["pods"] += 1
    if len(alike["names"]) < MAX_NAMES:
        alike["names"].append(entry["names"][0])
    if len(alike["targets"]) < MAX_TARGETS:
        alike["targets"] += entry["targets"]
    alike["since"] = _earlier(alike["since"], entry["since"])


def _earlier(time, other):
    """Return the earlier of two times; the only one where the other is missing."""
    return min(time or other or "", other or time or "") or None
