# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults of CPU pinning, KM301 to KM313."""

from __future__ import annotations

from ..base import Fault
from . import (
    live_cpusets as pinning_live,
)
from . import (
    state_files as pinning_state,
)
from . import (
    unpinned_pods as pinning_pods,
)

_NEEDS = ("system", "kubelet", "pinning")
_POLICIES = "https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/"
_EXITS = (
    "A kubelet that starts compares and exits; the static pods and all others of the node go on"
    " without it, and nobody looks after them. "
)
_RESET = (
    "Drain the node, stop its kubelet, move the state files away, start the kubelet, uncordon: the"
    " plan does it, one node at a time. A kubelet that its state keeps down is first lent the"
    " policy of that state by a drop-in under /run, because only a kubelet that runs can end pods."
    " Where no kubelet could start over the state, nothing can be drained, and it is reset only"
    " with kubemend_allow: [reset_without_drain]. Nothing is planned for a kubelet that refuses its"
    " configuration (KM506), or whose last words do not name this state."
)

FAULTS = (
    Fault(
        code="KM301",
        title="CPU manager state is of another policy",
        severity="critical",
        applies="nodes with a kubelet",
        explanation=(
            "cpu_manager_state was written under another cpuManagerPolicy than the one that the"
            " kubelet's command line and files name now (\"configured policy ... differs from state"
            ' checkpoint policy ..."). '
        )
        + _EXITS
        + "The configuration is read as the kubelet's next start reads it: a kubelet that still"
        " runs was started before the change. A policy that no kubelet takes is KM506, and says"
        " nothing of the state. Unknown where that cannot be read: a file that nobody may read,"
        " --dynamic-config-dir, a kubelet inside another program (k3s, MicroK8s).",
        remedy=_RESET,
        risk=3,
        needs=_NEEDS,
        node=pinning_state.per_node(pinning_state.differs, pinning_state.told_policy),
        references=(_POLICIES,),
    ),
    Fault(
        code="KM302",
        title="CPU manager state is corrupt",
        severity="critical",
        applies="nodes with a kubelet",
        explanation=(
            "cpu_manager_state is well formed, but its checksum is that of other content: somebody"
            ' edited it, or a write was lost ("checkpoint is corrupted"). '
        )
        + _EXITS
        + "The checksum is computed as kubelets up to 1.17 and since 1.18 do; one of 0, or none, is"
        " accepted by every kubelet. Not judged where the state holds CPUs of whole pods"
        " (podEntries, since 1.36) or another newer field.",
        remedy=_RESET,
        risk=3,
        needs=_NEEDS,
        node=pinning_state.per_node(pinning_state.corrupt),
        references=(_POLICIES,),
    ),
    Fault(
        code="KM303",
        title="CPU manager state is empty or unreadable",
        severity="critical",
        applies="nodes with a kubelet",
        explanation=(
            "cpu_manager_state is empty, cut, full of zeros, no JSON, or its sets are none: after a"
            " full disk or a power cut. Or it is of another version: entries by pod, as since 1.18,"
            " for a kubelet up to 1.17; or entries by container, as up to 1.17, of which a kubelet"
            ' since 1.18 takes up only containers that the runtime still has ("not found in initial'
            ' containers list"). '
        )
        + _EXITS,
        remedy=_RESET,
        risk=3,
        needs=_NEEDS,
        node=pinning_state.per_node(pinning_state.unreadable),
        references=(_POLICIES,),
    ),
    Fault(
        code="KM304",
        title="Reserved CPUs differ from the CPU manager's state",
        severity="critical",
        applies="nodes with the static policy",
        explanation=(
            "The CPUs that reservedSystemCPUs names, or that systemReserved and kubeReserved come"
            ' to, were given to a container while others were reserved ("not all reserved cpus ...'
            ' are present in defaultCpuSet"); with strict-cpu-reservation they must not be in the'
            " shared set. Unknown where no list names them and it cannot be told which ones this"
            " kubelet takes: options that spread, an uneven machine. "
        )
        + _EXITS,
        remedy=_RESET,
        risk=3,
        needs=_NEEDS,
        node=pinning_state.per_node(pinning_state.reserved, pinning_state.pins),
        references=(_POLICIES,),
    ),
    Fault(
        code="KM305",
        title="The machine's CPUs differ from the CPU manager's state",
        severity="critical",
        applies="nodes with the static policy",
        explanation=(
            "CPUs were added, taken away or switched off (a resized machine, SMT off) since"
            " cpu_manager_state was written (\"current set of available CPUs ... doesn't match with"
            ' CPUs in state"). CPUs that are reserved and not there are KM506. '
        )
        + _EXITS,
        remedy=_RESET,
        risk=3,
        needs=_NEEDS,
        node=pinning_state.per_node(pinning_state.changed_machine, pinning_state.pins),
        references=(_POLICIES,),
    ),
    Fault(
        code="KM306",
        title="Sets of CPUs overlap in the CPU manager's state",
        severity="critical",
        applies="nodes with the static policy",
        explanation=(
            "Two containers, or one and the shared set, have the same CPU in cpu_manager_state. A"
            " kubelet that starts refuses an overlap with the shared set; two containers on one CPU"
            " it does not notice, and neither has it alone. Init containers, which have ended when"
            " others of their pod get their CPUs, are no fault."
        ),
        remedy=_RESET,
        risk=3,
        needs=_NEEDS,
        node=pinning_state.per_node(pinning_state.overlapping, pinning_state.pins),
        references=(_POLICIES,),
    ),
    Fault(
        code="KM307",
        title="CPUs are kept for pods that are gone",
        severity="warning",
        applies="nodes with the static policy",
        explanation=(
            "cpu_manager_state holds CPUs for pods of which the node has neither a process nor the"
            " kubelet's folder. A kubelet that runs and has reached the API gives them back; one"
            " that is down, or cannot reach it, does not, nor one up to 1.16, and new pods find too"
            " few CPUs. The state of a kubelet up to 1.17 names containers only: there it is one"
            " that neither runs nor has a link in /var/log/containers, which the kubelet keeps"
            " until it removes a container; unknown where no container that runs has such a link."
        ),
        remedy=(
            "Start the kubelet, or let it reach the API. Where CPUs stay lost, reset the state with"
            " the node drained."
        ),
        risk=3,
        needs=_NEEDS,
        node=pinning_state.per_node(pinning_state.orphans, pinning_state.pins),
        references=(_POLICIES,),
    ),
    Fault(
        code="KM308",
        title="Containers run on other CPUs than the state says",
        severity="warning",
        applies="nodes with the static policy",
        explanation=(
            "The cpuset of a container's cgroup is not the one that cpu_manager_state gives it:"
            " another tool, or the runtime when it updated the container, wrote it. Kubelets up to"
            " 1.20 write every set again in each cpuManagerReconcilePeriod; since 1.23 one writes a"
            " set only when its own decision changed, and does not heal this. Init containers of"
            " pods with CPUs of their own are not judged, nor anything within half a minute of the"
            " state's last change."
        ),
        remedy="Find who writes to the cgroups; make the pods anew. Nothing here does it.",
        risk=0,
        needs=_NEEDS,
        node=pinning_live.drifted,
        references=(_POLICIES,),
    ),
    Fault(
        code="KM309",
        title="The static policy without reserved CPUs",
        severity="critical",
        applies="nodes whose kubelet is told the static policy",
        explanation=(
            'The static policy needs CPUs that no container gets alone ("unable to determine'
            ' reserved CPU resources for static policy", "the static policy requires'
            ' systemreserved.cpu + kubereserved.cpu to be greater than zero"): without'
            " systemReserved, kubeReserved or reservedSystemCPUs a kubelet does not start."
        ),
        remedy=(
            "Set a reservation in this node's own kubelet configuration; not in the kubelet-config"
            " ConfigMap, which gives it to every node."
        ),
        risk=0,
        needs=_NEEDS,
        node=pinning_state.per_node(pinning_state.unreserved, pinning_state.told_static),
        references=(_POLICIES,),
    ),
    Fault(
        code="KM310",
        title="Memory manager state does not fit",
        severity="critical",
        applies="nodes with a kubelet",
        explanation=(
            "memory_manager_state (since 1.21) is of another memoryManagerPolicy than the kubelet"
            " is told, cannot be read, or its checksum is that of other content. "
        )
        + _EXITS
        + "Whether the static policy finds the machine and the reservation that it wrote down is"
        ' known from the last words of a kubelet that ended over it ("the expected machine state'
        ' is different from the real one"). Unknown where it names no checksum, or is of a newer'
        " format.",
        remedy=_RESET,
        risk=3,
        needs=_NEEDS,
        node=pinning_state.per_node(pinning_state.memory),
        references=("https://kubernetes.io/docs/tasks/administer-cluster/memory-manager/",),
    ),
    Fault(
        code="KM311",
        title="The runtime cannot freeze a container's cgroup",
        severity="warning",
        applies="nodes with a kubelet",
        explanation=(
            "To change the CPUs of a container runc freezes its cgroup first. On cgroup v1 a task"
            ' in state D, or one that forks without end, can keep it from that ("unable to'
            ' freeze"): up to runc 1.1.7 that was only logged, since 1.1.8 it is an error, and'
            " every update of the container's CPUs fails each 10 s. A container that is frozen now"
            " is named too: old releases of runc (1.0.0, 1.0.1) left some so. It looks like a stale"
            " state file and is none: a reset cures nothing. Known from the journal of kubelet and"
            " runtime, and from the cgroups."
        ),
        remedy="Find the task that does not freeze and restart its pod; cgroup v2 is free of it.",
        risk=0,
        needs=("system", "kubelet", "pinning", "kubelet_log"),
        tier="deep",
        node=pinning_live.unfreezable,
        references=(
            "https://github.com/opencontainers/runc/pull/3804",
            "https://github.com/kubernetes/kubernetes/issues/104280",
        ),
    ),
    Fault(
        code="KM312",
        title="kubelet-config ConfigMap differs from nodes' state files",
        severity="warning",
        applies="clusters of kubeadm, kubelets whose CPU manager policy is set by kubeadm's file",
        explanation=(
            "kubeadm upgrade node writes /var/lib/kubelet/config.yaml anew from this ConfigMap"
            " (before 1.24 one for each minor release). Where its cpuManagerPolicy is not the one"
            " under which a node's cpu_manager_state was written, that node's kubelet ends at its"
            ' next start: "configured policy ... differs from state checkpoint policy ...". Nodes'
            " where a flag, a drop-in of --config-dir or another file decides are left out. Patches"
            " for kubeadm upgrade node are named on its own command line: whether the next upgrade"
            " is given one that keeps the policy cannot be seen."
        ),
        remedy=(
            "Do not write one node's policy into the ConfigMap, for it is every node's: give"
            " kubeadm upgrade node a patch for the target kubeletconfiguration (--patches, since"
            " 1.25), or the node a drop-in; else drain the node and reset its state when it is"
            " upgraded."
        ),
        risk=0,
        needs=("kubelet", "pinning"),
        cluster_needs=("kubelet_configs",),
        cluster=pinning_pods.kubelet_config,
        references=(
            "https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/control-plane-flags/#patches",
        ),
    ),
    Fault(
        code="KM313",
        title="Pods that look meant for pinning are not Guaranteed",
        severity="warning",
        applies=(
            "pods on nodes with the static CPU manager policy, and templates of workloads where"
            " there is such a node"
        ),
        explanation=(
            "The static policy gives CPUs of its own to a container that asks for a whole number of"
            " them in a Guaranteed pod: every container, init containers too (since 1.16), has CPU"
            " and memory limits and requests that equal them. Named is an app container whose CPU"
            " limit is whole and its request, while an init container, a sidecar, an injected"
            " container or memory makes the pod Burstable: nobody in it is pinned, and nothing says"
            " so. A whole request without a limit is normal and no fault. With"
            " kubemend_expect_pinning every pod that it selects is expected to be pinned, whatever"
            " it asks for. Templates without such a pod on a static node are an info."
        ),
        remedy=(
            "Give every container requests that equal its limits. A plain init container may have"
            " the values of the app's: of the two requests the larger counts, so that it costs"
            " nothing. Where nothing else owns the workload, the finding has the patch as a command"
            " and as a file in the report's folder patches; it rolls the pods out anew."
        ),
        risk=3,
        needs=("kubelet",),
        cluster_needs=("pinnable",),
        cluster=pinning_pods.not_guaranteed,
        tier="deep",
        references=(
            "https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/",
            "https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/",
        ),
    ),
)
