# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which events about Nodes, Services and volumes report a failure, and what they mean. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..evidence.answers.cluster.object_events import ObjectEvent, ObjectEvents
from ..evidence.document import ends, one_line
from . import ages, memory_kills
from .cluster import Cluster
from .moments import timestamp

QUOTED = 300
HOUR = 3600.0  # seconds: API servers may keep events for longer
# A controller tries again after five minutes at most, and reports the same no more often.
GOES_ON = 900.0
NODE = "Node"
# Who reports of a Node what it says by a known reason; others are detectors of problems.
OF_KUBERNETES = frozenset(
    (
        "",
        "attachdetach-controller",
        "cidrAllocator",
        "cloud-node-controller",
        "cloud-node-lifecycle-controller",
        "controllermanager",
        "kube-proxy",
        "kubelet",
        "node-controller",
        "route_controller",
        "taint-eviction-controller",
    )
)


@dataclass(frozen=True)
class Meaning:
    """What events of one reason mean.

    component: what such findings are about
    clause: what is wrong, after who reports it
    count: how many of them are a failure; fewer may be chance
    usual: texts of such events that tell of no failure of the cluster
    severity: where it is not the fault's own
    seconds: between the first and the last at least; those of one outage are closer
    """

    component: str
    clause: str
    advice: str
    count: int = 1
    usual: re.Pattern[str] | None = None
    severity: str | None = None
    seconds: float = 0.0


