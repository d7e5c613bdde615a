# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of a kubelet that does not run: KM502 and what its last words name."""

from __future__ import annotations

from ..base import Fault
from . import kubelet_down as node_kubelet

_APPLIES = "nodes whose kubelet has a unit of systemd"
_NEEDS = ("system", "kubelet", "kubelet_end")
_STARTS = ("system", "kubelet", "kubelet_end", "unit_start")
_PROVEN = (
    " Present only where the process's own last line says so and systemd saw it end in that way; of"
    " a kubelet that is started again and again, both of the last two times."
)
_FLAGS = "https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/"
_CONFIG = "https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/"
_KUBEADM = (
    "https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/troubleshooting-kubeadm/"
)

FAULTS = (
    Fault(
        code="KM502",
        title="Kubelet does not run",
        severity="critical",
        applies=_APPLIES,
        explanation=(
            "The kubelet's unit is stopped, was never started, failed, has reached systemd's limit"
            " of starts, or ends and is started again and again. The node becomes NotReady after 40"
            " seconds and gets the taints node.kubernetes.io/unreachable; its pods are evicted"
            " after five minutes, and stay Terminating until it is back. What it died of is named"
            " where its last words tell it: swap (KM504), the state of its managers (KM301 to"
            " KM310), inotify (KM401 to KM403), limits (KM409), the runtime (KM508), a port, a full"
            " disk. What systemd itself refuses is named exactly: a condition or an assert that is"
            " not met, a unit that it requires, a file of EnvironmentFile= or a working directory"
            " that is missing, or another step before the program begins (200/CHDIR to 245/BPF)."
            " Where a fault of its own is why (KM505, KM506, KM507, KM510, KM515 to KM517), that"
            " one is reported instead; of a kubelet that is masked KM503."
        ),
        remedy=(
            "Start it where it was stopped, once it is clear who stopped it and why; else correct"
            " what its last words or systemd name. No start is planned that systemd would refuse."
        ),
        risk=2,
        needs=_STARTS,
        node=node_kubelet.not_running,
        references=("https://kubernetes.io/docs/concepts/architecture/nodes/#condition",),
    ),
    Fault(
        code="KM505",
        title="Kubelet does not know a flag or feature gate",
        severity="critical",
        applies=_APPLIES,
        explanation=(
            "The kubelet ends at once because it was given a flag or a feature gate that this"
            " version does not have, mostly after an upgrade (--network-plugin went with 1.24,"
            " --container-runtime with 1.27), or a gate that is locked."
        )
        + _PROVEN,
        remedy=(
            "Take the flag or the gate out of the file that gives it:"
            " /var/lib/kubelet/kubeadm-flags.env, /etc/default/kubelet, /etc/sysconfig/kubelet, a"
            " drop-in of the unit, or the kubelet's configuration file."
        ),
        risk=0,
        needs=_NEEDS,
        node=node_kubelet.flag,
        references=(
            _FLAGS,
            "https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates-removed/",
        ),
    ),
    Fault(
        code="KM506",
        title="Kubelet refuses its configuration",
        severity="critical",
        applies=_APPLIES,
        explanation=(
            "The kubelet ends at once because its configuration file, or a flag's value, does not"
            " parse, holds a field or a value that it does not take, or names a file that is not"
            " there."
        )
        + _PROVEN
        + " Of the CPU, memory and topology managers the values themselves are compared with what a"
        " kubelet of this release (1.14 to 1.36) takes: policies, scope and options with their"
        " feature gates, reservedSystemCPUs, kubeReserved and systemReserved against the machine,"
        " reservedMemory against the sum that the static policy wants, enforceNodeAllocatable"
        " with the cgroups that it needs; flags, drop-ins and the file, as the next start reads"
        " them. A kubelet that still runs was started before the change, and does not start"
        " again: a warning. No drain and no reset is planned for such a kubelet. Unknown where"
        " its release or the machine's memory, CPUs or NUMA nodes decide and are not known.",
        remedy=(
            "Correct the value in the file and line that are named, or the flag; with kubeadm,"
            " `kubeadm upgrade node phase kubelet-config` writes the file again."
        ),
        risk=0,
        needs=(*_NEEDS, "pinning"),
        node=node_kubelet.configuration,
        references=(
            _CONFIG,
            "https://kubernetes.io/docs/tasks/administer-cluster/memory-manager/",
            "https://kubernetes.io/docs/tasks/administer-cluster/reserve-compute-resources/",
        ),
    ),
    Fault(
        code="KM507",
        title="Kubelet has no valid client certificate, or soon has none",
        severity="critical",
        applies=_APPLIES,
        explanation=(
            'The kubelet ends with "unable to load bootstrap kubeconfig": its client certificate is'
            " expired, gone or unreadable, or its kubeconfig is, and there is no bootstrap"
            " kubeconfig with which to get another. A node that was off for longer than its"
            " certificate was good, a clock that is wrong, or a `kubeadm reset` leave it so."
        )
        + _PROVEN
        + " Or the dates of its certificate say it, which the controller reads: one that has"
        " expired while the kubelet runs, whom the API then refuses, so that its Node becomes"
        " NotReady; and, as a warning, one in the last tenth of its time, which a kubelet that"
        " renews its own (rotateCertificates) had replaced long ago. A certificate inside the"
        " kubeconfig itself (client-certificate-data) is never renewed there: a kubelet that runs"
        " may have a newer one of its own folder, and fails at its next start: a warning too.",
        remedy=(
            "Compare the node's clock first. Then give the node a kubelet.conf with a new"
            " certificate (kubeadm kubeconfig user --org system:nodes --client-name"
            " system:node:NODE, on a control-plane node), or let it join again. Of one that was not"
            " renewed see rotateCertificates, requests that wait (kubectl get csr), and who signs"
            " them."
        ),
        risk=0,
        needs=_NEEDS,
        node=node_kubelet.certificate,
        references=(_KUBEADM + "#kubelet-client-cert",),
    ),
    Fault(
        code="KM510",
        title="A file of the kubelet is empty or damaged",
        severity="critical",
        applies=_APPLIES,
        explanation=(
            "The kubelet ends because one of its own files is empty or does not parse any more, as"
            " a power cut leaves what was written a moment before: its configuration file,"
            " kubelet.conf, its client certificate, a state file. Those of the CPU manager and the"
            " memory manager are KM302, KM303 and KM310."
        )
        + _PROVEN,
        remedy=(
            "Bring that file back as the finding says, and look at the file system (journalctl -k,"
            " fsck): one file is seldom alone."
        ),
        risk=0,
        needs=_NEEDS,
        node=node_kubelet.emptied,
        references=(_KUBEADM,),
    ),
    Fault(
        code="KM515",
        title="Kubelet refuses cgroup v1",
        severity="critical",
        applies=_APPLIES,
        explanation=(
            "From 1.35 on a kubelet does not start on a machine with cgroup v1, unless failCgroupV1"
            " is false in its configuration."
        )
        + _PROVEN,
        remedy="Boot the node with cgroup v2; failCgroupV1: false only helps until support ends.",
        risk=0,
        needs=_NEEDS,
        node=node_kubelet.cgroup_v1,
        references=("https://kubernetes.io/docs/concepts/architecture/cgroups/", _CONFIG),
    ),
    Fault(
        code="KM516",
        title="Kubelet and runtime differ in their cgroup driver",
        severity="critical",
        applies=_APPLIES,
        explanation=(
            "The kubelet ends because its cgroup driver (cgroupfs or systemd) is not that of"
            " docker. Only kubelets with dockershim, up to 1.23, look; with others the pods of such"
            " a node fail instead."
        )
        + _PROVEN,
        remedy=(
            "Give both the same driver, systemd where systemd runs the machine; drain the node"
            " before, for its pods' cgroups move."
        ),
        risk=0,
        needs=_NEEDS,
        node=node_kubelet.cgroup_driver,
        references=(
            "https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/configure-cgroup-driver/",
        ),
    ),
    Fault(
        code="KM517",
        title="Kubelet refuses the kernel's settings",
        severity="critical",
        applies=_APPLIES,
        explanation=(
            "With protectKernelDefaults the kubelet ends where vm.overcommit_memory,"
            " vm.panic_on_oom, kernel.panic, kernel.panic_on_oops or the limits of keys are not as"
            " it wants them; without, it sets them itself."
        )
        + _PROVEN,
        remedy=(
            "Set the values that are named in a file of /etc/sysctl.d, or protectKernelDefaults:"
            " false."
        ),
        risk=0,
        needs=_NEEDS,
        node=node_kubelet.kernel_defaults,
        references=(_CONFIG,),
    ),
)
