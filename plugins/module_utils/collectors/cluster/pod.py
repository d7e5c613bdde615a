# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that the API knows of one pod: itself, its owner, its siblings and their events.

A surplus pod lives for a second. Only the events about its name, and those of its owner that name
it, are left then.
"""

import re
import urllib.parse

from ...kubeapi import client
from ...kubeapi.client import ApiError
from ...shared.pod_rejection import REJECTED
from ...shared.text import one_line
from ...system import files
from . import jobs, rejected

MAX_SIBLINGS, MAX_EVENTS, MAX_SCANNED, PER_POD, TEXT = 50, 500, 50000, 20, 500
DEVICES = re.compile(
    r"requested number of devices unavailable|cannot allocate un(registered|healthy) device"
)
UID = re.compile(r"^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$")
NAME = re.compile(r"^[a-z0-9][-a-z0-9]*/[a-z0-9][-.a-z0-9]*$")
# Where the API keeps owners. Others are named, and not asked for.
KINDS = {
    "Job": ("batch/", "/apis/batch/v1", "jobs"),
    "ReplicaSet": ("apps/", "/apis/apps/v1", "replicasets"),
    "StatefulSet": ("apps/", "/apis/apps/v1", "statefulsets"),
    "DaemonSet": ("apps/", "/apis/apps/v1", "daemonsets"),
    "ReplicationController": ("v1", "/api/v1", "replicationcontrollers"),
}


def choose(items):
    """Return (namespace, name, uid) of the newest rejected pod, or None without any.

    A pod whose device was refused comes before all others.
    """
    for pattern in (DEVICES, re.compile("")):
        for pod in items:
            if pattern.search(pod.get("message") or ""):
                return pod.get("namespace"), pod.get("name"), pod.get("uid")
    return None


def pod_of(item):
    """Return a pod with the times of everything that happened to it."""
    meta, spec, status = (
        item.get("metadata") or {},
        item.get("spec") or {},
        item.get("status") or {},
    )
    pod = rejected.pod_of(item)
    pod.update(
        grace=meta.get("deletionGracePeriodSeconds"),
        finalizers=(meta.get("finalizers") or [])[:PER_POD],
        managers=managers(meta),
        asks=asks(spec),
        conditions=[
            _short(condition, "type", "status", "reason", "message", lastTransitionTime="time")
            for condition in (status.get("conditions") or [])[:PER_POD]
        ],
        containers=[
            _container(container, init)
            for init, name in ((True, "initContainerStatuses"), (False, "containerStatuses"))
            for container in (status.get(name) or [])[:PER_POD]
        ],
    )
    return pod


def managers(meta):
    """Return the field managers of the object, and whether each set the spec or its nodeName."""
    return [
        {
            "manager": entry.get("manager"),
            "operation": entry.get("operation"),
            "time": entry.get("time"),
            "subresource": entry.get("subresource"),
            "spec": "f:spec" in (entry.get("fieldsV1") or {}),
            "node": "f:nodeName" in ((entry.get("fieldsV1") or {}).get("f:spec") or {}),
        }
        for entry in (meta.get("managedFields") or [])[:PER_POD]
    ]


def asks(spec):
    """Return {resource: text}: what each container asks for, "100m+200m".

    It leaves out the init containers.
    """
    amounts = {}
    for container in spec.get("containers") or []:
        resources = container.get("resources") or {}
        for name, value in dict(
            resources.get("limits") or {}, **(resources.get("requests") or {})
        ).items():
            amounts.setdefault(name, []).append(str(value))
    return {
        name: "+".join(values[:PER_POD])[:TEXT]
        for name, values in sorted(amounts.items())[:PER_POD]
    }


def _short(item, *names, **renamed):
    fields = {name: item.get(name) for name in names}
    fields.update((new, item.get(old)) for old, new in renamed.items())
    if fields.get("message"):
        fields["message"] = files.masked_text(fields["message"], TEXT)
    return fields


def _container(status, init):
    last = (status.get("lastState") or {}).get("terminated")
    state = status.get("state") or {}
    if state:
        kind = sorted(state)[0]
    else:
        kind = None
    return {
        "name": status.get("name"),
        "init": init,
        "restarts": status.get("restartCount") or 0,
        "state": kind,
        "now": _state(state.get(kind)),
        "before": _state(last) if last else None,
    }


def _state(state):
    return _short(
        state or {},
        "reason",
        "message",
        startedAt="started",
        finishedAt="finished",
        exitCode="exit_code",
    )


def owner_of(item):
    """Return (values, labels) of a controller.

    The values show when the controller began and ended. The labels are those that select its
    pods.
    """
    meta, spec, status = (
        item.get("metadata") or {},
        item.get("spec") or {},
        item.get("status") or {},
    )
    selector = spec.get("selector") or {}
    # a ReplicationController has the labels themselves
    if "matchLabels" in selector or "matchExpressions" in selector:
        selector = selector.get("matchLabels") or {}
    return {
        "created": meta.get("creationTimestamp"),
        "deleted": meta.get("deletionTimestamp"),
        "managers": managers(meta),
        "completions": spec.get("completions"),
        "parallelism": spec.get("parallelism"),
        "replicas": spec.get("replicas"),
        "started": status.get("startTime"),
        "completed": status.get("completionTime"),
        "conditions": [
            _short(condition, "type", "status", "reason", "message", lastTransitionTime="time")
            for condition in (status.get("conditions") or [])[:PER_POD]
        ],
    }, selector


def event_of(item):
    """Return the text and the times of an event, its component and the host of that."""
    about, source = item.get("involvedObject") or {}, item.get("source") or {}
    event = jobs.event_of(item)
    component = item.get("reportingComponent") or source.get("component")
    created = (item.get("metadata") or {}).get("creationTimestamp")
    event.update(
        message=files.masked_ends(item.get("message"), TEXT),
        first=event["first"] or created,
        last=event["last"] or created,
        type=item.get("type"),
        kind=about.get("kind"),
        name=about.get("name"),
        uid=about.get("uid"),
        component=component,
        host=source.get("host") or _instance(item, component) or None,
    )
    return event


def _instance(item, component):
    """Return the host in the name of an instance, as m1 in a scheduler's default-scheduler-m1."""
    instance = item.get("reportingInstance") or ""
    if component and instance.startswith(component + "-"):
        return instance[len(component) + 1 :]
    return instance


