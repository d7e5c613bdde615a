# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that a kubelet rejected, and the other pods of those nodes. The controller judges them.

A rejected pod is Failed with a reason of the kubelet's admission. Its message and requests are in
the pod itself, which stays, while its events end after an hour.
"""

import re

from ...kubeapi.client import ApiError, dicts
from ...shared import quantity
from ...shared.pod_rejection import TELLING, rejected
from ...system import files
from . import jobs

MAX_ITEMS, MAX_NODES, MAX_PODS, MAX_LOGS = 200, 20, 500, 5
MAX_EVENTS, MAX_REASONS, MAX_RESOURCES, MAX_OWNERS = 20000, 5, 20, 20
OWNERS = {
    "Job": ("/apis/batch/v1/namespaces/%s/jobs/%s", ("parallelism", "completions")),
    "ReplicaSet": ("/apis/apps/v1/namespaces/%s/replicasets/%s", ("replicas",)),
    "StatefulSet": ("/apis/apps/v1/namespaces/%s/statefulsets/%s", ("replicas",)),
    "ReplicationController": ("/api/v1/namespaces/%s/replicationcontrollers/%s", ("replicas",)),
}
LOG_SECONDS = 3
# Of these the whole node counts, with every pod that is on it.
COMPUTE = re.compile(r"^OutOf(cpu|memory|ephemeral-storage|pods|hugepages-\S+)$")
COMPUTED = ("cpu", "memory", "ephemeral-storage")
DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"
MIRROR = "kubernetes.io/config.hash"
# What a kubelet writes of every pod but one that it rejects.
CONDITIONS = (
    "PodScheduled",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodReadyToStartContainers",
)
ASKABLE = re.compile(r"^[-A-Za-z0-9._/]{1,100}$")
# The query encodes the spaces that older kubelets write.
ASKABLE_REASON = re.compile(r"^[-A-Za-z0-9._/ ]{1,100}$")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$")


def pod_of(item):
    """Return the few values that identify a pod and its owner, and what it asks for.

    They also show how it got to its node.
    """
    meta, spec, status = (
        item.get("metadata") or {},
        item.get("spec") or {},
        item.get("status") or {},
    )
    owner_name, owner_uid = _controller(meta)
    pod = jobs.pod_of(item)
    pod.update(
        namespace=meta.get("namespace"),
        message=files.masked_text(status.get("message"), 500),
        started=status.get("startTime"),
        owner=owner_name,
        owner_uid=owner_uid,
        scheduler=spec.get("schedulerName"),
        placed=placed(meta),
        qos=status.get("qosClass"),
        requests=requests(spec),
        hash=(meta.get("annotations") or {}).get(MIRROR),
        rejected_at=rejected_at(item),
        had=had(status),
    )
    if COMPUTE.match(status.get("reason") or ""):
        pod["compute"] = compute(spec)
    return pod


def _controller(meta):
    """Return (kind/name, UID) of the pod's controller, (None, None) where it has none."""
    for owner in meta.get("ownerReferences") or []:
        if owner.get("controller"):
            return "{}/{}".format(owner.get("kind"), owner.get("name")), owner.get("uid")
    return None, None


def rejected_at(item):
    """Return when the kubelet wrote that it rejects this pod; None where that is not known.

    The pod's event may have the time.

    The last write of the kubelet is the rejection as long as the status is as bare as a
    rejection leaves it. The kubelet writes conditions and containers again when it restarts or
    the device plugin comes back (seen on 1.36.3), long after the rejection.
    """
    meta, status = item.get("metadata"), item.get("status")
    if not isinstance(meta, dict) or not isinstance(status, dict) or not rejected(item):
        return None
    if status.get("containerStatuses") or status.get("initContainerStatuses"):
        return None
    conditions = dicts(status.get("conditions"))
    if any(condition.get("type") in CONDITIONS for condition in conditions):
        return None
    return max(_times_of_kubelet(meta), default=None)


def _times_of_kubelet(meta):
    """Return when the kubelet wrote the fields of an object."""
    times = [
        entry.get("time")
        for entry in dicts(meta.get("managedFields"))
        if entry.get("manager") == "kubelet"
    ]
    return [time for time in times if _is_time(time)]


def had(status):
    """Return {resource: how many devices the containers of the pod were given once}.

    The result is empty where the kubelet's release does not report it (1.36.3 does).
    """
    counts = {}
    for container in dicts(status.get("containerStatuses")):
        for entry in dicts(container.get("allocatedResourcesStatus")):
            name, ids = entry.get("name"), entry.get("resources")
            if isinstance(name, str) and "/" in name and isinstance(ids, list):
                counts[name] = counts.get(name, 0) + len(ids)
    return dict(sorted(counts.items())[:MAX_RESOURCES])


def _is_time(value):
    return bool(TIME.match(str(value)))


def placed(meta):
    """Return whether the author of a pod set its nodeName; None without managed fields.

    A scheduler sets it by a binding, which is in no manager's fields. Releases since 1.18
    record the fields.
    """
    fields = meta.get("managedFields")
    if not fields:
        return None
    return any(
        "f:nodeName" in ((entry.get("fieldsV1") or {}).get("f:spec") or {}) for entry in fields
    )


