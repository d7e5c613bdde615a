# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of the API: identity, conditions, taints and leases.

The rows are small, because a cluster may have thousands of nodes: they leave out a condition that
is well, except Ready, whose time counts.
"""

import json
import re

from ...kubeapi.client import ApiError, dicts
from ...shared.cordon_annotation import cordon_of
from . import rejected

MAX_TAINTS, MAX_CONDITIONS, MAX_TEXT, MAX_MESSAGE = 50, 20, 320, 800
# The leases of more nodes than these are megabytes, for a time that the clocks of hosts tell too.
MAX_LEASED = 2000
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
# The conditions of a kubelet, the network plugin and the cloud; problem detectors add others.
CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
MACHINE = ("cpu", "memory")
PLUGIN_ADDRESSES = ("projectcalico.org/IPv4Address", "flannel.alpha.coreos.com/public-ip")
TUNNEL = "flannel.alpha.coreos.com/backend-data"
MAC = re.compile(r"^[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}\Z")
MAX_VNI = 1 << 24
MAX_CIDRS = 4
CONTROL_PLANE_ROLES = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/controlplane",
)
LABEL = re.compile(
    r"^(kubernetes\.io/hostname|node-role\.kubernetes\.io/.*|kubernetes\.io/role"
    r"|(topology|failure-domain\.beta)\.kubernetes\.io/(zone|region)"
    r"|nvidia\.com/mig\.config\.state)$"
)


def node_of(item):
    """Return the identity and the state of a Node."""
    meta = item.get("metadata") or {}
    status = item.get("status") or {}
    info, labels = status.get("nodeInfo") or {}, meta.get("labels") or {}
    return {
        "name": meta.get("name"),
        "uid": meta.get("uid"),
        "machine_id": info.get("machineID"),
        "system_uuid": info.get("systemUUID"),
        "boot_id": info.get("bootID"),
        "kubelet_version": info.get("kubeletVersion"),
        "runtime_version": info.get("containerRuntimeVersion"),
        "addresses": [
            {"type": address.get("type"), "address": address.get("address")}
            for address in status.get("addresses") or []
        ],
        "control_plane": _is_control_plane(labels),
        "labels": {name: value for name, value in labels.items() if LABEL.match(name)},
        "ready": _ready(status),
        "unschedulable": bool((item.get("spec") or {}).get("unschedulable")),
        "cordon": cordon_of(item),
        "created": meta.get("creationTimestamp"),
        "taints": taints_of(item),
        "conditions": conditions_of(item),
        "devices": rejected.resources_of(item),
        "capacity": machine_of(status),
        "pod_cidrs": pod_cidrs_of(item),
        "plugin_addresses": plugin_addresses_of(meta),
        "vtep": vtep_of(meta),
    }


def pod_cidrs_of(item):
    """Return the networks that a Node has for its pods; releases before 1.16 have one at most."""
    spec = item.get("spec") or {}
    cidrs = spec.get("podCIDRs") or [spec.get("podCIDR")]
    return [str(cidr)[:60] for cidr in cidrs[:MAX_CIDRS] if cidr]


def plugin_addresses_of(meta):
    """Return {annotation: address} of the addresses by which a network plugin reaches a Node."""
    annotations = meta.get("annotations") or {}
    return {name: str(annotations[name])[:60] for name in PLUGIN_ADDRESSES if annotations.get(name)}


def vtep_of(meta):
    """Return {vni, mac} of the end of flannel's tunnel on a Node; None without one."""
    text = (meta.get("annotations") or {}).get(TUNNEL)
    try:
        data = json.loads(text[:MAX_TEXT])
    except (TypeError, ValueError):
        return None
    if not isinstance(data, dict):
        return None
    vni, mac = data.get("VNI"), data.get("VtepMAC")
    is_number = isinstance(vni, int) and not isinstance(vni, bool)
    if not is_number or not 0 <= vni < MAX_VNI or not MAC.match(str(mac)):
        return None
    return {"vni": vni, "mac": mac}


def machine_of(status):
    """Return what a kubelet counted of its machine: cpu in millicores, memory in bytes."""
    amounts = rejected.quantities(status.get("capacity") or {})
    return {name: amounts[name] for name in MACHINE if name in amounts}


def capacity_of(item, node):
    """Return what decides which pods fit on a Node."""
    allocatable = (item.get("status") or {}).get("allocatable") or {}
    room = None
    if str(allocatable.get("pods")).isdigit():
        room = int(allocatable["pods"])
    return {
        "name": node["name"],
        "labels": (item.get("metadata") or {}).get("labels") or {},
        "taints": node["taints"],
        "room": room,
        "allocatable": rejected.quantities(allocatable),
    }


def _is_control_plane(labels):
    if any(role in labels for role in CONTROL_PLANE_ROLES):
        return True
    return labels.get("kubernetes.io/role") == "master"


def _ready(status):
    for condition in status.get("conditions") or []:
        if condition.get("type") == "Ready":
            return condition.get("status")
    return "Unknown"


def taints_of(item):
    """Return [{key, value, effect, added}] of a Node, without a value that the API leaves out."""
    taints = []
    for raw in dicts((item.get("spec") or {}).get("taints"))[:MAX_TAINTS]:
        taint = {
            name: str(raw[name])[:MAX_TEXT]
            for name in ("key", "value", "effect")
            if raw.get(name) is not None
        }
        if raw.get("timeAdded"):
            taint["added"] = str(raw["timeAdded"])[:40]
        taints.append(taint)
    return taints


def conditions_of(item):
    """Return [{type, status, reason, since}]: Ready, and each other condition that is not False.

    A Ready that is False has the message of its kubelet.
    """
    conditions = []
    for raw in dicts((item.get("status") or {}).get("conditions"))[:MAX_CONDITIONS]:
        is_ready, is_false = raw.get("type") == "Ready", raw.get("status") == "False"
        if raw.get("type") not in CONDITIONS or (is_false and not is_ready):
            continue
        conditions.append(_condition(raw))
        if is_false:
            conditions[-1]["message"] = str(raw.get("message") or "")[:MAX_MESSAGE]
    return conditions


def _condition(raw):
    return {
        "type": raw["type"],
        "status": raw.get("status"),
        "reason": str(raw.get("reason") or "")[:80],
        "since": str(raw.get("lastTransitionTime") or "")[:40] or None,
    }


def leased(api, nodes):
    """Add the renew time and the duration of its lease to each of these nodes.

    The time is by the clock of the node's kubelet. No node has them where the list of leases
    fails, or where there are more nodes than MAX_LEASED.
    """
    if len(nodes) > MAX_LEASED:
        return nodes
    by_name = {node["name"]: node for node in nodes}
    leases = {}
    try:
        for item in api.items(LEASES):
            leases[(item.get("metadata") or {}).get("name")] = item.get("spec") or {}
    except ApiError:
        return nodes
    for name, spec in leases.items():
        if name in by_name:
            by_name[name].update(_lease(spec))
    return nodes


def _lease(spec):
    renewed, seconds = spec.get("renewTime"), spec.get("leaseDurationSeconds")
    lease = {"lease": None, "lease_duration_s": None}
    if renewed:
        lease["lease"] = str(renewed)[:40]
    if isinstance(seconds, int):
        lease["lease_duration_s"] = seconds
    return lease
