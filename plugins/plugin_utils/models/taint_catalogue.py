# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of taints that have an owner: literals only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Owner:
    """What is known of a taint.

    kind: lifecycle, cloud, autoscaler, administrator, kubeadm, network, storage, user or unknown;
    who: by name; means: what the taint stands for; removed_by: what makes it go; never: what must
    not remove it; fence: the node was taken out on purpose, so that no repair may bring it back;
    startup: a new node has it until it is initialised.
    """

    kind: str
    who: str
    means: str
    removed_by: str
    never: str
    fence: bool = False
    startup: bool = False


CORDON = "node.kubernetes.io/unschedulable"
NETWORK_UNAVAILABLE = "node.kubernetes.io/network-unavailable"
# The conditions of which the node lifecycle controller makes taints.
CONDITIONS = {
    "node.kubernetes.io/not-ready": "Ready",
    "node.kubernetes.io/unreachable": "Ready",
    "node.kubernetes.io/memory-pressure": "MemoryPressure",
    "node.kubernetes.io/disk-pressure": "DiskPressure",
    "node.kubernetes.io/pid-pressure": "PIDPressure",
    NETWORK_UNAVAILABLE: "NetworkUnavailable",
}
BOTH, SCHEDULE, PREFER = (
    frozenset({"NoSchedule", "NoExecute"}),
    frozenset({"NoSchedule"}),
    frozenset({"PreferNoSchedule"}),
)
ANY = BOTH | PREFER
LIFECYCLE = "the node lifecycle controller in the leading kube-controller-manager"
BY_HAND = "an operator or a patch: the controller puts it back within its period (5 s)"


def _condition(means: str, removed_by: str) -> Owner:
    return Owner("lifecycle", LIFECYCLE, means, removed_by, BY_HAND)


def _pressure(shortage: str, spare: str) -> Owner:
    return _condition(
        f"the kubelet reports {shortage}",
        f"the controller, once the kubelet no longer reports it: {spare}",
    )


def _role(role: str) -> Owner:
    return Owner(
        "kubeadm",
        "kubeadm, or the installer in its stead",
        f"the node is {role}: workloads stay off it",
        "the administrator who wants workloads there",
        "any repair: pods of users would land on the control plane",
    )


def _autoscaler(means: str, removed_by: str) -> Owner:
    return Owner(
        "autoscaler",
        "the cluster autoscaler",
        means,
        removed_by,
        "any repair: pods would land on a node that is about to be deleted",
        fence=True,
    )


def _karpenter(means: str, removed_by: str, fence: bool = False) -> Owner:
    return Owner(
        "autoscaler", "Karpenter", means, removed_by, "any repair: Karpenter counts on it", fence
    )


def _agent(kind: str, owner: str, agent: str) -> Owner:
    return Owner(
        kind,
        owner,
        f"{agent} is not ready on the node",
        f"{owner}, once its pod on the node is ready",
        "any repair: pods would start without it",
        startup=True,
    )


