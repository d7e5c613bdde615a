# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM9xx, faults of the run itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..models import node_hosts
from ..models.cluster import Cluster, Host
from ..models.result import Missing, Proof
from .base import Fault, Hit, Outcome
from .control_plane import manifests, members
from .resource_managers import state_files as pinning_state


def _left_behind(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM903: of whatever kind."""
    lent = pinning_state.lent(host, document)
    for outcome in manifests.left_behind(host, document):
        yield outcome._replace(hits=(*outcome.hits, lent), applies=True) if lent else outcome


def not_a_node(cluster: Cluster) -> Iterator[Outcome]:
    """KM905: a machine that no API names as a Node, and that has nothing of Kubernetes."""
    strange = {host.host for host in node_hosts.not_nodes(cluster)}
    named = {host.host for host in cluster.node_hosts.values() if host is not None}
    for host in cluster.hosts:
        if host.host in strange:
            yield Outcome((_stranger(host),), host=host.host)
            continue
        known = host.host in named or node_hosts.is_node(host) is not None
        owed = (
            ()
            if known
            else host.missing("installer", absent_is_answer=False)
            or (Missing(host.host, "installer", "not_asked"),)
        )
        yield Outcome((), owed, host=host.host)


def _stranger(host: Host) -> Hit:
    asked = ", although the inventory has it in a group of the cluster" if host.groups else ""
    return Hit(
        f"{host.host} does not look like a Kubernetes node: no kubelet process, unit, package or"
        f" /var/lib/kubelet{asked}",
        (Proof("file", host.host, path="/var/lib/kubelet", text="does not exist"),),
        "name the hosts of the cluster with -i, kubemend_hosts or the inventory's groups; nothing"
        " else was judged of this machine",
        host.host,
    )


FAULTS = (
    Fault(
        code="KM901",
        title="Host did not answer",
        severity="warning",
        applies="every host that the run asked",
        explanation=(
            "The host could not be reached, or gave no evidence (no usable Python, refused"
            " privileges, an inventory with which Ansible cannot begin: a connection plugin that is"
            " not there, a variable that cannot be evaluated). What runs there is unknown, and a"
            " fault of the cluster cannot be called clear without it: components go on running on a"
            " host that has lost only its ssh."
        ),
        remedy=(
            "Bring the host or its ssh back, or put the inventory right; the finding's reason says"
            " what failed."
        ),
        risk=0,
        node=manifests.unanswered,
    ),
    Fault(
        code="KM902",
        title="Interrupted change",
        severity="critical",
        applies="hosts that a repairing run has changed",
        explanation=(
            "A run was killed between the intent and the end of a change, or between a change and"
            " its proof: the file is as it was or as it was to be, never half, but nobody has"
            " looked whether its component came back. Nothing else changes that file until this is"
            " settled."
        ),
        remedy="Finish or undo it: the next repairing run does, first of all.",
        risk=2,
        needs=("journal",),
        node=manifests.interrupted,
    ),
    Fault(
        code="KM903",
        title="Our cordon or log level left behind",
        severity="warning",
        applies=(
            "hosts from which a capture raised log levels, nodes that a run cordoned, and kubelets"
            " that a reset lent arguments"
        ),
        explanation=(
            "capture_logs raises levels for a limited time, and a service on the node that raised"
            " them puts them back even when the controller is gone. Here it did not: the service"
            " was removed, or what it asks (an API server, the component itself) never answered, or"
            " somebody edited the file that gives the level meanwhile, whose bytes then are his. A"
            " raised level costs disk and time, and above 7 it logs the bodies of requests. A node"
            " that a run drains is cordoned with an annotation (kubemend.io/cordon) that names the"
            " run, and takes pods again once it is proven well: where its run ended before that,"
            " the cordon stays, and this is it. A cordon without the annotation is somebody else's"
            " and never judged here. Arguments that a reset lent a kubelet for its drain (a drop-in"
            " under /run) are named where no fault calls for that reset any more."
        ),
        remedy=(
            "Put it back: the next repairing run does, or revert with the capture's run id. It"
            " restarts nothing but what was raised by a restart (risk 2). Where the file was edited"
            " meanwhile, take the argument out by hand: the finding names it. A cordon is taken"
            " away once its node is ready."
        ),
        risk=1,
        needs=("journal",),
        node=_left_behind,
        cluster=manifests.cordon_left,
    ),
    Fault(
        code="KM904",
        title="Worker was not audited",
        severity="info",
        applies="every cluster",
        explanation=(
            "The API lists a worker that no host of the run is, by its name or by an address. What"
            " is wrong there is not known, and no fault of that node is judged. KM112 says the same"
            " of members of the control plane."
        ),
        remedy=(
            "Add the host to the inventory and audit again, or delete its Node if the machine is"
            " gone."
        ),
        risk=0,
        cluster_needs=("nodes",),
        cluster=members.unaudited,
    ),
    Fault(
        code="KM905",
        title="Not a Kubernetes node",
        severity="warning",
        applies="every host that the run asked",
        explanation=(
            "The machine has no process, unit, package or folder of Kubernetes, neither of a"
            " kubelet nor of k3s, RKE2, k0s, microk8s and the like, no etcd and no journal of a"
            " repair, and no API or etcd names it. An inventory with a wrong address leads to this,"
            " and so does an audit of localhost. Nothing else is judged of it and nothing is"
            " planned. A node whose kubelet is broken, or whose unit was removed, still has some of"
            " these."
        ),
        remedy="Name the hosts of the cluster with -i, kubemend_hosts or the inventory's groups.",
        risk=0,
        needs=("kubelet", "installer"),
        cluster=not_a_node,
    ),
)
