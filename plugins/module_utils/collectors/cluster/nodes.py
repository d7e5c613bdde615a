# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API says of a node's health: its taints, its conditions, and when its lease was renewed.

Kept small, because a cluster may have thousands of nodes: a condition that is well says nothing,
but for Ready, whose time does.
"""

from ...kubeapi.client import ApiError, dicts

MAX_TAINTS, MAX_CONDITIONS, MAX_TEXT, MAX_MESSAGE = 50, 20, 320, 800
# Of more nodes than these the leases are not asked for: they are megabytes then, for a time that
# the clocks of hosts tell too.
MAX_LEASED = 2000
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
# What a kubelet, the network plugin or the cloud says; problem detectors add others, which are
# theirs.
CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


def taints_of(item):
    """[{key, value, effect, added}] of a Node.

    A value that is not set is left out as the API leaves it out.
    """
    found = []
    for one in dicts((item.get("spec") or {}).get("taints"))[:MAX_TAINTS]:
        taint = {
            name: str(one[name])[:MAX_TEXT]
            for name in ("key", "value", "effect")
            if one.get(name) is not None
        }
        if one.get("timeAdded"):
            taint["added"] = str(one["timeAdded"])[:40]
        found.append(taint)
    return found


def conditions_of(item):
    """[{type, status, reason, since}]: Ready as it is, the others where they are not False.

    With its message a Ready that is False, as its kubelet said it.
    """
    found = []
    for one in dicts((item.get("status") or {}).get("conditions"))[:MAX_CONDITIONS]:
        if one.get("type") in CONDITIONS and (
            one["type"] == "Ready" or one.get("status") != "False"
        ):
            found.append(
                {
                    "type": one["type"],
                    "status": one.get("status"),
                    "reason": str(one.get("reason") or "")[:80],
                    "since": str(one.get("lastTransitionTime") or "")[:40] or None,
                }
            )
            if one["type"] == "Ready" and one.get("status") == "False":
                found[-1]["message"] = str(one.get("message") or "")[:MAX_MESSAGE]
    return found


def leased(api, nodes):
    """These nodes, each with when its kubelet renewed its lease, by its own clock, and for how
    long. One list; where it fails, none is told.
    """
    if len(nodes) > MAX_LEASED:
        return nodes
    known = {node["name"]: node for node in nodes}
    renewed = {}
    try:
        for item in api.items(LEASES):
            renewed[(item.get("metadata") or {}).get("name")] = item.get("spec") or {}
    except ApiError:
        return nodes
    for name, spec in renewed.items():
        if name in known:
            at, seconds = spec.get("renewTime"), spec.get("leaseDurationSeconds")
            known[name].update(
                lease=str(at)[:40] if at else None,
                lease_duration_s=seconds if isinstance(seconds, int) else None,
            )
    return nodes