# (key, the effects that its owner sets, owner). A key with another effect is another owner's.
OWNED: tuple[tuple[str, frozenset[str], Owner], ...] = (
    (
        "node.kubernetes.io/not-ready",
        BOTH,
        _condition(
            "the kubelet says that the node is not ready, or the node is new",
            "the controller, once the kubelet posts Ready (5 to 10 s later), while a controller"
            " manager leads",
        ),
    ),
    (
        "node.kubernetes.io/unreachable",
        BOTH,
        _condition(
            "the kubelet has not posted a status for the grace period (40 s, from 1.32 on 50 s)",
            "the controller, once the kubelet posts Ready (5 to 10 s later), while a controller"
            " manager leads",
        ),
    ),
    (
        "node.kubernetes.io/memory-pressure",
        SCHEDULE,
        _pressure("memory pressure", "end what takes the memory"),
    ),
    (
        "node.kubernetes.io/disk-pressure",
        SCHEDULE,
        _pressure("that space or inodes of its disk run out", "make room"),
    ),
    (
        "node.kubernetes.io/pid-pressure",
        SCHEDULE,
        _pressure("that process ids run out", "end what forks"),
    ),
    (
        NETWORK_UNAVAILABLE,
        SCHEDULE,
        _condition(
            "the condition NetworkUnavailable is true",
            "the controller, once the network plugin or the cloud's route controller sets the"
            " condition to false",
        ),
    ),
    (
        CORDON,
        SCHEDULE,
        Owner(
            "administrator",
            f"{LIFECYCLE} sets it because the node was cordoned",
            "the node is cordoned (spec.unschedulable)",
            "kubectl uncordon by the one who cordoned it; the controller takes the taint away then",
            "a patch of the taint, which comes back; any repair: it is another operator's cordon",
            fence=True,
        ),
    ),
    (
        "node.kubernetes.io/out-of-service",
        BOTH,
        Owner(
            "administrator",
            "an administrator, or a fencing operator or cloud provider in their stead",
            "the node is declared dead: its pods are deleted by force and its volumes detached"
            " (1.24 and newer)",
            "the one who set it, once the machine is known to be off or restarted",
            "any repair: pods may still run there and write to volumes in use elsewhere",
            fence=True,
        ),
    ),
    (
        "node.cloudprovider.kubernetes.io/uninitialized",
        SCHEDULE,
        Owner(
            "cloud",
            "the kubelet sets it with --cloud-provider=external",
            "the cloud controller manager has not initialised the node",
            "the cloud controller manager, once it knows the instance: look at its pods and its"
            " credentials",
            "an operator: the node would have neither address nor provider id",
            startup=True,
        ),
    ),
    (
        "node.cloudprovider.kubernetes.io/shutdown",
        SCHEDULE,
        Owner(
            "cloud",
            "the node lifecycle controller of the cloud controller manager",
            "the cloud says that the instance is shut down",
            "that controller, once the instance runs",
            "any repair: an operator or the cloud stopped the machine",
            fence=True,
        ),
    ),
    ("node-role.kubernetes.io/control-plane", ANY, _role("of the control plane")),
    ("node-role.kubernetes.io/master", ANY, _role("of the control plane (the key up to 1.24)")),
    ("node-role.kubernetes.io/controlplane", ANY, _role("of the control plane (as RKE spells it)")),
    ("node-role.kubernetes.io/etcd", ANY, _role("a member of etcd")),
    (
        "CriticalAddonsOnly",
        BOTH,
        Owner(
            "kubeadm",
            "the installer (RKE2, k3s), a cloud or an administrator",
            "the node is for the cluster's own add-ons: workloads stay off it",
            "the administrator who wants workloads there",
            "any repair: pods of users would run next to the cluster's own",
        ),
    ),
    (
        "ToBeDeletedByClusterAutoscaler",
        SCHEDULE,
        _autoscaler(
            "the node is being drained to be deleted",
            "the autoscaler, if it gives the deletion up or is started again",
        ),
    ),
    (
        "DeletionCandidateOfClusterAutoscaler",
        PREFER,
        _autoscaler(
            "the node is a candidate for deletion, and pods rather go elsewhere",
            "the autoscaler, once the node is needed",
        ),
    ),
    (
        "karpenter.sh/disrupted",
        ANY,
        _karpenter(
            "the node is being replaced or deleted", "Karpenter, if it gives that up", fence=True
        ),
    ),
    (
        "karpenter.sh/disruption",
        ANY,
        _karpenter(
            "the node is being replaced or deleted (up to 0.37)",
            "Karpenter, if it gives that up",
            fence=True,
        ),
    ),
    (
        "karpenter.sh/unregistered",
        ANY,
        _karpenter(
            "Karpenter has not registered the node", "Karpenter, once its NodeClaim knows the node"
        ),
    ),
    (
        "node.cluster.x-k8s.io/uninitialized",
        ANY,
        Owner(
            "cloud",
            "Cluster API",
            "Cluster API has not initialised the node",
            "Cluster API, once the Machine knows the node",
            "any repair: labels would be missing",
            startup=True,
        ),
    ),
    (
        "node.cilium.io/agent-not-ready",
        ANY,
        _agent("network", "the Cilium operator", "Cilium's agent"),
    ),
    (
        "ebs.csi.aws.com/agent-not-ready",
        ANY,
        _agent("storage", "the EBS CSI driver", "the CSI driver"),
    ),
    (
        "efs.csi.aws.com/agent-not-ready",
        ANY,
        _agent("storage", "the EFS CSI driver", "the CSI driver"),
    ),
    (
        "cloud.google.com/impending-node-termination",
        ANY,
        Owner(
            "cloud",
            "Google's node termination handler",
            "the machine is about to be taken away",
            "the cloud, with the machine",
            "any repair: the machine ends within seconds",
            fence=True,
        ),
    ),
)

# (beginning of a key, owner), for what is in no line above
PREFIXES: tuple[tuple[str, Owner], ...] = (
    (
        "startup-taint.cluster-autoscaler.kubernetes.io/",
        Owner(
            "administrator",
            "a component of this cluster, by the autoscaler's naming",
            "the node is not yet ready for workloads",
            "the component that it is named after",
            "any repair: pods would start too early",
        ),
    ),
    (
        "ignore-taint.cluster-autoscaler.kubernetes.io/",
        Owner(
            "administrator",
            "a component of this cluster, by the autoscaler's naming",
            "the node is not ready for workloads",
            "the component that it is named after",
            "any repair: pods would start too early",
        ),
    ),
    (
        "aws-node-termination-handler/",
        Owner(
            "cloud",
            "the AWS node termination handler",
            "the machine is about to be taken away, or is to be replaced",
            "that handler, or the cloud with the machine",
            "any repair: the machine ends soon",
            fence=True,
        ),
    ),
)
