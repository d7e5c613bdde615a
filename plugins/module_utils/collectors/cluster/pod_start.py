# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that a kubelet has accepted and that do not start, by node, with their events.

The controller judges them. Events end after an hour, and count together with the pods that still
wait.
"""

import re

from ...kubeapi.client import TABLE, ApiError, dicts
from ...shared import own_pods
from ...shared.text import one_line
from ...system import files
from . import pending, pod

MAX_READ, MAX_ROWS, MAX_EVENTS, MAX_EVENT_ROWS, MAX_SENT = 5000, 1000, 20000, 1000, 200
MAX_NODES, MAX_ON_NODE, MAX_NAMES, MAX_TEXT = 20, 2000, 3, 600
MAX_ATTACHMENTS, MAX_ATTACHMENTS_SENT, MAX_UIDS, MAX_TIMES, SHORT = 5000, 100, 1000, 20, 5
# What a kubelet, and the controller that attaches volumes, report of a pod that does not start.
REASONS = frozenset(
    (
        "FailedCreatePodSandBox",
        "FailedCreatePodContainer",
        "FailedMount",
        "FailedMapVolume",
        "FailedAttachVolume",
        "FailedPrepareDynamicResources",
        "FailedKillPod",
        "FailedSync",
        "Failed",
        "BackOff",
        "InspectFailed",
        "ErrImageNeverPull",
        "NetworkNotReady",
        "VolumePermissionChangeInProgress",
    )
)
BACK_OFF, COMBINED = "BackOff", "(combined from similar events): "
ATTACHING = ("FailedAttachVolume", "FailedMount")
CREATING, INITIALIZING = "ContainerCreating", "PodInitializing"
EVENTS = {
    "fieldSelector": (
        "involvedObject.kind=Pod,type=Warning,reason!=FailedScheduling,reason!=Unhealthy"
    )
}
PROBES = {"fieldSelector": "reason=Unhealthy,type=Warning"}
MAX_PROBES, MAX_UNHEALTHY, MAX_ASKED = 3000, 40, 20
# The kubelet gives a static pod the hash of its file as UID; the API gives its mirror another one.
STATIC_UIDS = ("kubernetes.io/config.hash", "kubernetes.io/config.mirror")
PENDING = {"fieldSelector": "status.phase=Pending"}
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
# What a kubelet reports besides the cause, and mostly later.
VAGUE = ("Back-off ", "Error: ", "error killing pod: ")
# What differs in the words of one cause: ids, numbers, and the parts of names that are made.
_VARIES = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{12,}|\d+")
_VOLUME = re.compile(r'volume \\?"([^"\\]+)')
# A pod that was ready once, or whose init containers ended late, waits since then.
TURNS = ("Initialized", "Ready")


def folded(text, *names):
    """Return a text without these names, ids and numbers, so that equal causes are equal.

    A short name may be a part of any word.
    """
    for name in names:
        if name and len(name) >= SHORT:
            text = text.replace(name, "*")
    return _VARIES.sub("#", text)


def state_of(item):
    """Return (state, message) of a pod as kubectl shows it: that of its first container to wait."""
    status = item.get("status") or {}
    for container in dicts(status.get("initContainerStatuses")):
        if not _is_done(container):
            reason, message = _waiting(container)
            return "Init:" + (reason or "Running"), message
    for container in dicts(status.get("containerStatuses")):
        reason, message = _waiting(container)
        if reason:
            return reason, message
    return CREATING, ""


def _is_done(container):
    """Return whether an init container is completed, or is a sidecar that has started."""
    ended = (container.get("state") or {}).get("terminated")
    if ended:
        return ended.get("exitCode") == 0
    return bool(container.get("started"))


def _waiting(container):
    """Return (reason, message) of what a container waits for; empty where it does not wait."""
    state = container.get("state") or {}
    if state.get("terminated"):
        return "Error", str(state["terminated"].get("message") or "")
    waiting = state.get("waiting")
    if not isinstance(waiting, dict):
        return "", ""
    reason = one_line(waiting.get("reason") or CREATING, 80)
    if reason == INITIALIZING:
        reason = CREATING
    return reason, str(waiting.get("message") or "")


def _node_of(item):
    """Return the node that has accepted a pod, None where none has, or the pod is deleted."""
    meta, spec, status = (item.get(name) or {} for name in ("metadata", "spec", "status"))
    if meta.get("deletionTimestamp") or not isinstance(status.get("startTime"), str):
        return None
    return one_line(spec.get("nodeName") or "", 253) or None


def since_of(status):
    """Return since when a pod waits: not since its start where it was further than that later.

    A node that boots starts pods again, and an init container may work for hours.
    """
    times = [status["startTime"]]
    for condition in dicts(status.get("conditions")):
        if condition.get("type") in TURNS:
            times.append(condition.get("lastTransitionTime"))
    for container in dicts(status.get("initContainerStatuses")):
        ended = (container.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode") == 0:
            times.append(ended.get("finishedAt"))
    return max(time for time in times if isinstance(time, str))


def _is_full(rows, key, most):
    return key not in rows and len(rows) >= most


class _Waiting:
    """The pods that wait on their nodes, one row for each node, owner and state."""

    def __init__(self):
        self.rows, self.nodes, self.row_by_uid = {}, {}, {}
        self.read, self.is_cut = 0, False

    def take_all(self, api):
        """Take the Pending pods that the API lists, bounded."""
        for item in api.items("/api/v1/pods", PENDING, unmanaged=True):
            if self.read >= MAX_READ:
                self.is_cut = True
                break
            self.read += 1
            self.take(item)

    def take(self, item):
        """Take a pod that a kubelet has accepted: the kubelet sets its startTime."""
        meta, status = item.get("metadata") or {}, item.get("status") or {}
        node, uid = _node_of(item), meta.get("uid")
        if node is None or uid in self.row_by_uid:  # the list may have begun again
            return
        self.nodes[node] = self.nodes.get(node, 0) + 1
        state, message = state_of(item)
        key = (node, meta.get("namespace"), pending.owner_of(item), state)
        if _is_full(self.rows, key, MAX_ROWS):
            self.is_cut = True
            return
        row = self.rows.setdefault(
            key,
            {
                "node": node,
                "namespace": key[1],
                "owner": key[2],
                "state": state,
                "agent": own_pods.is_agent(key[1], meta.get("name"), _containers(item)),
                "pods": 0,
                "oldest": [],
                "message": files.masked_ends(message, MAX_TEXT),
                "event": None,
            },
        )
        self.row_by_uid[uid] = row
        row["pods"] += 1
        row["oldest"].append((since_of(status), str(meta.get("name"))))
        row["oldest"] = sorted(row["oldest"])[:MAX_TIMES]

    def sent(self):
        """Return the rows, bounded, those first that wait for the longest."""
        rows = sorted(self.rows.values(), key=_order)
        self.is_cut = self.is_cut or len(rows) > MAX_SENT
        return [_sent(row) for row in rows[:MAX_SENT]]


def _containers(item):
    """Return the names of a pod's containers."""
    spec = item.get("spec") or {}
    return [str(row.get("name")) for row in dicts(spec.get("containers"))]