def requests(spec):
    """Return {device resource: how many} of what a pod requests."""
    return _total(spec, _devices)


def compute(spec):
    """Return {resource: amount} of what a pod requests, as schedulers and kubelets count it.

    The pod's own resources and its overhead count. cpu: millicores; memory, ephemeral-storage
    and hugepages-...: bytes; pods: 1.
    """
    amounts = _total(spec, _computed)
    amounts.update(_computed(spec))  # of the pod as a whole, where it says so
    for name, value in quantities(spec.get("overhead") or {}).items():
        amounts[name] = amounts.get(name, 0) + value
    return dict(amounts, pods=1)


def _total(spec, amounts_of):
    """Return what a pod asks for in all, from what each of its containers asks for.

    Containers and sidecars run together, so that their values add up. A plain init container
    runs only with the sidecars that start before it. The larger of the two counts.
    """
    total, first, staying = {}, {}, {}
    for container in spec.get("containers") or []:
        for name, value in amounts_of(container).items():
            total[name] = total.get(name, 0) + value
    for container in spec.get("initContainers") or []:
        for name, value in amounts_of(container).items():
            if container.get("restartPolicy") == "Always":
                staying[name] = staying.get(name, 0) + value
            else:
                first[name] = max(first.get(name, 0), value + staying.get(name, 0))
    return {
        name: max(total.get(name, 0) + staying.get(name, 0), first.get(name, 0))
        for name in set(total) | set(first) | set(staying)
    }


def _given(container):
    """Return the requests of a container; a limit without a request is one."""
    resources = container.get("resources") or {}
    return dict(resources.get("limits") or {}, **(resources.get("requests") or {}))


def _devices(container):
    return {
        name: int(value)
        for name, value in _given(container).items()
        if "/" in name and re.match(r"^\d+$", str(value))
    }


def _computed(container):
    return quantities(_given(container))


