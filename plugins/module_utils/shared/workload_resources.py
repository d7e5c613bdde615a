# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resources of a workload's containers as one text, which is compared and changed like a file.

The module is pure.
"""

import json

LISTS = ("containers", "initContainers")


def pod_spec(item):
    """Return the spec of the pods that it makes; an empty one where it makes none."""
    spec = item.get("spec") or {}
    if item.get("kind") == "CronJob" or "jobTemplate" in spec:
        spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    return (spec.get("template") or {}).get("spec") or {}


def text_of(item):
    """Return [[list, container, resources]] of all containers, in their order.

    The text is the same for the same resources.
    """
    spec = pod_spec(item)
    found = [
        [where, one.get("name"), one.get("resources") or {}]
        for where in LISTS
        for one in spec.get(where) or []
    ]
    return json.dumps(found, sort_keys=True, separators=(",", ":"))


def put(item, text):
    """Return the object with these resources; ValueError where its containers are others."""
    rows, spec = json.loads(text), pod_spec(item)
    present = [(where, one.get("name")) for where in LISTS for one in spec.get(where) or []]
    if present != [(where, name) for where, name, _dummy in rows]:
        raise ValueError("its containers are no longer those")
    left = iter(rows)
    for where in LISTS:
        for one in spec.get(where) or []:
            resources = next(left)[2]
            one.pop("resources", None)
            if resources:
                one["resources"] = resources
    return item


def given(text, wanted):
    """Return the text with the wanted requests and limits of its containers.

    wanted: {list: {container: {resource: quantity}}}.

    ValueError is raised for a container that the text does not have.
    """
    rows = json.loads(text)
    known = {(where, name): resources for where, name, resources in rows}
    for where, containers in sorted(wanted.items()):
        for name, values in sorted(containers.items()):
            if (where, name) not in known:
                raise ValueError(f"it has no container {name}")
            for part in ("requests", "limits"):
                known[where, name].setdefault(part, {}).update(values)
    return json.dumps(rows, sort_keys=True, separators=(",", ":"))


def rolled_out(item):
    """Return why the rollout of a workload is not complete, or None.

    The rollout is complete when all pods are of the present template and ready. A change that is
    applied later (CronJob, OnDelete, a paused Deployment, a partition) is not waited for.
    """
    spec, status = item.get("spec") or {}, item.get("status") or {}
    if _changes_later(spec):
        return None
    generation = _count(item.get("metadata") or {}, "generation")
    if _count(status, "observedGeneration") < generation:
        return "its controller has not seen the change yet"
    if "desiredNumberScheduled" in status:
        wanted = status["desiredNumberScheduled"]
        return _unready(
            wanted, _count(status, "updatedNumberScheduled"), _count(status, "numberAvailable")
        )
    return _unready_replicas(spec, status)


def _changes_later(spec):
    strategy = spec.get("updateStrategy") or {}
    return "jobTemplate" in spec or strategy.get("type") == "OnDelete" or spec.get("paused")


def _unready_replicas(spec, status):
    """Return why not all replicas are of the present template and ready, or None."""
    wanted, present = spec.get("replicas"), _count(status, "replicas")
    if wanted is None:
        wanted = 1
    if present > wanted:
        return f"{present - wanted} of its former pods are still there"
    # The first pods of a StatefulSet keep their template.
    strategy = spec.get("updateStrategy") or {}
    later = _count(strategy.get("rollingUpdate") or {}, "partition")
    ready = min(_count(status, "readyReplicas"), present)
    return _unready(wanted, _count(status, "updatedReplicas"), ready, later)


def _count(values, name):
    return values.get(name) or 0


def _unready(wanted, updated, ready, later=0):
    if updated >= wanted - later and ready >= wanted:
        return None
    expected = max(0, wanted - later)
    return f"{updated} of {expected} pods are recreated, {ready} of {wanted} are ready"