def _order(row):
    return row["oldest"][0][0], -row["pods"], row["node"], str(row["namespace"]), str(row["owner"])


def _sent(row):
    """Return a row with the times and the names of its oldest pods."""
    oldest = row.pop("oldest")
    times = [time for time, _dummy in oldest]
    return dict(
        row, since=times[0], times=times, names=[name for _time, name in oldest[:MAX_NAMES]]
    )


class _Events:
    """The events about pods, one row for each node, reason and folded message."""

    def __init__(self, row_by_uid):
        self.row_by_uid, self.rows, self.is_cut = row_by_uid, {}, False

    def take_all(self, api):
        """Take the events that the API lists, bounded."""
        for number, item in enumerate(api.items("/api/v1/events", EVENTS)):
            if number >= MAX_EVENTS:
                self.is_cut = True
                break
            if item.get("reason") in REASONS:
                self._take(item)

    def _take(self, item):
        about, event = item.get("involvedObject") or {}, pod.event_of(item)
        uid, text = about.get("uid"), _words(event["message"])
        waiting = self.row_by_uid.get(uid)
        if waiting is not None:
            _add_event(waiting, event, text)
        node = (waiting or {}).get("node") or event["host"]
        if not node:
            return
        key = (node, event["reason"], _cause(event["reason"], text, about))
        if _is_full(self.rows, key, MAX_EVENT_ROWS):
            self.is_cut = True
            return
        row = self.rows.setdefault(key, {"count": 0, "uids": set(), "last": "", "first": None})
        _count(row, event, uid)
        if (event["last"] or "") >= row["last"]:
            row.update(last=event["last"] or "", message=text, pod=_name(about))

    def sent(self):
        """Return the rows of which most pods wait now, bounded, the largest first."""
        rows = [
            {
                "node": one_line(node, 253),
                "reason": one_line(reason, 80),
                "message": row["message"],
                "pod": row["pod"],
                "count": row["count"],
                "pods": len(row["uids"]),
                "waiting": sum(uid in self.row_by_uid for uid in row["uids"]),
                "first": row["first"],
                "last": row["last"] or None,
            }
            for (node, reason, _dummy), row in self.rows.items()
        ]
        rows.sort(key=lambda row: (-row["waiting"], -row["count"], row["node"], row["message"]))
        self.is_cut = self.is_cut or len(rows) > MAX_SENT
        return rows[:MAX_SENT]


