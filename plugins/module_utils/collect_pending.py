# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: pods that no scheduler finds a node for, and what it says of that. The controller judges them.

Pods of one owner that hear the same are one entry. The message stands in the pod itself; its events go after an hour.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

from ansible_collections.kubemend.remediation.plugins.module_utils.api import dicts

MAX_READ, MAX_ITEMS, MAX_NAMES, MAX_TEXT, MAX_TOLERATIONS, MAX_TARGETS, MAX_SCHEDULERS = 5000, 200, 5, 2000, 50, 50, 50
FIELDS = ("key", "operator", "value", "effect")


def refused(item):
    """The condition by which a scheduler says that it finds no node, else None."""
    for one in dicts((item.get("status") or {}).get("conditions")):
        if one.get("type") == "PodScheduled" and one.get("status") == "False" and one.get("reason") == "Unschedulable":
            return one
    return None


def unseen(item):
    """Whether no scheduler has said anything of this pod, which waits for one."""
    meta, spec, status = (item.get(name) or {} for name in ("metadata", "spec", "status"))
    if not spec.get("schedulerName") or spec.get("nodeName") or spec.get("schedulingGates") or meta.get("deletionTimestamp"):
        return False
    return not any(one.get("type") == "PodScheduled" for one in dicts(status.get("conditions")))


def target_of(item):
    """The node that a DaemonSet's pod is meant for: its affinity names it in fields, each of its terms the same. None else."""
    affinity = ((item.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    named = set()
    for term in dicts((affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms")):
        fields = [one.get("values") for one in dicts(term.get("matchFields")) if one.get("key") == "metadata.name" and one.get("operator") == "In"]
        if len(fields) != 1 or not isinstance(fields[0], list) or len(fields[0]) != 1:
            return None
        named.add(str(fields[0][0])[:253])
    return named.pop() if len(named) == 1 else None


def entry_of(item, condition):
    """What tells whose pod it is, what it tolerates, and what keeps it waiting."""
    meta, spec = item.get("metadata") or {}, item.get("spec") or {}
    owner = [one for one in dicts(meta.get("ownerReferences")) if one.get("controller")]
    listed, target = dicts(spec.get("tolerations")), target_of(item)
    return {"namespace": meta.get("namespace"), "names": [meta.get("name")], "pods": 1, "since": condition.get("lastTransitionTime"),
            "owner": "%s/%s" % (owner[0].get("kind"), owner[0].get("name")) if owner else None, "scheduler": spec.get("schedulerName"),
            "message": str(condition.get("message") or "")[:MAX_TEXT], "targets": [[meta.get("name"), target]] if target else [],
            # None where there are too many to say
            "tolerations": None if len(listed) > MAX_TOLERATIONS else [
                dict((name, str(one[name])[:320]) for name in FIELDS if one.get(name) is not None) for one in listed]}


def collect(api, ended):
    """(data, truncated). `ended(error)` says whether an error may cut the list short instead of costing all of it."""
    found, waiting, read, total, cut = {}, {}, 0, 0, False
    try:
        for item in api.items("/api/v1/pods", {"fieldSelector": "status.phase=Pending"}):
            read += 1
            if read > MAX_READ:
                cut = True
                break
            condition = refused(item)
            if condition is not None:
                total += 1
                cut = not _add(found, entry_of(item, condition)) or cut
            elif unseen(item):
                cut = not _wait(waiting, item) or cut
    except Exception as error:  # pylint: disable=broad-except
        if not ended(error):
            raise
        cut = True
    items = sorted(found.values(), key=lambda one: (str(one["namespace"]), str(one["names"][0])))
    return {"items": items, "total": total, "unseen": sorted(waiting.values(), key=lambda one: one["scheduler"])}, cut


def _add(found, entry):
    """Whether there was room for it."""
    key = json.dumps([entry[name] for name in ("namespace", "owner", "scheduler", "message", "tolerations")], sort_keys=True)
    known = found.get(key)
    if known is None:
        if len(found) >= MAX_ITEMS:
            return False
        found[key] = entry
        return True
    known["pods"] += 1
    if len(known["names"]) < MAX_NAMES:
        known["names"].append(entry["names"][0])
    if len(known["targets"]) < MAX_TARGETS:
        known["targets"] += entry["targets"]
    known["since"] = min(known["since"] or entry["since"] or "", entry["since"] or known["since"] or "") or None
    return True


def _wait(waiting, item):
    """Whether there was room for it: pods that nobody looked at, by the scheduler that they want, and since when the oldest waits."""
    meta, name = item.get("metadata") or {}, str(item["spec"]["schedulerName"])[:253]
    if name not in waiting and len(waiting) >= MAX_SCHEDULERS:
        return False
    one = waiting.setdefault(name, {"scheduler": name, "pods": 0, "names": [], "since": None})
    one["pods"] += 1
    if len(one["names"]) < MAX_NAMES:
        one["names"].append("%s/%s" % (meta.get("namespace"), meta.get("name")))
    created = meta.get("creationTimestamp")
    one["since"] = min(one["since"] or created or "", created or one["since"] or "") or None
    return True
