# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report a ready Node whose condition NetworkUnavailable stays true, and which program sets it.

Only the program that set the condition sets it to false again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...models import ages, pod_roles, taints
from ...models.api_node import NodeView
from ...models.cluster import Cluster
from ...models.result import EvidenceRef
from ...models.taint_catalogue import NETWORK_UNAVAILABLE
from ..base import Detection
from ..pods import system_pods
from . import wording

CONDITION = "NetworkUnavailable"
# Network plugins and route controllers set it to false within a minute or two of a start.
LONGEST_SECONDS = 600.0


class _Setter(NamedTuple):
    """The program that sets the condition: its role, what the condition means and what to do."""

    role: str
    means: str
    advice: str


_ROUTES = _Setter(
    pod_roles.CLOUD,
    "the route controller of the cloud made no route to the pods of that node",
    "see the log of the cloud controller manager (without one, of kube-controller-manager) and the"
    " events FailedToCreateRoute: the account lacks rights in the cloud, the route table is full or"
    " not found, or the Node has no spec.podCIDR. Where the network plugin needs no routes of the"
    " cloud, give that program --configure-cloud-routes=false, then delete the pods of the network"
    " plugin, which set the condition to false",
)
_PLUGIN = _Setter(
    "network",
    "the network plugin of that node set it, and did not set it to false since",
    "see the pod of the network plugin on that node: it sets the condition to false once it works."
    " Where the plugin that set it was removed, set it by kubectl edit node NODE"
    " --subresource=status (1.24 and newer) to False",
)
_SETTERS = {"NoRouteCreated": _ROUTES}


def detections(cluster: Cluster, view: NodeView) -> Iterator[Detection]:
    """Yield a Node that is ready, and that the condition NetworkUnavailable keeps pods off."""
    condition = view.condition(CONDITION)
    if condition is None or condition.status != "True" or view.ready != "True":
        return
    age = ages.age(cluster, condition.since, "nodes")
    if age is None or age < LONGEST_SECONDS:
        return
    setter = _SETTERS.get(condition.reason or "", _PLUGIN)
    reason = taints.reason_of(condition)
    taint = taints.Taint(NETWORK_UNAVAILABLE, effect=taints.NO_SCHEDULE)
    text = f"{CONDITION}: True{wording.since(condition.since)}{reason}"
    yield Detection(
        f"the condition {CONDITION} is true{wording.since(condition.since)}{reason}, although the"
        f" node is ready: {setter.means}. Pods without a toleration of the taint {taint} do not"
        " start there",
        (EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=text),),
        f"{setter.advice}. Removing the taint does not help: the controller sets it again while the"
        " condition is true",
        host=wording.host_name(view),
        node=view.name,
        because=_because(cluster, setter, view),
    )


def _because(cluster: Cluster, setter: _Setter, view: NodeView) -> tuple[str, ...]:
    """Return KM550 where the pod that sets the condition ends again and again."""
    if setter is _ROUTES:
        return system_pods.because(cluster, setter.role)
    return system_pods.because(cluster, setter.role, view.name)