class _Look:
    """A reading of one pod: what was found so far, whatever ends it."""

    def __init__(self, api):
        self.api = api
        self.events, self.cut = {}, False

    def pod(self, namespace, name):
        """Return the pod of this name as the API has it, None where there is none."""
        return self.api.find(path(namespace, name))

    def named(self, uid):
        """Return (namespace, name) of a pod by its UID; None where it is not known.

        The UID of a static pod may be the hash of its file.
        """
        return self._named_by_events(uid) or self._named_by_pods(uid)

    def _named_by_events(self, uid):
        query = {"fieldSelector": "involvedObject.uid=" + uid}
        for item in self.api.items("/api/v1/events", query):
            about = item.get("involvedObject") or {}
            is_pod = about.get("kind") == "Pod" and about.get("uid") == uid
            if is_pod and about.get("namespace") and about.get("name"):
                return about["namespace"], about["name"]
        return None

    def _named_by_pods(self, uid):
        for item in self.api.items("/api/v1/pods", accept=client.LIST):
            meta = item.get("metadata") or {}
            file_hash = (meta.get("annotations") or {}).get(rejected.MIRROR)
            if uid in (meta.get("uid"), file_hash):
                return meta.get("namespace"), meta.get("name")
        return None

    def listen(self, namespace, selector, keep=None):
        """Keep the events that this selector finds, bounded."""
        for item in self.api.items(
            f"/api/v1/namespaces/{_part(namespace)}/events", {"fieldSelector": selector}
        ):
            event = event_of(item)
            if keep and not keep(event):
                continue
            if len(self.events) >= MAX_EVENTS:
                self.cut = True
                return
            self.events.setdefault(_uid(item) or len(self.events), event)

    def owner(self, namespace, pod):
        """Return (the controller, the labels of its pods) of a pod; ({}, {}) where it has none."""
        reference = [
            owner
            for owner in (pod.get("metadata") or {}).get("ownerReferences") or []
            if owner.get("controller")
        ]
        if reference:
            return self._controller(namespace, reference[0])
        return ({}, {})

    def creator(self, namespace, name):
        """Return (owner, labels) of a pod that is gone, by the event of its owner that names it."""
        owners = []
        for item in self.api.items(
            f"/api/v1/namespaces/{_part(namespace)}/events",
            {"fieldSelector": "reason=SuccessfulCreate"},
        ):
            if event_of(item)["pod"] == name:
                owners.append(item.get("involvedObject") or {})
        if owners:
            return self._controller(namespace, owners[0])
        return ({}, {})

    def _controller(self, namespace, reference):
        kind, name, uid = reference.get("kind"), reference.get("name"), reference.get("uid")
        controller = {
            "kind": kind,
            "namespace": namespace,
            "name": name,
            "uid": uid,
            "state": "not_asked",
        }
        if kind == "Job":
            labels = {"controller-uid": uid}
        else:
            labels = {}
        group, path, plural = KINDS.get(kind, ("", None, None))
        if path is None or not str(reference.get("apiVersion") or group).startswith(group):
            return controller, labels
        item = self.api.find(f"{path}/namespaces/{_part(namespace)}/{plural}/{_part(name)}")
        if item is None or _uid(item) != uid:
            return dict(controller, state="gone"), labels
        details, selector = owner_of(item)
        return dict(controller, state="ok", **details), selector or labels

    def siblings(self, namespace, owner, labels, pod):
        """Return (the other pods of this controller nearest in time, how many there are)."""
        meta = (pod or {}).get("metadata") or {}
        near = _distance(meta)
        siblings, total = {}, 0
        path = f"/api/v1/namespaces/{_part(namespace)}/pods"
        for item in self._scanned(path, _label_query(labels)):
            uid = _uid(item)
            if uid in siblings or uid == meta.get("uid") or not _is_controlled(item, owner):
                continue
            siblings[uid], total = pod_of(item), total + 1
            if len(siblings) > 4 * MAX_SIBLINGS:
                siblings = {sibling["uid"]: sibling for sibling in _nearest(siblings, near)}
        self.cut = self.cut or total > MAX_SIBLINGS
        return sorted(_nearest(siblings, near), key=_by_time), total

    def _scanned(self, path, query):
        for number, item in enumerate(self.api.items(path, query)):
            if number >= MAX_SCANNED:
                self.cut = True
                return
            yield item