def quantities(resources):
    """Return {resource: amount} of a list of quantities, for the resources that every node has.

    cpu: millicores; memory, ephemeral-storage and hugepages-...: bytes.
    """
    amounts = {}
    for name in resources:
        if name in COMPUTED or name.startswith("hugepages-"):
            value = quantity.parse(resources[name])
        else:
            value = None
        if value is not None:
            amounts[name] = int(-(-value * (1000 if name == "cpu" else 1) // 1))
    return amounts


def resources_of(item):
    """Return {device resource: [capacity, allocatable]} of a Node."""
    status = item.get("status") or {}
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    resources = {}
    for name, value in capacity.items():
        if "/" in name and re.match(r"^\d+$", str(value)):
            amount = str(allocatable.get(name, "0"))
            resources[name] = [int(value), int(amount) if amount.isdigit() else 0]
    return resources


def plugin_of(item):
    """Return {containers: [...]} of a pod that mounts the folder of device plugins, else None."""
    meta, status = item.get("metadata") or {}, item.get("status") or {}
    if not any(map(_is_plugin_folder, (item.get("spec") or {}).get("volumes") or [])):
        return None
    return {
        "namespace": meta.get("namespace"),
        "name": meta.get("name"),
        "containers": list(map(_plugin_container, status.get("containerStatuses") or [])),
    }


def _is_plugin_folder(volume):
    path = (volume.get("hostPath") or {}).get("path") or ""
    return (path.rstrip("/") + "/").startswith(DEVICE_PLUGINS + "/")


def _plugin_container(container):
    state = container.get("state") or {}
    last = state.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
    return {
        "name": container.get("name"),
        "ready": bool(container.get("ready")),
        "restarts": container.get("restartCount") or 0,
        "waiting": (state.get("waiting") or {}).get("reason"),
        "exit_code": last.get("exitCode"),
        "message": files.masked_text(last.get("message"), 300).strip(),
    }


def collect(api, ended):
    """Return (data, truncated).

    `ended(error)` returns whether an error may cut the list short instead of costing all of it.
    """
    items, counts, cut = _rejected_pods(api)
    nodes = {}
    try:
        cut = _fill_nodes(api, nodes, items, counts) or cut
    except Exception as error:  # pylint: disable=broad-except
        if not ended(error):
            raise
        cut = True
    _ask_owners(api, items)
    _ask_events(api, items)
    total = sum(counts.values())
    data = {"items": items, "total": total, "nodes": nodes}
    return data, cut or total > len(items) or len(_nodes_of(items)) > len(nodes)


def _rejected_pods(api):
    """Return (the newest rejected pods, {node: how many it has}, cut)."""
    items, counts, cut = [], {}, False
    for item in api.items("/api/v1/pods", {"fieldSelector": "status.phase=Failed"}):
        if rejected(item):
            items.append(pod_of(item))
            counts[items[-1]["node"]] = counts.get(items[-1]["node"], 0) + 1
            if len(items) > 4 * MAX_ITEMS:
                items, cut = _newest(items), True
    return _newest(items), counts, cut


def _fill_nodes(api, nodes, items, counts):
    """Add the pods and plugins on the nodes of these pods; return whether a list was cut."""
    counted = {pod["node"] for pod in items if "compute" in pod}
    cut, logs = False, 0
    for name in _nodes_of(items)[:MAX_NODES]:
        nodes[name], is_cut = _node(api, name, name in counted)
        nodes[name]["rejected"] = counts[name]
        cut = cut or is_cut
        for plugin, container in crashing(nodes[name]["plugins"]):
            if not container["message"] and logs < MAX_LOGS:
                container["message"] = last_words(api, plugin, container["name"])
                logs += 1
    return cut


def crashing(plugins):
    """Return (plugin, container) of those that do not stay up."""
    return [
        (plugin, container)
        for plugin in plugins
        for container in filter(_is_crashing, plugin["containers"])
    ]


def _is_crashing(container):
    if container["ready"]:
        return False
    if container["waiting"] == "CrashLoopBackOff":
        return True
    return bool(container["restarts"] and container["exit_code"])


def last_words(api, plugin, container):
    """Return the telling line of the log of the container's last run, else its last line.

    The result is empty where the API gives no log. Secrets are masked.
    """
    path = "/api/v1/namespaces/{namespace}/pods/{name}/log".format(**plugin)
    path += f"?container={container}&previous=true&tailLines=40&limitBytes=16384"
    code, lines = api.lines(path, LOG_SECONDS)
    if code != 200 or not lines:
        return ""
    line = next((text for text in reversed(lines) if TELLING in text.lower()), lines[-1])
    return files.masked_text(line, 300)


def _ask_owners(api, items):
    """Add how many pods their owners want at a time; None where that is not known.

    A failure leaves the others unknown, and does not end the collector.
    """
    counts = {}
    try:
        for pod in items:
            kind, _dummy, name = (pod["owner"] or "").partition("/")
            uid = pod["owner_uid"]
            is_new = kind in OWNERS and uid not in counts
            if is_new and len(counts) < MAX_OWNERS and ASKABLE.match(name):
                path, fields = OWNERS[kind]
                owner = api.find(path % (pod["namespace"], name)) or {}
                counts[uid] = _wanted(owner, uid, fields)
            pod["wanted"] = counts.get(uid)
    except ApiError:
        pass


def _wanted(owner, uid, fields):
    """Return how many pods this owner wants at a time, or None.

    An object of another kind and the same name (Volcano has a Job too) has another UID.
    """
    if (owner.get("metadata") or {}).get("uid") != uid:
        return None
    spec = owner.get("spec") or {}
    numbers = [spec.get(field) for field in fields]
    numbers = [number for number in numbers if isinstance(number, int)]
    return min(numbers, default=1) or None


def _ask_events(api, items):
    """Add the times that only events have.

    It comes last: where it fails, only these times are unknown.
    """
    pods = {pod["uid"]: pod for pod in items if _lacks_time(pod)}
    reasons = {pod["reason"] for pod in pods.values() if ASKABLE_REASON.match(str(pod["reason"]))}
    try:
        for reason in sorted(reasons)[:MAX_REASONS]:
            query = {"fieldSelector": "involvedObject.kind=Pod,reason=" + reason}
            for number, item in enumerate(api.items("/api/v1/events", query)):
                if number >= MAX_EVENTS:
                    break
                _take_time(pods, item)
    except ApiError:
        pass


def _lacks_time(pod):
    if not pod["uid"] or pod["rejected_at"]:
        return False
    return bool(pod["requests"] or "compute" in pod)


def _take_time(pods, item):
    about = item.get("involvedObject")
    if not isinstance(about, dict):
        return
    pod, last = pods.get(about.get("uid")), jobs.event_of(item)["last"]
    if pod and pod["reason"] == item.get("reason") and _is_time(last):
        pod["rejected_at"] = max(last, pod["rejected_at"] or "")


def _newest(items):
    return sorted(items, key=lambda pod: pod["created"] or "", reverse=True)[:MAX_ITEMS]


def _nodes_of(items):
    nodes = []
    for pod in items:
        if pod["node"] and pod["node"] not in nodes:
            nodes.append(pod["node"])
    return nodes


def _node(api, name, counted):
    """Return ({pods, plugins}, cut): the pods of one node, and its device plugins.

    counted: whether to add the pods' requests other than devices.
    """
    pods, plugins, cut = [], [], False
    for item in api.items("/api/v1/pods", {"fieldSelector": "spec.nodeName=" + name}):
        plugin = plugin_of(item)
        if plugin:
            plugins.append(plugin)
        if rejected(item):
            continue
        pod = pod_of(item)
        if len(pods) < MAX_PODS:
            pods.append(
                {
                    key: pod[key]
                    for key in (
                        "namespace",
                        "name",
                        "uid",
                        "phase",
                        "created",
                        "deletion_requested",
                        "finished_at",
                        "owner",
                        "owner_uid",
                        "scheduler",
                        "placed",
                        "requests",
                        "hash",
                        "started",
                    )
                }
            )
            if counted:
                pods[-1]["compute"] = compute(item.get("spec") or {})
        else:
            cut = True
    return {"pods": pods, "plugins": plugins}, cut
