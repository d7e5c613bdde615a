# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resources of a workload's containers as one text, which is compared and changed like a file.

The module is pure.
"""

import json

from .text import counted

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
    rows = [
        [list_name, container.get("name"), container.get("resources") or {}]
        for list_name in LISTS
        for container in spec.get(list_name) or []
    ]
    return json.dumps(rows, sort_keys=True, separators=(",", ":"))


def put(item, text):
    """Return the object with these resources; ValueError where its containers are others."""
    rows, spec = json.loads(text), pod_spec(item)
    present = [
        (list_name, container.get("name"))
        for list_name in LISTS
        for container in spec.get(list_name) or []
    ]
    if present != [(list_name, name) for list_name, name, _dummy in rows]:
        raise ValueError("its containers are no longer those")
    remaining_rows = iter(rows)
    for list_name in LISTS:
        for container in spec.get(list_name) or []:
            resources = next(remaining_rows)[2]
            container.pop("resources", None)
            if resources:
                container["resources"] = resources
    return item


def set_quantities(text, quantities):
    """Return the text with these requests and limits of its containers.

    quantities: {list: {container: {resource: quantity}}}.

    ValueError is raised for a container that the text does not have.
    """
    rows = json.loads(text)
    resources_of = {(list_name, name): resources for list_name, name, resources in rows}
    for list_name, containers in sorted(quantities.items()):
        for name, values in sorted(containers.items()):
            if (list_name, name) not in resources_of:
                raise ValueError(f"it has no container {name}")
            for part in ("requests", "limits"):
                resources_of[list_name, name].setdefault(part, {}).update(values)
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
        pods = status["desiredNumberScheduled"]
        return _unready(
            pods, _count(status, "updatedNumberScheduled"), _count(status, "numberAvailable")
        )
    return _unready_replicas(spec, status)


def _changes_later(spec):
    strategy = spec.get("updateStrategy") or {}
    return "jobTemplate" in spec or strategy.get("type") == "OnDelete" or spec.get("paused")


def _unready_replicas(spec, status):
    """Return why not all replicas are of the present template and ready, or None."""
    replicas, present = spec.get("replicas"), _count(status, "replicas")
    if replicas is None:
        replicas = 1
    if present > replicas:
        return (
            f"{counted(present - replicas, 'of its former pods is', 'of its former pods are')}"
            " still there"
        )
    # The first pods of a StatefulSet keep their template.
    strategy = spec.get("updateStrategy") or {}
    later = _count(strategy.get("rollingUpdate") or {}, "partition")
    ready = min(_count(status, "readyReplicas"), present)
    return _unready(replicas, _count(status, "updatedReplicas"), ready, later)


def _count(values, name):
    return values.get(name) or 0


def _unready(pods, updated, ready, later=0):
    if updated >= pods - later and ready >= pods:
        return None
    expected = max(0, pods - later)
    return f"{updated} of {counted(expected, 'pod')} recreated, {ready} of {pods} ready"