_MEMORY = (
    "see what takes the memory (kubectl top pods -A --sort-by=memory, systemd-cgtop -m), give pods"
    " limits of memory, and the kubelet systemReserved and kubeReserved"
)
_DISK = (
    "see what fills the disk (df -h, du -xsh /var/lib/* /var/log), and remove it; images that no"
    " container uses go by themselves (crictl rmi --prune)"
)
_RANGE = (
    "enlarge the range of pods of the controller manager (--cluster-cidr,"
    " --node-cidr-mask-size), or remove Nodes that are gone (kubectl delete node)"
)
# Of any reporter of a Node whose reason is not below.
DETECTED = Meaning(
    "detector",
    "a detector of problems of the node reports",
    "see what it names on the node: journalctl -k, systemctl --failed",
    severity="info",
)
_OF_NODES: Mapping[str, Meaning] = {
    "SystemOOM": Meaning(
        "memory", "the kernel killed a process of the machine for want of memory", _MEMORY
    ),
    "OOMKilling": Meaning(
        "memory",
        "the kernel killed a process for want of memory",
        _MEMORY,
        usual=re.compile(r"^Memory cgroup out of memory"),
    ),
    "EvictionThresholdMet": Meaning(
        "pressure",
        "the kubelet is short of memory, disk or process ids, and evicts pods",
        f"{_MEMORY}; {_DISK}",
    ),
    "FreeDiskSpaceFailed": Meaning(
        "disk", "the kubelet frees too little of the disk by removing images", _DISK, 2
    ),
    "ImageGCFailed": Meaning(
        "disk",
        "the kubelet does not remove images that no container uses",
        f"{_DISK}; see whether the runtime answers (crictl imagefsinfo)",
        2,
        re.compile(r"memory cache|stats initialization|invalid capacity 0|imageFs information"),
    ),
    "ContainerGCFailed": Meaning(
        "runtime",
        "the kubelet does not remove containers that have ended",
        "see whether the runtime answers (crictl ps, crictl pods) and what it logs",
        5,
    ),
    "FailedNodeAllocatableEnforcement": Meaning(
        "cgroups",
        "the kubelet cannot set the limits of the cgroups of pods or of the system",
        "see enforceNodeAllocatable, systemReserved, kubeReserved and their cgroups in the"
        " kubelet's configuration; cat /sys/fs/cgroup/cgroup.controllers",
        3,
    ),
    "MissingClusterDNS": Meaning(
        "kubelet",
        "the kubelet has no address of the cluster's DNS, so that pods have the node's servers",
        "set clusterDNS and clusterDomain in the kubelet's configuration (kubectl -n kube-system"
        " get service kube-dns), and restart it",
        3,
    ),
    "FailedToCreateRoute": Meaning(
        "routes",
        "the cloud controller cannot set the route to the pods of the Node",
        "see the log of the cloud controller manager, its rights in the cloud, and how many routes"
        " a table may have there; --configure-cloud-routes=false where the network needs none",
        2,
    ),
    "CIDRNotAvailable": Meaning("addresses", "no range of pods is left for the Node", _RANGE, 2),
    "CIDRAssignmentFailed": Meaning(
        "addresses", "the Node gets no range of pods", f"read the message; {_RANGE}", 2
    ),
    "DeletingNode": Meaning(
        "cloud",
        "the cloud controller deletes the Node again and again, because the cloud has no machine"
        " of that name",
        "compare the Node's name and spec.providerID with the machine in the cloud, and see the"
        " rights of the cloud controller manager there",
        2,
    ),
    "NodeNotReady": Meaning(
        "heartbeat",
        "the Node changes between Ready and NotReady",
        "see what the kubelet logs at those times (journalctl -u kubelet | grep -iE"
        " 'not ?ready|PLEG|lease'), the load of the machine, and its way to the API",
        5,
        seconds=600.0,
    ),
    "Rebooted": Meaning(
        "reboots",
        "the machine reboots again and again",
        "see who does it: last -x reboot shutdown; journalctl --list-boots; journalctl -b -1 -e",
        3,
    ),
    "NodePasswordValidationFailed": Meaning(
        "kubelet",
        "the server of k3s or RKE2 refuses the node's password",
        "where the machine was installed again under its name: kubectl -n kube-system delete secret"
        " NODE.node-password.k3s, and restart the agent",
        2,
    ),
}
_ALLOCATION = Meaning(
    "addresses",
    "the address or the port of a Service is not as the API servers' allocator has it",
    "see the log of kube-apiserver (repair), and --service-cluster-ip-range and"
    " --service-node-port-range, which each API server must have alike; delete and create the"
    " Service where it alone is named",
    3,
)
_BALANCER = Meaning(
    "load-balancers",
    "no load balancer is made for a Service",
    "read the message; see the log and the rights of the cloud controller manager, and the quota of"
    " the cloud",
    3,
)
_ENDPOINTS = Meaning(
    "endpoints",
    "the controller manager cannot write which pods a Service has, so that its traffic goes to"
    " those of before",
    "see the log of kube-controller-manager, webhooks and quotas that refuse it",
    5,
    re.compile(
        r"object has been modified|Operation cannot be fulfilled|being terminated|not found"
    ),
)
_OF_OBJECTS: Mapping[str, Meaning] = {
    **dict.fromkeys(
        (
            "ClusterIPAlreadyAllocated",
            "ClusterIPNotAllocated",
            "ClusterIPNotValid",
            "ClusterIPOutOfRange",
            "IPAddressNotAllocated",
            "IPAddressWrongReference",
            "PortAlreadyAllocated",
            "PortNotAllocated",
            "PortOutOfRange",
        ),
        _ALLOCATION,
    ),
    **dict.fromkeys(
        (
            "CreatingLoadBalancerFailed",
            "FailedBuildModel",
            "FailedDeployModel",
            "SyncLoadBalancerFailed",
            "UpdateLoadBalancerFailed",
        ),
        _BALANCER,
    ),
    "AllocationFailed": Meaning(
        "load-balancers",
        "no address is given to a Service of type LoadBalancer",
        "see the pools of addresses (kubectl get ipaddresspools -A), and how many Services have one"
        " of them",
        2,
    ),
    **dict.fromkeys(("FailedToUpdateEndpoint", "FailedToUpdateEndpointSlices"), _ENDPOINTS),
    "ProvisioningFailed": Meaning(
        "claims",
        "no volume is made for a claim",
        "read the message; see the log of the provisioner of that StorageClass (kubectl get"
        " storageclass, kubectl -n kube-system get pods), and its storage",
        3,
        re.compile(
            r"storageclass\S* \"[^\"]*\" not found|exceeded quota|InvalidArgument|is forbidden"
        ),
    ),
    "ExternalProvisioning": Meaning(
        "claims",
        "a claim waits for a provisioner that makes its volume and does not answer",
        "the message names it: see whether its pods run (kubectl get pods -A, kubectl get"
        " csidrivers), and what they log; the name must be the provisioner of the StorageClass",
        20,
    ),
    "VolumeResizeFailed": Meaning(
        "volumes", "a volume is not made larger", "read the message", 3, severity="info"
    ),
    "VolumeFailedDelete": Meaning(
        "volumes",
        "a volume is not deleted with its claim",
        "read the message; the volume stays, and may have to be removed by hand",
        3,
        severity="info",
    ),
    "ReplicaSetCreateError": Meaning(
        "webhooks",
        "the ReplicaSet of a Deployment is not made",
        "read the message: a webhook or a quota that refuses it, or an API server that cannot store"
        " it",
        2,
        re.compile(r"being terminated"),
    ),
}