def _words(message):
    """Return a message without what a kubelet puts before one that it repeats."""
    text = one_line(message, MAX_TEXT)
    return text[len(COMBINED) :] if text.startswith(COMBINED) else text


def _cause(reason, text, about):
    """Return what equal causes have in common; each workload has its own one to end."""
    name, namespace = about.get("name"), about.get("namespace")
    text = folded(text, name, namespace, about.get("uid"))
    if reason == BACK_OFF:
        return text, namespace, str(name).rpartition("-")[0]
    return text


def _count(row, event, uid):
    row["count"] += event["count"]
    if len(row["uids"]) < MAX_UIDS:
        row["uids"].add(uid)
    row["first"] = min(filter(None, (row["first"], event["first"])), default=None)


def _add_event(row, event, text):
    """Keep the newest event about a row's pods, but none that says less than the one before."""
    former = row["event"]
    if former is not None:
        if text.startswith(VAGUE) and not former["message"].startswith(VAGUE):
            return
        is_better = former["message"].startswith(VAGUE) and not text.startswith(VAGUE)
        if not is_better and (event["last"] or "") < (former["last"] or ""):
            return
    row["event"] = {"reason": event["reason"], "message": text, "last": event["last"]}


def unhealthy(api):
    """Return (failed probes of the cluster's own pods by pod and container, cut).

    The rows are {namespace, pod, container, node, message, count, first, last}, the message that of
    the newest event; those first that failed most often. Pods that are gone are left out: their
    events outlive them by an hour. It is cut where so many pods fail their probes that not all
    events or rows are read: of what waits nothing is cut then.
    """
    rows, is_cut = {}, False
    for number, item in enumerate(api.items("/api/v1/events", PROBES)):
        if number >= MAX_PROBES:
            is_cut = True
            break
        about = item.get("involvedObject") or {}
        namespace, name = str(about.get("namespace")), str(about.get("name"))
        container = str(about.get("fieldPath") or "").partition("{")[2].rstrip("}")
        if own_pods.is_one(namespace, name, [container]):
            _add_probe(rows, (namespace[:63], name[:253], container[:63]), item)
    ordered = sorted(rows.values(), key=lambda row: (-row["count"], row["namespace"], row["pod"]))
    rows = _of_pods_there(api, ordered[:MAX_UNHEALTHY])
    return rows, is_cut or len(ordered) > MAX_UNHEALTHY


def _of_pods_there(api, rows):
    """Return the rows without those of pods that are gone; of the last rows it is not asked."""
    uids = {(row["namespace"], row["pod"]): row.pop("uid") for row in rows}
    gone = {key for key, uid in list(uids.items())[:MAX_ASKED] if not _is_there(api, key, uid)}
    return [row for row in rows if (row["namespace"], row["pod"]) not in gone]


def _is_there(api, names, uid):
    """Return whether a pod is still that of its events; in doubt it is."""
    try:
        current = api.find(pod.path(*names))
    except ApiError as error:
        if error.status != "denied":
            raise
        return True
    meta = (current or {}).get("metadata") or {}
    return bool(current) and not meta.get("deletionTimestamp") and uid in _uids(meta)


def _uids(meta):
    """Return the UIDs that events of a pod may have; those of a static pod have its hash."""
    marks = meta.get("annotations") or {}
    return (None, meta.get("uid"), *(marks.get(name) for name in STATIC_UIDS))


def _add_probe(rows, key, item):
    event = pod.event_of(item)
    row = rows.setdefault(
        key, dict(zip(("namespace", "pod", "container"), key), count=0, first=None, last=None)
    )
    row["count"] += event["count"]
    row["first"] = min(filter(None, (row["first"], event["first"])), default=None)
    if (event["last"] or "") >= (row["last"] or ""):
        node = one_line(event["host"] or "", 253)
        uid = (item.get("involvedObject") or {}).get("uid")
        row.update(last=event["last"], message=_words(event["message"]), node=node, uid=uid)


