# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: collector installer."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os

from ansible_collections.kubemend.remediation.plugins.module_utils.collect import procfs

MARKERS = (
    "/etc/kubernetes/admin.conf", "/var/lib/kubelet/kubeadm-flags.env",  # kubeadm
    "/etc/kubernetes/kubelet.env", "/etc/kubernetes/kubelet-config.yaml", "/etc/kubernetes/kubeadm-config.yaml", "/etc/kubernetes/ssl",  # kubespray
    "/etc/rancher/rke2", "/var/lib/rancher/rke2", "/etc/rancher/k3s", "/var/lib/rancher/k3s",
    "/opt/kops", "/etc/sysconfig/kubelet", "/var/lib/kubelet/kubeconfig", "/var/cache/nodeup", "/opt/kops/conf/kube_env.yaml",  # kOps
    "/etc/machine-config-daemon", "/etc/kubernetes/static-pod-resources", "/run/ostree-booted",  # OpenShift
    "/var/snap/microk8s", "/snap/microk8s",
)


def collect(context):
    """Which installers left something here."""
    context.source = "the paths themselves"
    return {"paths": [path for path in MARKERS if os.path.lexists(path)], "kubelet_exe": _kubelet_exe(context.processes)}


def _kubelet_exe(processes):
    for pid, comm in processes:
        if procfs.NAMES[comm] == "kubelet":
            exe = procfs.link(pid, "exe")
            if exe:
                return exe
    return None