def _uid(item):
    return (item.get("metadata") or {}).get("uid")


def _label_query(labels):
    """Return the query for the pods with these labels, or for all pods where there are none."""
    if not labels:
        return {}
    pairs = ["{}={}".format(*pair) for pair in sorted(labels.items())]
    return {"labelSelector": ",".join(pairs)}


def _nearest(siblings, near):
    return sorted(siblings.values(), key=near)[:MAX_SIBLINGS]


def _by_time(pod):
    return pod["created"] or "", pod["name"] or ""


def _by_first(event):
    return event["first"] or ""


def _is_controlled(item, owner):
    references = (item.get("metadata") or {}).get("ownerReferences") or []
    return any(
        reference.get("controller") and reference.get("uid") == owner["uid"]
        for reference in references
    )


def _distance(meta):
    """Return a function that gives the seconds between the creation of a pod and of this one.

    It puts the newest pods first where this pod is gone.
    """
    created = jobs.epoch(meta.get("creationTimestamp"))

    def distance(pod):
        other = jobs.epoch(pod["created"]) or 0
        if created is None:
            return -other
        return abs(other - created)

    return distance


def path(namespace, name):
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{_part(namespace)}/pods/{_part(name)}"


def _part(text):
    return urllib.parse.quote(str(text), safe="")