def _name(about):
    return "{}/{}".format(about.get("namespace"), about.get("name"))


def on_node(api, name):
    """Return {state: pods} of all pods of a node, as kubectl shows them; None if unknown."""
    counts = {}
    query = {"fieldSelector": "spec.nodeName=" + name, "includeObject": "None"}
    for number, item in enumerate(api.items("/api/v1/pods", query, accept=TABLE, restarts=0)):
        if number >= MAX_ON_NODE or not isinstance(item.get("Status"), str):
            return None
        state = one_line(item["Status"], 80)
        counts[state] = counts.get(state, 0) + 1
    return counts


def attachments(api, volumes):
    """Return (what the API has of volumes that are attached to nodes, cut).

    The first is None where they may not be listed: pods that wait are known without them. Only
    those count that are not well, or whose volume is one of these.
    """
    rows = []
    try:
        for number, item in enumerate(api.items(ATTACHMENTS, unmanaged=True)):
            if number >= MAX_ATTACHMENTS:
                return rows[:MAX_ATTACHMENTS_SENT], True
            row = _attachment(item)
            if row["volume"] in volumes or row["error"] or row["deleted"]:
                rows.append(row)
    except ApiError as error:
        if error.status not in ("denied", "absent"):
            raise
        return None, False
    rows.sort(key=lambda row: (row["volume"] not in volumes, row["volume"], row["node"]))
    return rows[:MAX_ATTACHMENTS_SENT], len(rows) > MAX_ATTACHMENTS_SENT


def _attachment(item):
    meta, spec, status = (item.get(name) or {} for name in ("metadata", "spec", "status"))
    error = status.get("attachError") or status.get("detachError") or {}
    return {
        "name": _text(meta, "name"),
        "node": _text(spec, "nodeName"),
        "attacher": _text(spec, "attacher"),
        "volume": _text(spec.get("source") or {}, "persistentVolumeName"),
        "attached": bool(status.get("attached")),
        "deleted": meta.get("deletionTimestamp"),
        "error": files.masked_ends(error.get("message"), MAX_TEXT),
    }


def _text(values, name, limit=253):
    return one_line(values.get(name) or "", limit)


def collect(api, ended):
    """Return (data, truncated).

    `ended(error)` returns whether an error may cut the answer short instead of costing all of it.
    """
    search = _Search(api, ended)
    search.until_cut(search.waiting.take_all)
    events = _Events(search.waiting.row_by_uid)
    search.until_cut(events.take_all)
    rows = events.sent()
    data = {
        "read": search.waiting.read,
        "pods": search.waiting.sent(),
        "events": rows,
        "nodes": [],
        "attachments": None,
        "unhealthy": None,
        "unhealthy_cut": False,
    }
    search.until_cut(lambda _api: search.fill_unhealthy(data))
    search.until_cut(lambda _api: search.fill_nodes(data))
    texts = [row["message"] for row in rows if row["reason"] in ATTACHING]
    if texts:
        volumes = frozenset(name for text in texts for name in _VOLUME.findall(text))
        search.until_cut(lambda _api: search.fill_attachments(data, volumes))
    return data, search.is_cut or search.waiting.is_cut or events.is_cut


class _Search:
    """A reading in parts, each of which may be the one that the time limit ends."""

    def __init__(self, api, ended):
        self.api, self.ended = api, ended
        self.waiting, self.is_cut = _Waiting(), False

    def until_cut(self, read):
        """Read a part, or note that it was cut."""
        try:
            read(self.api)
        except Exception as error:  # pylint: disable=broad-except
            if not self.ended(error):
                raise
            self.is_cut = True

    def fill_unhealthy(self, data):
        """Add which of the cluster's own pods fail their probes."""
        data["unhealthy"], data["unhealthy_cut"] = unhealthy(self.api)

    def fill_nodes(self, data):
        """Add the states of all pods of the nodes on which most pods wait.

        They only weigh a finding: the answer is whole without them.
        """
        counts = self.waiting.nodes
        names = sorted(counts, key=lambda name: (-counts[name], name))
        for name in names[:MAX_NODES]:
            row = {"node": name, "waiting": counts[name], "states": None}
            data["nodes"].append(row)
            row["states"] = on_node(self.api, name)

    def fill_attachments(self, data, volumes):
        """Add what the API has of volumes that are attached to nodes."""
        data["attachments"], is_cut = attachments(self.api, volumes)
        self.is_cut = self.is_cut or is_cut
