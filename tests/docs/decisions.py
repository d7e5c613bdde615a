# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator sees of each symptom, and the faults to look at first: no literal has that."""

from __future__ import annotations

Row = tuple[str, tuple[str, ...]]
DECISIONS: dict[str, tuple[Row, ...]] = {
    "duplicate_pods": (
        (
            (
                "A Job with `completions: 1` and `parallelism: 1` gets two pods at the same time;"
                " one of them is deleted again about a second later. Which of the two is left is"
                " chance."
            ),
            ("KM113", "KM101"),
        ),
        (
            (
                "`--leader-elect=false` is in a manifest, and the lock objects look healthy: an"
                " instance that does not elect never touches them."
            ),
            ("KM101", "KM103"),
        ),
        (
            "The manifest has `--leader-elect=true`, and the process runs without it.",
            ("KM102", "KM108"),
        ),
        (
            (
                "The scheduler has `--config`, and `leaderElection` in that file switches the"
                " election off."
            ),
            ("KM104",),
        ),
        (
            (
                "The static pod folder has a second manifest of a component, or a backup of one,"
                " for example `kube-scheduler.yaml.bak`."
            ),
            ("KM109",),
        ),
        (
            "Both instances elect, and each holds a lock of its own, or sees other objects.",
            ("KM106", "KM111"),
        ),
        ("It comes back after an upgrade with kubeadm.", ("KM110",)),
        (
            "A control plane node that was retired or is not in the inventory still runs.",
            ("KM112",),
        ),
    ),
    "admission_errors": (
        (
            (
                "`kubectl get pods` says `UnexpectedAdmissionError`, `OutOfcpu`, `OutOfpods` or the"
                " like of pods that never started."
            ),
            ("KM320",),
        ),
        (
            (
                "`Allocate failed due to requested number of devices unavailable for"
                " nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected`, although the"
                " node has a free, healthy device."
            ),
            ("KM101", "KM205", "KM322"),
        ),
        ("The same Jobs succeed when they are tried again.", ("KM101", "KM205")),
        (
            "Allocatable devices of the node are fewer than its capacity, or none.",
            ("KM323", "KM324", "KM325"),
        ),
        (
            "It begins after MIG, time-slicing or the plugin's configuration was changed.",
            ("KM326",),
        ),
        ("It begins with a restart of the kubelet or a reboot.", ("KM327", "KM328")),
        (
            "`OutOfcpu` or `OutOfpods` of pods that have `spec.nodeName` in their template.",
            ("KM321",),
        ),
        (
            "`not enough cpus available`, `memorymanager` or `Topology locality` in the message.",
            ("KM329", "KM330", "KM331"),
        ),
    ),
    "cpu_pinning": (
        (
            (
                "A kubelet does not start any more after its CPU manager policy, its reserved CPUs"
                " or the machine's CPUs were changed."
            ),
            ("KM301", "KM304", "KM305"),
        ),
        ("`cpu_manager_state` is empty, or does not parse.", ("KM302", "KM303")),
        ("The kubelet refuses its reserved CPUs or its policy.", ("KM506", "KM309")),
        (
            ("A pod with whole CPUs, requests equal to limits, runs on the CPUs that all share."),
            ("KM308", "KM313"),
        ),
        (
            (
                "The kubelet's log says `ReconcileState: failed to update container` and `unable to"
                " freeze`."
            ),
            ("KM311",),
        ),
        (
            "CPUs are missing for new pods, although no running pod has them.",
            ("KM307", "KM306"),
        ),
        ("Pods are rejected for lack of CPUs, on a node with free ones.", ("KM329", "KM307")),
        ("`memory_manager_state` keeps the kubelet from starting.", ("KM310",)),
        (
            "Nodes that joined later, or were upgraded by kubeadm, have another policy.",
            ("KM312",),
        ),
    ),
    "too_many_open_files": (
        (
            (
                "`Too many open files`, of systemctl, of `kubectl logs -f`, or `failed to create"
                " fsnotify watcher: too many open files` of a program."
            ),
            ("KM402", "KM401"),
        ),
        ("`no space left on device` of a program that watches files, with free disks.", ("KM403",)),
        ("One process alone says `too many open files`.", ("KM404",)),
        ("`too many open files in system`, of every program.", ("KM405",)),
        ("`Resource temporarily unavailable` or `cannot fork` of every program.", ("KM411",)),
        ("A service ends with `205/LIMITS`.", ("KM409",)),
        ("No user can log in since limits were raised.", ("KM406",)),
        ("A limit that was raised is gone after a reboot.", ("KM407",)),
        ("limits.conf was raised, and the service has the former limit.", ("KM408",)),
        ("Old programs in containers are slow, or use much memory.", ("KM410",)),
    ),
    "node_unreachable": (
        (
            "`kubectl get nodes` says `NotReady`, and the host does not answer either.",
            ("KM512",),
        ),
        (
            "The host answers, and its kubelet runs.",
            ("KM525", "KM519", "KM508", "KM529"),
        ),
        (
            "The kubelet does not run, or runs again and again.",
            ("KM502", "KM505", "KM506", "KM510", "KM507"),
        ),
        ("It does not come back after a reboot.", ("KM501", "KM504", "KM520", "KM521")),
        (
            "It began with an upgrade of the kubelet or the system.",
            ("KM505", "KM515", "KM531", "KM517"),
        ),
        (
            "It began with a change of CPUs, memory or of the kubelet's policies.",
            ("KM305", "KM301", "KM304", "KM310"),
        ),
        (
            "The name or the address of the machine was changed.",
            ("KM509", "KM518"),
        ),
        (
            "All nodes are `NotReady` at the same time.",
            ("KM115", "KM114", "KM116", "KM511"),
        ),
        (
            (
                "`kubectl get nodes` says `Ready,SchedulingDisabled`, or pods wait because of a"
                " taint."
            ),
            ("KM514", "KM513", "KM503"),
        ),
        (
            (
                "Pods wait, because the node carries `node.kubernetes.io/unreachable` or a taint of"
                " your own; taken away by hand it comes back."
            ),
            ("KM525", "KM512", "KM513"),
        ),
        ("`MemoryPressure`, `DiskPressure` or `PIDPressure` is `True`.", ("KM523", "KM521")),
    ),
    "pods_stay_pending": (
        (
            "All pods are `Pending`, without an event of the scheduler.",
            ("KM203", "KM115", "KM114"),
        ),
        ("Only pods with a `schedulerName` of their own wait without an event.", ("KM204",)),
        ("`Insufficient` in the event, for example `Insufficient cpu`.", ("KM210",)),
        ("`Too many pods` or `didn't have free ports` in the event.", ("KM214", "KM213")),
        (
            "`didn't match Pod's node affinity/selector` or `topology spread` in the event.",
            ("KM211", "KM212"),
        ),
        (
            "`untolerated taint` or `unschedulable` in the event.",
            ("KM513", "KM514", "KM216", "KM217"),
        ),
        ("`PersistentVolumeClaim` or `volume node affinity` in the event.", ("KM215", "KM224")),
        (
            "A DaemonSet's pod waits for a node that is Ready.",
            ("KM202", "KM201", "KM218"),
        ),
        ("The pod is `SchedulingGated`.", ("KM219",)),
        ("The pod has a node, and is `Pending` still.", ("KM220",)),
        (
            "A Deployment, Job or DaemonSet gets no pod at all.",
            ("KM221", "KM222", "KM223"),
        ),
    ),
    "pods_not_starting": (
        (
            "`ContainerCreating` of many pods of one node.",
            ("KM600", "KM519", "KM508"),
        ),
        (
            "`FailedCreatePodSandBox` with a message of the network plugin.",
            ("KM519", "KM602", "KM604", "KM603"),
        ),
        ("`FailedCreatePodSandBox` with the image `pause`.", ("KM605",)),
        (
            "`FailedCreatePodSandBox` with `cgroup` in the message.",
            ("KM524", "KM516", "KM601"),
        ),
        (
            "`FailedMount` or `FailedAttachVolume`.",
            ("KM606", "KM607"),
        ),
        (
            "`too many open files` or `no space left on device` in the message.",
            ("KM402", "KM403", "KM521"),
        ),
        (
            (
                "`ImagePullBackOff`, `CreateContainerError` or `CreateContainerConfigError` of one"
                " workload."
            ),
            ("KM610",),
        ),
        ("Pods of one node are `CrashLoopBackOff`, those of other nodes run.", ("KM611",)),
        ("Pods stay `Terminating` after their grace period.", ("KM609", "KM607")),
        ("It began when the kubelet of the node was upgraded.", ("KM608",)),
    ),
    "api_down": (
        (
            (
                "`kubectl` says `The connection to the server was refused`, `i/o timeout`, `TLS"
                " handshake timeout` or `EOF`, and every API server answers at its own address."
            ),
            ("KM178",),
        ),
        (
            "The connection is refused, and no `kube-apiserver` runs on the node.",
            ("KM114", "KM174", "KM173", "KM170", "KM172"),
        ),
        (
            (
                "Nodes are `NotReady` all at once, pods go on running, and no static pod runs on"
                " the control-plane nodes."
            ),
            ("KM502", "KM508", "KM521", "KM178"),
        ),
        ("`/readyz?verbose` says `[-]etcd failed`.", ("KM170", "KM115")),
        ("`/readyz?verbose` says that another check fails.", ("KM175",)),
        ("Answers are `429`, or take seconds.", ("KM171", "KM523")),
        (
            "It answers, and refuses what is created: `failed calling webhook`.",
            ("KM176", "KM181", "KM115"),
        ),
        (
            (
                "`kubectl` says `x509: certificate has expired or is not yet valid`, or `You must"
                " be logged in to the server`, since a certain day."
            ),
            ("KM120", "KM126", "KM526"),
        ),
    ),
    "before_upgrade": (
        (
            (
                "An upgrade is planned: the question is what the next release no longer takes of"
                " the settings of components."
            ),
            ("KM720", "KM721", "KM722", "KM723"),
        ),
        ("`kubeadm upgrade plan` names a version skew.", ("KM726", "KM608")),
        (
            (
                "Nodes have Docker, an old containerd, cgroup v1, or the cluster has an etcd of its"
                " own."
            ),
            ("KM724", "KM725", "KM727"),
        ),
        (
            "`kubeadm upgrade` stops because a node or a component is not healthy.",
            ("KM525", "KM512", "KM114"),
        ),
        ("The last upgrade with kubeadm changed flags of the control plane.", ("KM110",)),
        ("Certificates end before or soon after the upgrade.", ("KM120", "KM121", "KM507")),
        ("The last upgrade was not finished.", ("KM726",)),
        ("`kubectl drain` waits for pods that do not go, during the upgrade.", ("KM728",)),
    ),
    "etcd_space": (
        (
            (
                "Every change is answered with `etcdserver: mvcc: database space exceeded`, while"
                " reads work."
            ),
            ("KM140",),
        ),
        (
            "Every change is answered with `etcdserver: no leader`.",
            ("KM146", "KM145", "KM527"),
        ),
        ("The log of etcd says `panic`, or that its data cannot be read.", ("KM150", "KM521")),
        (
            (
                "Leaders change again and again, `kubectl` takes seconds, or the log of etcd says"
                " `took too long` or `slow fdatasync`."
            ),
            ("KM144",),
        ),
        ("A server of the control plane was removed, added or reinstalled.", ("KM147", "KM148")),
        ("The database grows, and nothing fails yet.", ("KM141", "KM143")),
        ("Members show different data, or etcd was upgraded.", ("KM142", "KM149")),
    ),
    "certificates": (
        (
            (
                "The API server or etcd starts again and again, a year after the installation, or"
                " clients say `x509: certificate has expired or is not yet valid`."
            ),
            ("KM120", "KM526"),
        ),
        (
            "`kubectl` alone says so, or `You must be logged in to the server (Unauthorized)`.",
            ("KM126",),
        ),
        ("Certificates were renewed, and clients still see the former ones.", ("KM122",)),
        ("`x509: certificate signed by unknown authority`.", ("KM124", "KM126", "KM127")),
        ("`x509: certificate is valid for …, not …`.", ("KM125",)),
        ("One API server accepts a token or a certificate that another one refuses.", ("KM127",)),
        ("The kubelet of a node is refused.", ("KM507",)),
        ("Nothing fails yet, and a yearly check is due.", ("KM121", "KM123")),
    ),
    "before_reboot": (
        (
            "The kubelet's or the runtime's unit was disabled or masked while it runs.",
            ("KM501", "KM503", "KM508"),
        ),
        (
            "A file or a flag of the kubelet was changed, and the kubelet was not restarted.",
            ("KM707", "KM506", "KM700", "KM505", "KM531"),
        ),
        (
            "containerd's configuration was changed, and containerd was not restarted.",
            ("KM703", "KM700", "KM516"),
        ),
        (
            "Packages were upgraded, and neither services nor the node were restarted.",
            ("KM701", "KM703", "KM702", "KM705", "KM706"),
        ),
        (
            "Disks were added, removed or formatted, or fstab was edited.",
            ("KM704", "KM521"),
        ),
        (
            "The CPU manager's or the memory manager's policy was changed, or CPUs were added.",
            ("KM301", "KM304", "KM305", "KM310", "KM309"),
        ),
        (
            "`swapoff -a` was run, or the kernel was changed by `sysctl -w` or `modprobe`.",
            ("KM504", "KM520", "KM407"),
        ),
        (
            "Certificates were renewed, or end soon.",
            ("KM122", "KM120", "KM507"),
        ),
        (
            "The firewall was stopped and not disabled, or SELinux was switched by `setenforce`.",
            ("KM527", "KM522"),
        ),
        (
            "systemd or the network plugin is to be updated with the reboot.",
            ("KM534", "KM603"),
        ),
        (
            "A static pod's file was changed while the kubelet did not look.",
            ("KM108", "KM103", "KM107", "KM109", "KM174"),
        ),
        (
            "The node is a control-plane node, or has a member of etcd.",
            ("KM145", "KM146", "KM147"),
        ),
    ),
}