def collect(api, requested_pod, rejections, ended):
    """Return (data, truncated) of the pod `requested_pod`: namespace/name, a UID, or REJECTED.

    `rejections()` lists rejected pods, newest first.

    It raises ApiError "absent" where neither a pod nor an event is left. `ended(error)` returns
    whether an error may cut the answer short.
    """
    look = _Look(api)
    namespace, name, uid = _place(look, requested_pod, rejections)
    data = {
        "asked": requested_pod,
        "namespace": namespace,
        "name": name,
        "uid": uid,
        "pod": None,
        "owner": {},
        "siblings": [],
        "siblings_total": 0,
        "events": [],
    }
    if name is None:
        return data, False
    item = _pod_at(look, namespace, name, uid)
    if item:
        data["pod"] = pod_of(item)
        data["uid"] = data["pod"]["uid"] or uid
    try:
        _around(look, data, item)
    except Exception as error:  # pylint: disable=broad-except
        if not ended(error):
            raise
        look.cut = True
    data["events"] = sorted(look.events.values(), key=_by_first)
    if item is None:
        data["uid"] = data["uid"] or _uid_by_events(data["events"], name)
        if not data["events"] and not look.cut:
            raise _unknown(f"{namespace}/{name}")
    return data, look.cut


def _pod_at(look, namespace, name, uid):
    """Return the pod of this name; None without one, or where another pod took the name."""
    item = look.pod(namespace, name)
    if item and _took_name(item, uid):
        return None
    return item


def _took_name(item, uid):
    """Return whether this pod is another one than that of the UID."""
    if uid in (None, _uid(item)):
        return False
    return not _static(item, uid)


def _uid_by_events(events, name):
    for event in reversed(events):
        if event["kind"] == "Pod" and event["name"] == name and event["uid"]:
            return event["uid"]
    return None


def _place(look, requested_pod, rejections):
    """Return (namespace, name, UID or None) of the pod; Nones where no pod was rejected."""
    if requested_pod == REJECTED:
        return choose(rejections()) or (None, None, None)
    if NAME.match(requested_pod):
        return (*tuple(requested_pod.split("/")), None)
    uid = requested_pod.lower()
    if not UID.match(uid):
        raise ApiError(
            "error",
            f"a pod is named as namespace/name or by its UID, not {one_line(requested_pod, 100)}",
        )
    place = look.named(uid)
    if place is None:
        raise _unknown("with the UID " + uid)
    return place[0], place[1], uid


def _unknown(pod):
    return ApiError(
        "absent",
        f"the API knows no pod {pod} and no event about one (events go after an hour); name it as "
        "`kubectl get pods --all-namespaces` lists it, namespace/name, or by its UID",
    )


def _static(item, uid):
    return ((item.get("metadata") or {}).get("annotations") or {}).get(rejected.MIRROR) == uid


def _around(look, data, item):
    """Add the owner, the siblings and the events about all of them.

    It reads what matters most first, because the time may run out.
    """
    namespace, name = data["namespace"], data["name"]
    about = "involvedObject.kind=Pod,involvedObject.name="
    look.listen(namespace, about + name)
    if item:
        owner, labels = look.owner(namespace, item)
    else:
        owner, labels = look.creator(namespace, name)
    data["owner"] = owner
    if not owner.get("uid"):
        return
    look.listen(namespace, "involvedObject.uid={}".format(owner["uid"]))
    data["siblings"], data["siblings_total"] = look.siblings(namespace, owner, labels, item)
    # An API server goes through all events of the namespace for each: not for a whole ReplicaSet.
    near = _distance((item or {}).get("metadata") or {})
    names = [sibling["name"] for sibling in sorted(data["siblings"], key=near)[:PER_POD]]
    names += _gone(look.events.values(), (name, *names))[-PER_POD:]
    for sibling in names:
        look.listen(namespace, about + str(sibling))


def _gone(events, known_names):
    """Return the pods that only the events of their owner name."""
    names = [event["pod"] for event in events if event["kind"] != "Pod" and event["pod"]]
    return [name for name in _once(names) if name not in known_names]


def _once(names):
    distinct_names = []
    for name in names:
        if name not in distinct_names:
            distinct_names.append(name)
    return distinct_names
