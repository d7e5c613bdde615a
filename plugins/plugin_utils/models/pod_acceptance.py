# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence that a kubelet runs by now what it rejected before."""

from __future__ import annotations

from ..parsers.admission_message import DEVICE_KINDS
from .devices import Node, Pod


def accepted_since(node: Node, pod: Pod) -> bool:
    """Tell whether the node runs a pod that its kubelet took later and that asks for no less."""
    return any(_is_later(other, pod) and _asks_alike(other, pod) for other in node.pods)


def served_again(node: Node, pod: Pod) -> bool:
    """Tell whether the devices are healthy that a kubelet missed when it started again."""
    healthy = node.resources.get(pod.refusal.resource or "", (0, 0))[1]
    return bool(node.admitted_again(pod)) and healthy > 0


def _is_later(other: Pod, pod: Pod) -> bool:
    """Tell whether a pod runs that its kubelet took after it had rejected the other."""
    if other.started is None or pod.came is None or other.deleted is not None:
        return False
    return other.runs and other.started > pod.came


def _asks_alike(other: Pod, pod: Pod) -> bool:
    """Tell whether what rejected a pod would have rejected this one too."""
    if pod.owner_uid is not None and other.owner_uid == pod.owner_uid:
        return True
    if pod.refusal.kind in ("resource", *DEVICE_KINDS):
        resource = pod.refusal.resource or ""
        return 0 < pod.requests.get(resource, 0) <= other.requests.get(resource, 0)
    if pod.refusal.kind in ("cpu", "smt", "memory", "topology"):
        return (other.qos, other.requests) == (pod.qos, pod.requests)
    return False
