# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector installer: the traces of installers on this machine."""

import os

from ...system import files, procfs

MARKERS = (
    "/etc/kubernetes/admin.conf",
    "/var/lib/kubelet/kubeadm-flags.env",  # kubeadm
    # kubespray
    "/etc/kubernetes/kubelet.env",
    "/etc/kubernetes/kubelet-config.yaml",
    "/etc/kubernetes/kubeadm-config.yaml",
    "/etc/kubernetes/ssl",
    "/etc/rancher/rke2",
    "/var/lib/rancher/rke2",
    "/etc/rancher/k3s",
    "/var/lib/rancher/k3s",
    # kOps
    "/opt/kops",
    "/etc/sysconfig/kubelet",
    "/var/lib/kubelet/kubeconfig",
    "/var/cache/nodeup",
    "/opt/kops/conf/kube_env.yaml",
    # OpenShift
    "/etc/machine-config-daemon",
    "/etc/kubernetes/static-pod-resources",
    "/run/ostree-booted",
    "/var/snap/microk8s",
    "/snap/microk8s",
)
# What a Kubernetes node has of any kind: a machine with none of these, and no process, is none.
BINARIES = (
    "/usr/bin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/local/sbin",
    "/bin",
    "/opt/bin",
    "/opt/kubernetes/bin",
    "/usr/libexec/kubernetes",
)
UNITS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
TRACES = (
    "/var/lib/kubelet",
    "/etc/kubernetes",
    "/var/lib/bashible",  # Deckhouse, from its first step on
    "/var/lib/etcd",
    "/etc/etcd",
    "/etc/etcd.env",
    "/var/lib/kubemend/journal",
    "/var/lib/dpkg/info/kubelet.list",
    "/etc/init.d/kubelet",
    "/etc/default/kubelet",
    "/etc/sysconfig/kubelet",
    "/home/kubernetes",
    "/etc/eks",
    "/var/lib/k0s",
    "/etc/k0s",
    "/var/lib/minikube",
    "/var/lib/microshift",
    "/etc/microshift",
    "/etc/kubeedge",
    "/var/lib/rancher",
    "/etc/rancher",
    "/opt/rke",
    "/var/snap/kubelet",
    "/snap/kubelet",
    "/var/snap/k8s",
    "/snap/k8s",
    "/etc/machine-config-daemon",
    "/var/snap/microk8s",
    "/snap/microk8s",
    "/opt/kops",
    "/var/cache/nodeup",
)
TRACES += tuple(
    f"{folder}/{name}" for folder in BINARIES for name in ("kubelet", "k3s", "k0s", "rke2")
)
TRACES += tuple(
    f"{folder}/{name}" for folder in UNITS for name in ("kubelet.service", "kubelet.service.d")
)
PROCESS = "a process"
# The flags of kubelite of MicroK8s and of the components in it; none of them is empty.
ARGUMENTS = tuple(
    "/var/snap/microk8s/current/args/" + name
    for name in (
        "kubelite",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-proxy",
        "kubelet",
    )
)
MAX_ARGUMENTS = 64 * 1024
NOTHING = b"\0 \t\r\n"  # a file system may leave zeros where a machine lost its power


def collect(context):
    """Return which installers left something on this machine.

    traces: what shows that this machine is a node; empty_arguments: files of flags without any.
    """
    context.source = "the paths themselves"
    traces = [path for path in TRACES if os.path.lexists(path)]
    if any(_of_this_machine(pid) for pid, _dummy in context.processes):
        traces.append(PROCESS)
    paths = [path for path in MARKERS if os.path.lexists(path)]
    return {
        "paths": paths,
        "kubelet_exe": _kubelet_exe(context.processes),
        "traces": traces,
        "empty_arguments": [path for path in ARGUMENTS if _is_empty(path)],
    }


def _is_empty(path):
    """Return whether a file is there, is read, and has nothing in it."""
    try:
        return not files.read(path, MAX_ARGUMENTS).strip(NOTHING)
    except OSError:
        return False


def _of_this_machine(pid):
    """Return whether a process is in this process's PID namespace.

    A node in a container makes no node of its host.
    """
    own_namespace, namespace = procfs.link(os.getpid(), "ns/pid"), procfs.link(pid, "ns/pid")
    return own_namespace is None or namespace is None or own_namespace == namespace


def _kubelet_exe(processes):
    for pid, comm in processes:
        if procfs.NAMES[comm] == "kubelet":
            exe = procfs.link(pid, "exe")
            if exe:
                return exe
    return None
