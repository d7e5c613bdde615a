# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Namespaces of the pods that make the cluster itself: proxies, networks, DNS, cloud managers."""

import re

NAMES = (
    "kube-system",
    "kube-flannel",
    "kube-proxy",
    "kube-router",
    "calico-system",
    "tigera-operator",
    "cilium",
)
PREFIXES = ("openshift-",)
# Of add-ons that the cluster's traffic, volumes and certificates need. What their pods say may be
# about one object of users, so it counts only where its cause is known.
ADD_ONS = (
    "amd-gpu",
    "calico-apiserver",
    "cattle-fleet-system",
    "cattle-system",
    "cert-manager",
    "democratic-csi",
    "dra-driver-nvidia-gpu",
    "gpu-operator",
    "gpu-operator-resources",
    "habana-system",
    "hami-system",
    "ingress-nginx",
    "inteldeviceplugins-system",
    "kube-amd-gpu",
    "kubevirt",
    "linstor",
    "local-path-storage",
    "longhorn-system",
    "mayastor",
    "metallb-system",
    "network-operator",
    "node-feature-discovery",
    "nvidia-dra-driver-gpu",
    "nvidia-gpu-operator",
    "nvidia-network-operator",
    "openebs",
    "piraeus-datastore",
    "rook-ceph",
    "sriov-network-operator",
    "topolvm-system",
    "trident",
    "volcano-system",
    "vmware-system-csi",
)
# Pods of these names run on each node, in whatever namespace a chart was installed.
OF_NODES = re.compile(
    r"(?:^|-)(?:dra-kubelet-plugin|kata-deploy|mofed|node-exporter|node-labeller"
    r"|node-problem-detector|nydus-snapshotter|sriov-network-config-daemon|virt-handler)(?:-|$)"
)
MIG_MANAGER = "mig-manager"
# The short names are whole words: a pod of users may have gpu-dpdk in its name.
DEVICE_PLUGINS = re.compile(
    r"device-?plugin|sriovdp|smarter-device-manager"
    # of RDMA, KubeVirt's of NVIDIA, and of Intel
    r"|(?:^|-)(?:(?:device|gpu|shared)-dp|(?:dlb|dsa|fpga|gpu|iaa|npu|qat|sgx)-plugin)(?:-|$)"
)


def is_one(namespace):
    """Return whether a namespace is one of the cluster's own."""
    return namespace in NAMES or str(namespace).startswith(PREFIXES)


def is_add_on(namespace, pod):
    """Return whether a pod is one of an add-on or an agent of nodes, and no device plugin."""
    if is_device_plugin(pod):
        return False
    return namespace in ADD_ONS or OF_NODES.search(pod) is not None


def is_device_plugin(pod):
    """Return whether a pod of this name is a device plugin."""
    return DEVICE_PLUGINS.search(pod) is not None


def is_of_devices(pod):
    """Return whether a pod of this name looks at a node's devices, and says once what it misses."""
    return is_device_plugin(pod) or MIG_MANAGER in pod
