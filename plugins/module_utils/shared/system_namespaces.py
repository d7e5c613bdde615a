# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Namespaces of the pods that make the cluster itself: proxies, networks, DNS, cloud managers."""

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
OF_NODES = (
    "dra-kubelet-plugin",
    "kata-deploy",
    "mofed-",
    "node-exporter",
    "node-labeller",
    "node-problem-detector",
    "nydus-snapshotter",
    "sriov-network-config-daemon",
    "virt-handler",
)
MIG_MANAGER = "mig-manager"
DEVICE_PLUGINS = (
    "device-plugin",
    "device-dp",
    "deviceplugin",
    "shared-dp",
    # of Intel, KubeVirt's of NVIDIA, and SR-IOV
    "dlb-plugin",
    "dsa-plugin",
    "fpga-plugin",
    "gpu-dp",
    "gpu-plugin",
    "iaa-plugin",
    "npu-plugin",
    "qat-plugin",
    "sgx-plugin",
    "sriovdp",
    "smarter-device-manager",
)


def is_one(namespace):
    """Return whether a namespace is one of the cluster's own."""
    return namespace in NAMES or str(namespace).startswith(PREFIXES)


def is_add_on(namespace, pod):
    """Return whether a pod is one of an add-on or an agent of nodes, and no device plugin."""
    if is_device_plugin(pod):
        return False
    return namespace in ADD_ONS or any(word in pod for word in OF_NODES)


def is_device_plugin(pod):
    """Return whether a pod of this name is a device plugin."""
    return any(word in pod for word in DEVICE_PLUGINS)


def is_of_devices(pod):
    """Return whether a pod of this name looks at a node's devices, and says once what it misses."""
    return is_device_plugin(pod) or MIG_MANAGER in pod
