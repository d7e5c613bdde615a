# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults of the kubelet's managers, KM301 to KM339: devices, CPUs, memory, topology."""

from __future__ import annotations

from ..base import Fault
from . import rejected_pods as admission

_REJECTED = ("rejected", "nodes")
_TWO_LEADERS = frozenset([(code, None) for code in ("KM101", "KM102", "KM104", "KM106", "KM111")])

FAULTS = (
    Fault(
        code="KM320",
        title="Pods were rejected by the kubelet",
        severity="warning",
        applies="Failed pods that still exist",
        explanation=(
            "The symptom itself: a pod reached a node whose kubelet refused to run it"
            " (UnexpectedAdmissionError, OutOf..., TopologyAffinityError, SMTAlignmentError). Such"
            " a pod stays Failed; its owner makes another, which may fail alike."
        ),
        remedy=(
            "Repair the cause. Pods that were rejected may be deleted once their Job is Complete or"
            " Failed: before, deleting one grants the Job another try."
            " kubemend_cleanup_rejected=true does that, and leaves those of controllers alone that"
            " are not Kubernetes' own."
        ),
        risk=0,
        needs=("devices",),
        cluster_needs=_REJECTED,
        cluster=admission.per_node(admission.rejected, *_REJECTED),
        explained_by=_TWO_LEADERS
        | frozenset(
            [
                (code, None)
                for code in (
                    "KM205",
                    "KM321",
                    "KM322",
                    "KM323",
                    "KM324",
                    "KM325",
                    "KM326",
                    "KM327",
                    "KM328",
                    "KM329",
                    "KM330",
                    "KM331",
                )
            ]
        ),
    ),
    Fault(
        code="KM321",
        title="Pods with nodeName ask for more than their node has",
        severity="critical",
        applies=(
            "nodes with rejected pods that asked for devices, CPUs, memory, huge pages or storage,"
            " or found no place"
        ),
        explanation=(
            "A pod template with spec.nodeName passes every scheduler by, and with it the count of"
            " what is left. Pods on one node then ask for more devices, CPUs or memory than there"
            " are, and the kubelet rejects the later ones (UnexpectedAdmissionError, OutOfcpu ...)."
            " A ReplicaSet replaces each of them at once, by the next one that is rejected. Pods of"
            " one owner count as far as it wants so many at a time: more are two controller"
            " managers' (KM101), or replacements."
        ),
        remedy=(
            "Take spec.nodeName out of the templates; a nodeSelector or affinity still chooses the"
            " node."
        ),
        risk=0,
        cluster_needs=_REJECTED,
        cluster=admission.per_node(
            admission.oversubscribed, *_REJECTED, silent=admission.uncounted
        ),
    ),
    Fault(
        code="KM322",
        title="Devices held by pods that end or have ended",
        severity="critical",
        applies="nodes with rejected pods that asked for devices",
        explanation=(
            "The kubelet gives devices back when a pod has ended in its own eyes: a pod that hangs"
            " in Terminating, or that ended while its clean-up does not, still counts. The number"
            " that the rejection names is compared with what living pods hold. Of a pod that is no"
            " more nobody can tell when it went."
        ),
        remedy=(
            "Find what keeps those pods (a volume, a process in D state). Restarting the kubelet is"
            " no cure."
        ),
        risk=0,
        needs=("devices",),
        cluster_needs=_REJECTED,
        cluster=admission.per_node(
            admission.not_given_back, *_REJECTED, own=lambda node: bool(node.rejected)
        ),
    ),
    Fault(
        code="KM323",
        title="Unhealthy devices",
        severity="warning",
        applies="nodes with device plugins",
        explanation=(
            "Allocatable is below capacity: the plugin reports some devices as unhealthy (an Xid"
            " error, a lost link), and the kubelet gives out the others only."
        ),
        remedy="Read the plugin's and the driver's log on that node.",
        risk=0,
        needs=("devices",),
        cluster_needs=("nodes",),
        cluster=admission.per_node(admission.unhealthy, "nodes", own=admission.silent_nodes),
    ),
    Fault(
        code="KM324",
        title="Device plugin is not registered",
        severity="warning",
        applies="nodes with device plugins",
        explanation=(
            "A kubelet that starts forgets every plugin and empties the folder of their sockets: a"
            " plugin that does not watch for that, or that ended, leaves its resource without a"
            " device. The RegisteredDevices of the checkpoint outlive the registration and prove"
            " nothing."
        ),
        remedy="Delete the plugin's pod on that node, so that its DaemonSet makes it anew.",
        risk=0,
        needs=("devices",),
        cluster_needs=("nodes",),
        cluster=admission.per_node(admission.unregistered, "nodes", own=admission.silent_nodes),
    ),
    Fault(
        code="KM325",
        title="Device plugin does not stay up",
        severity="critical",
        applies="nodes with rejected pods",
        explanation=(
            "A pod that mounts the kubelet's device plugin folder is in a crash loop or restarts"
            " again and again: between its starts its devices are unhealthy."
        ),
        remedy=(
            "Read its previous log. 'too many open files' of a line about inotify or fsnotify is"
            " the kernel's limit of inotify instances."
        ),
        risk=0,
        cluster_needs=_REJECTED,
        cluster=admission.per_node(admission.crash_looping, *_REJECTED),
    ),
    Fault(
        code="KM326",
        title="Device names changed under running pods",
        severity="warning",
        applies="nodes with rejected pods",
        explanation=(
            "Running pods hold device ids that the plugin does not report any more (MIG or"
            " time-slicing was changed): the same hardware can be given out once more under its new"
            " name."
        ),
        remedy=(
            "Drain the node's device pods before such a change; now, restart the pods that the"
            " evidence names."
        ),
        risk=0,
        needs=("devices",),
        cluster_needs=_REJECTED,
        cluster=admission.per_node(
            admission.changed_ids, *_REJECTED, own=lambda node: bool(node.rejected)
        ),
    ),
    Fault(
        code="KM327",
        title="Device checkpoint is stale or corrupt",
        severity="critical",
        applies="nodes with device plugins",
        explanation=(
            "kubelet_internal_checkpoint does not parse, its checksum is wrong, or it knows nothing"
            " of pods that run with devices, although it was written after they were taken up"
            " (looked at where a pod was rejected): somebody took it away, or put an old one back,"
            " or a kubelet of 1.20 to 1.22 could not read what one before 1.20 had left. Such a"
            " kubelet knows of no device that is in use and gives them out a second time, or"
            " refuses pods that ran before."
        ),
        remedy=(
            "Drain the device pods of the node, and where the file is corrupt move it away and"
            " restart the kubelet: with device pods on the node a restart can cost running ones"
            " their devices. Nothing here does it."
        ),
        risk=3,
        needs=("devices",),
        cluster_needs=_REJECTED,
        cluster=admission.per_node(
            admission.corrupt,
            *_REJECTED,
            own=lambda node: bool(node.resources),
            silent=admission.undated,
        ),
    ),
    Fault(
        code="KM328",
        title="Pods were admitted again after their node's kubelet started",
        severity="warning",
        applies="nodes with rejected pods that asked for devices",
        explanation=(
            "A kubelet that starts admits every pod of its node again, without waiting for device"
            " plugins. After a reboot a pod with devices that ran before is rejected for good when"
            ' its plugin has not registered yet ("no healthy devices present; cannot allocate'
            ' unhealthy devices", "cannot allocate unregistered device"). So it is from 1.25 on,'
            " and still in 1.36; in 1.25 and early patch releases of 1.26 to 1.28 a mere restart of"
            " the kubelet is enough. Present only where the pod had been given its devices (the"
            " checkpoint or its own status tells), or where its start time, which its first kubelet"
            " set, is older than the kubelet's process, and the rejection is not; with kubelets of"
            " 1.22 to 1.31, which admit again even what was rejected before, only where both hold."
            " An hour after the rejection its event is gone, and often its time with it."
        ),
        remedy=(
            "See that the plugin has registered (KM324), delete the rejected pods, and create anew"
            " those that no controller replaces. Nothing in the pods themselves helps, for they are"
            " admitted before any of their containers runs: drain the device pods before a reboot,"
            " and uncordon the node when its devices are back."
        ),
        risk=0,
        needs=("kubelet", "devices"),
        cluster_needs=_REJECTED,
        cluster=admission.per_node(
            admission.admitted_again,
            *_REJECTED,
            own=lambda node: bool(admission.of_devices(node)),
            collector="kubelet",
        ),
        references=(
            "https://github.com/kubernetes/kubernetes/issues/125579",
            "https://github.com/kubernetes/kubernetes/issues/128043",
            "https://github.com/kubernetes/kubernetes/issues/133382",
            "https://github.com/kubernetes/kubernetes/issues/124345",
        ),
        explained_by=frozenset([("KM324", None), ("KM325", None)]),
    ),
    Fault(
        code="KM329",
        title="CPU manager rejects pods",
        severity="warning",
        applies="nodes with rejected pods",
        explanation=(
            "The static CPU manager had fewer whole CPUs left than the pod asks for exclusively:"
            " the scheduler counts CPUs in sum, not which of them are free."
        ),
        remedy="See what holds exclusive CPUs there (cpu_manager_state), and what is reserved.",
        risk=0,
        cluster_needs=_REJECTED,
        cluster=admission.per_node(
            admission.of_kind(
                "cpu",
                "smt",
                what="the CPU manager had not the CPUs that it asks for",
                advice=(
                    "compare the node's exclusive CPUs and its reservation with the request; with"
                    " full-pcpus-only whole cores are needed"
                ),
            ),
            *_REJECTED,
        ),
        references=(
            "https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/",
        ),
    ),
    Fault(
        code="KM330",
        title="Memory manager rejects pods",
        severity="warning",
        applies="nodes with rejected pods",
        explanation=(
            "The static memory manager found no NUMA node, or group of them, with the memory that"
            " the pod asks for."
        ),
        remedy="Compare reservedMemory and the pods that are on the node with the request.",
        risk=0,
        cluster_needs=_REJECTED,
        cluster=admission.per_node(
            admission.of_kind(
                "memory",
                what="the memory manager had not the memory that it asks for",
                advice=(
                    "compare reservedMemory and memory_manager_state of the node with the request"
                ),
            ),
            *_REJECTED,
        ),
    ),
    Fault(
        code="KM331",
        title="Topology manager rejects pods",
        severity="warning",
        applies="nodes with rejected pods",
        explanation=(
            "With restricted or single-numa-node the kubelet refuses what it cannot align, and the"
            " scheduler knows nothing of NUMA nodes: the next pod may land there again."
        ),
        remedy="Ask for what fits into one NUMA node, or use a policy that allows less alignment.",
        risk=0,
        cluster_needs=_REJECTED,
        cluster=admission.per_node(
            admission.of_kind(
                "topology",
                what="its resources cannot be aligned to the node's topology",
                advice=(
                    "ask for what fits into one NUMA node, or choose another topologyManagerPolicy"
                    " for this node"
                ),
            ),
            *_REJECTED,
        ),
        references=("https://kubernetes.io/docs/tasks/administer-cluster/topology-manager/",),
    ),
)
