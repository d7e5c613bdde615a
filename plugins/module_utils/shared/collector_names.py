# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every collector: its name, which is a key of the evidence, and what it reads.

The registry of collectors adds how each of them runs.
"""

NODE = {
    "system": (
        "host name, machine and boot id, kernel, distribution, cgroup version and addresses,"
        " from /proc, /etc and /sys"
    ),
    "kubelet": (
        "the kubelet's process, unit, configuration files, kubeconfig (masked), client"
        " certificate and healthz; of k3s and RKE2 the keys in their configuration files, and"
        " values that are no secret"
    ),
    "manifests": "every file of the static pod folder, with owner, mode and time of change",
    "instances": (
        "control plane processes: argv, pod, kubeconfig and configuration as their container"
        " sees them"
    ),
    "failed_units": (
        "units of systemd that failed, of those that pods and their node need (network, storage,"
        " clock, firewall, devices), and the end of their journals"
    ),
    "static_pod_paths": (
        "what lies at the paths of the host that the volumes and flags of static pods name: its"
        " kind alone"
    ),
    "api_server": (
        "livez, readyz and version of the API server at its own address, and who listens on a port"
        " of a component that does not run"
    ),
    "api_load": (
        "where the API server is slow or refuses requests: how many run, wait and are rejected, and"
        " whose they are"
    ),
    "component_http": (
        "healthz, configz and metrics of the scheduler and the controller manager on this node"
    ),
    "component_end": (
        "the end of the log of a component that a static pod should run and that does not"
        " run or was started recently"
    ),
    "component_units": (
        "the units of systemd that run control plane components (etcd.service, kube-*.service and"
        " those of k3s, RKE2, k0s and microk8s), and the end of the journal of one that does not"
        " run or that systemd started again recently"
    ),
    "system_pods": (
        "the end of the log of containers of the cluster's own pods (kube-proxy, network plugins,"
        " DNS and others of kube-system, agents of networks, storage and devices) and of add-ons"
        " (MetalLB, ingress-nginx, cert-manager, Longhorn, Rook, Rancher's agents and others) that"
        " were started again and again recently, errors that those which run say again and again,"
        " and what device plugins say that they miss"
    ),
    "scheduler_log": (
        "the order in which the scheduler saw nodes come and go, as far as its log has it"
        " (--v=2 and higher, of versions that may lose nodes)"
    ),
    "etcd": (
        "etcd's live member list and cluster id, the leader, alarms and size of the member"
        " that answers, with the API server's own client certificate; of a member on this node"
        " its settings, a few metrics (size, times of its disk and of its peers), and the size"
        " and disk of its data folder; of a database near its quota how many objects of some"
        " resources it has"
    ),
    "certificates": (
        "certificates that components use, by their files, kubeconfigs and ports, and SHA-256"
        " digests of public keys"
    ),
    "installer": (
        "the files by which kubeadm, kubespray, RKE2, k3s, kOps, OpenShift and microk8s are"
        " known, what shows that the machine is a node, and files of flags of microk8s that are"
        " empty"
    ),
    "devices": (
        "the kubelet's device plugin folder: its sockets, and its checkpoint without what"
        " plugins reported for containers"
    ),
    "pinning": (
        "the state files of the CPU and the memory manager, the machine's CPUs, NUMA nodes"
        " and memory, whether the cgroups are there that the kubelet is configured to limit, and"
        " where a policy is static, the CPUs that containers really have; in a deep audit the"
        " releases of runc and mount"
    ),
    "limits": (
        "the kernel's limits of files and inotify, a try at opening an instance, the limits"
        " of PID 1, the kubelet, the runtime and sshd, and the files that set them"
    ),
    "swap": (
        "which swap is on and how much of it is used, and what may switch it on at a boot:"
        " fstab, systemd's units, the kernel's command line, zram-generator and services"
    ),
    "boot": (
        "modules and settings of the kernel that pods need, what names them for the next"
        " boot, how the folders of kubelet, runtime and etcd are mounted, SELinux's modes"
        " and what it denied, the files of firewalld and ufw, and which services load a ruleset at"
        " their start (nftables, iptables, netfilter-persistent)"
    ),
    "kubelet_log": (
        "lines of the kubelet's and the runtime's journal about CPUs, memory, the freezer,"
        " cgroup drivers and open files, and warnings and errors of the start of the kubelet that"
        " runs"
    ),
    "kubelet_end": (
        "the end of the journal of the kubelet's unit, where the kubelet does not run or"
        " systemd started it again recently, and of RKE2 the end of its kubelet.log"
    ),
    "runtime": (
        "the container runtime that the kubelet uses: its units, its socket, and whether it"
        " takes a connection and a call of the CRI there"
    ),
    "component_restart": (
        "how containers of control plane components ended in the last hour, where one does not run"
        " or was started recently: what the runtime has of them, and lines of the journals of"
        " runtime, kubelet and kernel"
    ),
    "cri": (
        "what the container runtime says of itself: version, cgroup driver, network, sandboxes, a"
        " few values of its configuration, and the lines of the files that set them"
    ),
    "cni": (
        "the CNI configurations (names, types and missing files alone), the programs that they"
        " need, and the addresses that host-local reserved, against the runtime's sandboxes"
    ),
    "unit_start": (
        "what systemd checks before it starts a unit of the kubelet, its runtime or the control"
        " plane that does not run: conditions, paths, the units that it needs, and what it said of"
        " them"
    ),
    "api_way": (
        "whether the node reaches the API server of its kubelet's kubeconfig: name,"
        " connection and certificate"
    ),
    "repeated_errors": (
        "errors that the kubelet, its runtime and control plane components that run logged again"
        " and again in the last ten minutes: the most frequent ones, without secrets"
    ),
    "descriptors": (
        "who holds inotify instances, watches, open files and threads, by /proc/*/fd and"
        " /proc/*/status"
    ),
    "pressure": (
        "what is free of the filesystems of the kubelet and of the runtime, of memory, of process"
        " ids and of memory cgroups; for how much of the last minute work stood still for a disk"
    ),
    "largest": (
        "where one of these is nearly used up: the largest folders of that filesystem, the"
        " largest processes"
    ),
    "hangs": (
        "processes in state D that do not go on for four seconds, mounts of remote file systems"
        " that do not answer, disks that complete no request meanwhile, and parents of many zombies"
    ),
    "network": (
        "name servers that pods inherit, interfaces, their addresses and routes, what"
        " systemd-networkd and NetworkManager do with those of others, which backends of iptables"
        " have rules of Services, and how full the kernel's tables of connections and neighbours"
        " are"
    ),
    "kernel_log": (
        "what the kernel said in the last hour of memory, disks, network cards, GPUs, remote file"
        " systems and what it refused, from /dev/kmsg: one line of each kind, with its count"
    ),
    "space": (
        "what is free on the file systems of etcd, the kubelet, the runtime, /run, logs and this"
        " collection's journal, and whether they are read-only; the size of etcd's database file"
    ),
    "next_start": (
        "what the next start of the node reads: whether the programs of kubelet and runtime, and"
        " containerd's files, are those that started, sources of fstab that are not there, other"
        " kernels and their modules, NVIDIA's driver and libraries, and which packages apt, dnf or"
        " yum upgrades by itself"
    ),
    "address_holders": (
        "who has the ports at which a program of the node could not listen, as the lines of other"
        " collectors say: the name, pid, unit or pod of the process, by /proc"
    ),
    "path_states": (
        "what lies at the paths that programs of the node could not open, as the lines of other"
        " collectors say: kind, owner, mode, the folders above and the mount, and no contents"
    ),
    "package_changes": (
        "packages of the kubelet, its runtime, the kernel and the network that were installed,"
        " upgraded or removed in the last week, by the logs of dpkg and dnf"
    ),
    "journal": (
        "what earlier runs changed on this node, what they left unfinished, and who holds its lock"
    ),
}
CLUSTER = {
    "server": "where the API was asked, and what it says of itself",
    "endpoints": (
        "addresses of the API servers: Endpoints, which every release serves, else EndpointSlices"
    ),
    "nodes": "the cluster's nodes by name",
    "kubeadm_config": "kubeadm's record of the cluster",
    "kubelet_configs": "what kubeadm writes into the kubelets' configuration",
    "cluster_info": "the address and the authority by which new nodes find the cluster",
    "locks": "lock objects as each API server shows them, read again while their holders differ",
    "jobs": "jobs with more pods than they should have",
    "rejected": "pods that a kubelet rejected, and what else lies on their nodes",
    "pending": "pods that no scheduler finds a node for",
    "pod_start": (
        "pods that a kubelet accepted and that do not start, by node, what kubelets report of them,"
        " to which nodes volumes are attached where that keeps pods from starting, and which of"
        " the cluster's own pods fail their probes"
    ),
    "pod_states": "all pods that have a node, counted by node and state, and those that do not end",
    "pinnable": "pods and workloads that look meant for CPU pinning and get none",
    "pod": (
        "the pod that was asked for, or one of those that were rejected, with all that"
        " happened to it and to its siblings"
    ),
    "work": (
        "runs of kubemend that hold this node or work on it: who asks about other hosts alone does"
        " not read its journal"
    ),
    "webhooks": (
        "webhooks of admission that refuse what they are asked about where no server answers, and"
        " whether their services have a ready address"
    ),
    "api_services": "API groups that another server than the API server serves, and which fail",
    "unmade": "pods that are not there: who was refused one, and nodes that a DaemonSet leaves out",
    "object_events": (
        "events of the last hour about Nodes, Services, claims and volumes: of each cause the"
        " newest one, with its count"
    ),
    "disruption_budgets": (
        "PodDisruptionBudgets that let no pod go, and pods that a drain would have to evict"
    ),
}
# They read every pod: only asked for where a fault needs them.
DEEP_CLUSTER = ("pod_states", "pinnable")
