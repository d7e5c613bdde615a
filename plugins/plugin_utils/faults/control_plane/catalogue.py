# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM1xx, faults of the control plane."""

from __future__ import annotations

from ..base import Fault
from . import leader_election as election
from . import manifests, members, static_pods

_ELECTION_NEEDS = ("kubelet", "manifests", "instances", "component_http")
_SEVERAL = (
    "kube-scheduler and kube-controller-manager where the cluster has more than one instance of"
    " them"
)
_ELECTION_DOC = (
    "https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager/"
)
_STATIC_DOC = "https://kubernetes.io/docs/tasks/configure-pod-container/static-pod/"

FAULTS = (
    Fault(
        code="KM101",
        title="Leader election disabled",
        severity="critical",
        applies=_SEVERAL,
        explanation=(
            "An instance runs with --leader-elect=false beside others, and its manifest says so"
            " too. It works without holding the lock: two controller managers create the pods of"
            " each Job twice, two schedulers bind pods against each other, and devices are given"
            " out twice (UnexpectedAdmissionError). The lock objects look healthy, because the"
            " other instances hold them."
        ),
        remedy=(
            "Set --leader-elect=true in the manifest, one master at a time. The scheduler alone"
            " does not cure duplicate Job pods: the controller manager makes them."
        ),
        risk=2,
        needs=_ELECTION_NEEDS,
        cluster=election.election("KM101"),
        references=(_ELECTION_DOC,),
    ),
    Fault(
        code="KM102",
        title="Leader election disabled in the running process only",
        severity="critical",
        applies=_SEVERAL,
        explanation=(
            "The process runs without election although its file has it on: the file was mended,"
            " and the component was never restarted from it."
        ),
        remedy=(
            "Let the kubelet restart the component from its file; look at the kubelet first"
            " (KM108)."
        ),
        risk=2,
        needs=_ELECTION_NEEDS,
        cluster=election.election("KM102"),
    ),
    Fault(
        code="KM103",
        title="Leader election disabled in the manifest only",
        severity="critical",
        applies=_SEVERAL,
        explanation=(
            "The manifest says --leader-elect=false while the process still elects or does not run:"
            " the next restart makes it a second leader."
        ),
        remedy="Set --leader-elect=true in the manifest.",
        risk=2,
        needs=_ELECTION_NEEDS,
        cluster=election.election("KM103"),
    ),
    Fault(
        code="KM104",
        title="Leader election disabled in the scheduler's configuration file",
        severity="critical",
        applies="kube-scheduler with --config where the cluster has more than one instance",
        explanation=(
            "leaderElection.leaderElect is false in the file of --config. Up to 1.22 the file alone"
            " decides with --config; from 1.23 on an explicit --leader-elect flag overrides it. A"
            " change of the file does not restart the pod."
        ),
        remedy="Set leaderElect: true in the file and restart the scheduler, one master at a time.",
        risk=2,
        needs=_ELECTION_NEEDS,
        cluster=election.election("KM104", ("kube-scheduler",)),
        references=("https://github.com/kubernetes/kubernetes/issues/105704",),
    ),
    Fault(
        code="KM105",
        title="Leader election flag does not parse",
        severity="critical",
        applies="manifests of kube-scheduler and kube-controller-manager",
        explanation=(
            "Boolean flags take 1, t, true, 0, f, false in the spellings of Go's ParseBool and"
            " nothing else; `--leader-elect false` is the flag, true, and a stray argument. The"
            " component exits at each start."
        ),
        remedy="Write --leader-elect=true.",
        risk=2,
        needs=("kubelet", "manifests"),
        cluster=election.election("KM105"),
    ),
    Fault(
        code="KM106",
        title="Instances elect on locks that do not overlap",
        severity="critical",
        applies=_SEVERAL,
        explanation=(
            "Instances of one duty elect on different kinds, names or namespaces of lock objects"
            " (for instance one master <= 1.16 on endpoints beside one >= 1.20 on leases), so each"
            " can hold its own. A scheduler of another schedulerName, or a controller manager of"
            " other controllers, is another duty. endpointsleases overlaps both endpoints and"
            " leases."
        ),
        remedy="Give every instance the same resource lock, name and namespace.",
        risk=2,
        needs=("instances", "component_http"),
        cluster=election.locks_overlap,
    ),
    Fault(
        code="KM107",
        title="Manifest does not parse",
        severity="critical",
        applies="every file in the static pod folder whose name begins with no dot",
        explanation=(
            "The kubelet drops a manifest that it cannot read from its list at its next look (20"
            " s), and stops the component that ran from it."
        ),
        remedy="Mend the line that the finding names, or move the file out of the folder.",
        risk=2,
        needs=("kubelet", "manifests"),
        node=manifests.broken,
        references=(_STATIC_DOC,),
    ),
    Fault(
        code="KM108",
        title="Manifest newer than its process",
        severity="critical",
        applies="components that run as static pods",
        explanation=(
            "The manifest asks for another command line than the one that runs. The kubelet follows"
            " a change within seconds: when it has not, it is nearly always dead or stuck, and then"
            " that is the fault."
        ),
        remedy="Mend the kubelet; it loads the manifest when it is back.",
        risk=2,
        needs=("system", "kubelet", "manifests", "instances"),
        node=manifests.outdated,
        references=("https://github.com/kubernetes/kubernetes/issues/112861",),
    ),
    Fault(
        code="KM109",
        title="Second manifest or a backup of one in the static pod folder",
        severity="critical",
        applies="the static pod folder",
        explanation=(
            "The kubelet loads every file of the folder whose name begins with no dot, whatever its"
            " ending. Of two files of one pod the later name wins at each listing and the touched"
            " one at each change: the component flaps, or runs with the backup's old arguments. So"
            " does any other static pod (a load balancer before the API servers): that is a"
            " warning, and nothing here moves its files."
        ),
        remedy=(
            "Move the backup out of the folder, once you know that the other file is the right one."
        ),
        risk=2,
        needs=("kubelet", "manifests"),
        node=manifests.second_manifest,
        references=("https://github.com/kubernetes/kubernetes/issues/55596",),
    ),
    Fault(
        code="KM110",
        title="kubeadm-config switches leader election off again",
        severity="warning",
        applies="clusters with a kubeadm-config ConfigMap and more than one master",
        explanation=(
            "extraArgs of the ClusterConfiguration say leader-elect false: `kubeadm upgrade` writes"
            " the manifests anew from it, and the fault is back."
        ),
        remedy="Set or remove leader-elect in the ConfigMap's extraArgs.",
        risk=1,
        cluster_needs=("kubeadm_config", "nodes"),
        cluster=members.kubeadm_config,
    ),
    Fault(
        code="KM111",
        title="API servers show different locks",
        severity="critical",
        applies="clusters with more than one API server",
        explanation=(
            "A lock object has one holder, unless API servers store in different etcd clusters or"
            " under different prefixes: then each store has its own holder, all with election on."
        ),
        remedy=(
            "Point every API server to one etcd cluster and prefix. Risky by nature: nothing here"
            " does it."
        ),
        risk=4,
        needs=("etcd",),
        cluster_needs=("locks", "endpoints"),
        cluster=members.split_storage,
        references=("https://github.com/kubernetes/kubernetes/issues/89466",),
    ),
    Fault(
        code="KM112",
        title="Control-plane member was not audited",
        severity="warning",
        applies="every cluster",
        explanation=(
            "A Node, an endpoint of the kubernetes service, an etcd member or a lock's holder names"
            " a host that the inventory does not hold. A retired master that still runs is a"
            " classic cause of two leaders."
        ),
        remedy=(
            "Add the host to the inventory and audit again, or stop what a retired master still"
            " runs."
        ),
        risk=0,
        needs=("etcd",),
        cluster_needs=("nodes", "endpoints", "locks"),
        cluster=members.strangers,
    ),
    Fault(
        code="KM113",
        title="Jobs got surplus pods",
        severity="warning",
        applies="Jobs that exist or have events (events expire after an hour)",
        explanation=(
            "The symptom itself: within seconds a Job got more pods than its parallelism, none of"
            " them in place of one that failed or was being deleted. It follows from two controller"
            " managers at work; without a fault of election beside it, look for another creator."
        ),
        remedy="Repair the cause; the Job controller deletes the surplus pods itself.",
        risk=0,
        cluster_needs=("jobs",),
        cluster=members.surplus_pods,
        explained_by=frozenset(
            [(code, "kube-controller-manager") for code in ("KM101", "KM102", "KM106")]
            + [("KM111", None)]
        ),
    ),
    Fault(
        code="KM114",
        title="Control-plane component does not stay up",
        severity="critical",
        applies="manifests of control-plane components in the folder of a kubelet that runs",
        explanation=(
            "The kubelet has the manifest, and no process of the component is there, or each ends"
            " soon after its start. Others of its kind hide it: one of them leads, and the API"
            " answers. What is lost is what stands by, until the next one fails. Its own log says"
            " why (a flag that its release does not know, a certificate, a server that it does not"
            " reach), and the kubelet's, where it never began (an image that is not there). A"
            " component that a kubelet or manifest of the last minutes has still to start is"
            " unknown. Also, as a warning, where it runs now and has ended again and again: two"
            " starts within the last 40 minutes, of one manifest, not behind a boot, and at least"
            " three of it (ten where its log does not say why it ended: an operator may have"
            " stopped it). A high lifetime count alone is no finding."
        ),
        remedy=(
            "Mend what its last words name. The kubelet waits up to five minutes between two"
            " starts."
        ),
        risk=2,
        needs=("system", "kubelet", "manifests", "instances", "component_end"),
        node=static_pods.down,
        # Schedulers and controller managers lose their locks and exit while no API server answers.
        explained_by=frozenset([("KM114", "kube-apiserver"), ("KM114", "etcd")]),
        references=(_STATIC_DOC,),
    ),
)
