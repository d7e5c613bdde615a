# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of the last hour about Nodes, Services and volumes, which tell what fails without a log.

Events of pods are those of pod_start. The controller judges them.
"""

from ...shared.text import one_line
from . import pod
from .pod_start import COMBINED, folded

MAX_READ, MAX_ROWS, MAX_SENT, MAX_OBJECTS, MAX_TEXT = 5000, 500, 80, 1000, 600
NODE, CLAIM = "Node", "PersistentVolumeClaim"
# Each list is short: most events are of pods. Of some reasons the type is Normal.
SELECTORS = (
    f"involvedObject.kind={NODE}",
    f"involvedObject.kind={CLAIM}",
    "type=Warning,involvedObject.kind!=Pod,"
    f"involvedObject.kind!={NODE},involvedObject.kind!={CLAIM}",
)
# Of a Node, where they are no warning.
NODE_REASONS = frozenset(
    (
        "CIDRAssignmentFailed",
        "CIDRNotAvailable",
        "DeletingNode",
        "NodeNotReady",
    )
)
REASONS = {
    CLAIM: frozenset(("ExternalProvisioning", "ProvisioningFailed", "VolumeResizeFailed")),
    "PersistentVolume": frozenset(("VolumeFailedDelete",)),
    "Deployment": frozenset(("ReplicaSetCreateError",)),
    "Service": frozenset(
        (
            "AllocationFailed",
            "ClusterIPAlreadyAllocated",
            "ClusterIPNotAllocated",
            "ClusterIPNotValid",
            "ClusterIPOutOfRange",
            "CreatingLoadBalancerFailed",
            "FailedBuildModel",
            "FailedDeployModel",
            "FailedToUpdateEndpoint",
            "FailedToUpdateEndpointSlices",
            "IPAddressNotAllocated",
            "IPAddressWrongReference",
            "PortAlreadyAllocated",
            "PortNotAllocated",
            "PortOutOfRange",
            "SyncLoadBalancerFailed",
            "UpdateLoadBalancerFailed",
        )
    ),
}
# What is usual: at each start of a kubelet, or of a machine's settings.
USUAL = frozenset(
    (
        "CgroupV1",
        "CheckLimitsForResolvConf",
        "InvalidDiskCapacity",
        "PossibleMemoryBackedVolumesOnDisk",
    )
)


def collect(api, ended):
    """Return ({items}, whether the lists were cut).

    A row is {kind, reason, type, component, namespace, name, message, objects, texts, count, first,
    last} of events with the same text but for names and numbers; of a Node, of that Node and
    reporter alone.

    namespace, name: of the newest one's object; objects, texts: how many objects and different
    messages there are. `ended(error)` returns whether an error may cut the answer short instead of
    costing all of it.
    """
    rows, is_cut = {}, False
    for selector in SELECTORS:
        try:
            is_cut = _take_all(api, selector, rows) or is_cut
        except Exception as error:  # pylint: disable=broad-except
            if not ended(error):
                raise
            is_cut = True
    items = sorted(rows.values(), key=lambda row: (row["last"] or "", row["count"]), reverse=True)
    for row in items:
        row["objects"], row["texts"] = len(row["objects"]), len(row["texts"])
    return {"items": items[:MAX_SENT]}, is_cut or len(items) > MAX_SENT


def _take_all(api, selector, rows):
    """Add the events of a list to rows; return whether not all of them were taken."""
    for number, item in enumerate(api.items("/api/v1/events", {"fieldSelector": selector})):
        if number >= MAX_READ or len(rows) >= MAX_ROWS:
            return True
        if _is_kept(item):
            _take(rows, item)
    return False


def _is_kept(item):
    about, reason = item.get("involvedObject") or {}, item.get("reason")
    if about.get("kind") != NODE:
        return reason in REASONS.get(about.get("kind") or "", ())
    return reason in NODE_REASONS or (item.get("type") == "Warning" and reason not in USUAL)


def _take(rows, item):
    about, event = item.get("involvedObject") or {}, pod.event_of(item)
    kind, name = one_line(about.get("kind"), 63), _text(about.get("name"), 253)
    namespace, text = _text(about.get("namespace"), 63), _message(event)
    cause = folded(text, name, namespace, about.get("uid"))
    key = (kind, event["reason"], cause)
    if kind == NODE:
        # A kubelet and a controller report the same words of different moments.
        key = (*key, name, _text(event["component"], 80))
    if key not in rows:
        rows[key] = _new(kind, event["reason"], item.get("type"))
    row = rows[key]
    row["count"] += event["count"]
    if len(row["objects"]) < MAX_OBJECTS:
        row["objects"].add((namespace, name))
    if len(row["texts"]) < MAX_OBJECTS:
        row["texts"].add(hash(text))
    row["first"] = min(filter(None, (row["first"], event["first"])), default=None)
    if _text(event["last"], 40) >= _text(row["last"], 40):
        component = _text(event["component"], 80)
        row.update(
            last=event["last"], message=text, namespace=namespace, name=name, component=component
        )


def _new(kind, reason, event_type):
    return {
        "kind": kind,
        "reason": one_line(reason, 80),
        "type": _text(event_type, 20),
        "objects": set(),
        "texts": set(),
        "count": 0,
        "first": None,
        "last": None,
    }


def _message(event):
    """Return the message of an event without what is put before one that is repeated."""
    text = _text(event["message"], MAX_TEXT)
    return text[len(COMBINED) :] if text.startswith(COMBINED) else text


def _text(value, limit):
    return one_line(value or "", limit)
