# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: pods that a kubelet rejected, and what else lies on those nodes. The controller judges them.

A rejected pod is Failed with a reason of the kubelet's admission; text and requests are in the pod itself, which stays,
while its events go after an hour.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from ansible_collections.kubemend.remediation.plugins.module_utils import collect_jobs

MAX_ITEMS, MAX_NODES, MAX_PODS, MAX_LOGS = 200, 20, 500, 3
# UnexpectedAdmissionError, OutOfcpu, Outofnvidia.com/gpu, TopologyAffinityError, SMTAlignmentError and those of later releases.
REASON = re.compile(r"^(UnexpectedAdmissionError|OutOf.+|Outof.+|TopologyAffinityError|SMTAlignmentError)$")
MESSAGE = re.compile(r"^Pod (was rejected: |.*which is unexpected)")
EVICTED = ("Evicted", "Preempting", "Preempted", "Terminated", "NodeShutdown", "Shutdown", "NodeLost", "DeadlineExceeded")
DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"
MIRROR = "kubernetes.io/config.hash"


def rejected(item):
    """Whether a kubelet refused to run it."""
    status = item.get("status") or {}
    reason, message = status.get("reason") or "", status.get("message") or ""
    return status.get("phase") == "Failed" and reason not in EVICTED and bool(REASON.match(reason) or (reason and MESSAGE.match(message)))


def pod_of(item):
    """The few values that tell whose pod it is, what it asks for and how it got to its node."""
    meta, spec, status = item.get("metadata") or {}, item.get("spec") or {}, item.get("status") or {}
    owner = [one for one in meta.get("ownerReferences") or [] if one.get("controller")]
    found = collect_jobs.pod_of(item)
    found.update(namespace=meta.get("namespace"), message=(status.get("message") or "")[:500], started=status.get("startTime"),
                 owner="%s/%s" % (owner[0].get("kind"), owner[0].get("name")) if owner else None, owner_uid=owner[0].get("uid") if owner else None,
                 scheduler=spec.get("schedulerName"), placed=placed(meta), qos=status.get("qosClass"), requests=requests(spec),
                 hash=(meta.get("annotations") or {}).get(MIRROR))
    return found


def placed(meta):
    """Whether its author named its node: True, False, or None where nobody recorded who set what.

    A scheduler sets the node by the binding, which is no field of anybody's; releases since 1.18 record the fields.
    """
    fields = meta.get("managedFields")
    if not fields:
        return None
    return any("f:nodeName" in ((entry.get("fieldsV1") or {}).get("f:spec") or {}) for entry in fields)


def requests(spec):
    """{resource: quantity text or number}: the sum of the containers, or the largest of the plain init containers."""
    total, first = {}, {}
    for container in spec.get("containers") or []:
        for name, value in _asked(container).items():
            total[name] = _sum(total.get(name), value)
    for container in spec.get("initContainers") or []:
        for name, value in _asked(container).items():
            if container.get("restartPolicy") == "Always":
                total[name] = _sum(total.get(name), value)
            else:
                first[name] = max(first.get(name, 0), value)
    return dict((name, max(total.get(name, 0), first.get(name, 0))) for name in set(total) | set(first))


def _asked(container):
    """Devices are whole numbers, and a limit without a request is one."""
    given = container.get("resources") or {}
    asked = dict(given.get("limits") or {}, **(given.get("requests") or {}))
    return dict((name, int(value)) for name, value in asked.items() if "/" in name and re.match(r"^\d+$", str(value)))


def _sum(one, other):
    return (one or 0) + other


def resources_of(item):
    """{device resource: [capacity, allocatable]} of a Node."""
    status = item.get("status") or {}
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    found = {}
    for name, value in capacity.items():
        if "/" in name and re.match(r"^\d+$", str(value)):
            left = str(allocatable.get(name, "0"))
            found[name] = [int(value), int(left) if left.isdigit() else 0]
    return found


def plugin_of(item):
    """{containers: [...]} of a pod that mounts the folder of device plugins, else None."""
    spec, status = item.get("spec") or {}, item.get("status") or {}
    paths = [(volume.get("hostPath") or {}).get("path") or "" for volume in spec.get("volumes") or []]
    if not any((path.rstrip("/") + "/").startswith(DEVICE_PLUGINS + "/") for path in paths):
        return None
    found = []
    for one in status.get("containerStatuses") or []:
        state = one.get("state") or {}
        last = state.get("terminated") or (one.get("lastState") or {}).get("terminated") or {}
        waiting = state.get("waiting") or {}
        found.append({"name": one.get("name"), "ready": bool(one.get("ready")), "restarts": one.get("restartCount") or 0,
                      "waiting": waiting.get("reason"), "exit_code": last.get("exitCode"), "message": (last.get("message") or "")[:300].strip()})
    return {"namespace": (item.get("metadata") or {}).get("namespace"), "name": (item.get("metadata") or {}).get("name"), "containers": found}


def collect(api, ended):
    """(data, truncated). `ended(error)` says whether an error may cut the list short instead of costing all of it."""
    items, cut = [], False
    for item in api.items("/api/v1/pods", {"fieldSelector": "status.phase=Failed"}):
        if rejected(item):
            items.append(pod_of(item))
            if len(items) > 4 * MAX_ITEMS:
                items, cut = _newest(items), True
    total, items = len(items), _newest(items)
    nodes = {}
    try:
        for name in _nodes_of(items)[:MAX_NODES]:
            nodes[name], some = _node(api, name)
            cut = cut or some
    except Exception as error:  # pylint: disable=broad-except
        if not ended(error):
            raise
        cut = True
    return {"items": items, "total": total, "nodes": nodes}, cut or total > len(items) or len(_nodes_of(items)) > len(nodes)


def _newest(items):
    return sorted(items, key=lambda pod: pod["created"] or "", reverse=True)[:MAX_ITEMS]


def _nodes_of(items):
    found = []
    for pod in items:
        if pod["node"] and pod["node"] not in found:
            found.append(pod["node"])
    return found


def _node(api, name):
    """({pods, plugins}, cut): the pods of one node that ask for devices or whose name a checkpoint may hold, and its device plugins."""
    pods, plugins, cut = [], [], False
    for item in api.items("/api/v1/pods", {"fieldSelector": "spec.nodeName=" + name}):
        plugin = plugin_of(item)
        if plugin:
            plugins.append(plugin)
        if rejected(item):
            continue
        pod = pod_of(item)
        if len(pods) < MAX_PODS:
            pods.append(dict((key, pod[key]) for key in ("namespace", "name", "uid", "phase", "created", "deletion_requested", "finished_at",
                                                         "owner", "owner_uid", "scheduler", "placed", "requests", "hash")))
        else:
            cut = True
    return {"pods": pods, "plugins": plugins}, cut