@dataclass(frozen=True)
class Report:
    """Events that report a failure.

    when: how often and when it was, where the events themselves do not tell that
    """

    event: ObjectEvent
    meaning: Meaning
    when: str = ""

    @property
    def count(self) -> int:
        """Return how many of them are not the same again."""
        if self.when:
            return self.event.texts
        return self.event.count

    @property
    def message(self) -> str:
        """Return the text of the newest one."""
        return ends(one_line(self.event.message, 2000), QUOTED)

    @property
    def object(self) -> str:
        """Return kind and name of the object of the newest one."""
        name = one_line(self.event.name, 253)
        if self.event.namespace and self.event.kind != NODE:
            name = f"{one_line(self.event.namespace, 63)}/{name}"
        return f"{one_line(self.event.kind, 63)} {name}"


def of_nodes(cluster: Cluster) -> tuple[Report, ...]:
    """Return what events of the last hour report of Nodes."""
    rows = (row for row in cluster.typed(ObjectEvents).items if row.kind == NODE)
    reports = (_report(row, _of_node(row)) for row in rows if _is_since(cluster, row, HOUR))
    compared = (_compared(cluster, report) for report in reports if report is not None)
    return tuple(report for report in compared if report is not None)


def _compared(cluster: Cluster, report: Report) -> Report | None:
    """Return a report with what the kernel's log says of it, None where it is over by that."""
    if report.event.reason not in memory_kills.REASONS:
        return report
    host = cluster.node_hosts.get(report.event.name)
    confirmation = memory_kills.compare(report.event, None if host is None else host.memory_kills)
    return None if confirmation.is_over else replace(report, when=confirmation.when)


def of_objects(cluster: Cluster) -> tuple[Report, ...]:
    """Return what controllers report of Services and volumes, and go on to."""
    rows = (row for row in cluster.typed(ObjectEvents).items if row.kind != NODE)
    reports = [
        _report(row, _OF_OBJECTS.get(row.reason))
        for row in rows
        if _is_since(cluster, row, GOES_ON)
    ]
    return tuple(report for report in reports if report is not None)


def _of_node(row: ObjectEvent) -> Meaning | None:
    if (row.reason, row.component) == ("NodeNotReady", "kubelet"):
        return None  # each kubelet says so when it starts
    meaning = _OF_NODES.get(row.reason)
    if meaning is None and row.type == "Warning" and row.component not in OF_KUBERNETES:
        return DETECTED
    return meaning


def _report(row: ObjectEvent, meaning: Meaning | None) -> Report | None:
    if meaning is None or row.count < meaning.count or _lasted(row) < meaning.seconds:
        return None
    if meaning.usual is not None and meaning.usual.search(row.message):
        return None
    return Report(row, meaning)


def _lasted(row: ObjectEvent) -> float:
    """Return the seconds between the first and the last event; many where a time is not known."""
    first, last = timestamp(row.first), timestamp(row.last)
    if first is None or last is None:
        return HOUR
    return (last - first).total_seconds()


def _is_since(cluster: Cluster, row: ObjectEvent, seconds: float) -> bool:
    """Tell whether the newest event is so young; where no age is known, it is."""
    age = ages.age(cluster, row.last, "object_events")
    return age is None or age < seconds
