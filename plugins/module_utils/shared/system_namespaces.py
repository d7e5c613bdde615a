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
    "calico-apiserver",
    "cattle-fleet-system",
    "cattle-system",
    "cert-manager",
    "gpu-operator",
    "gpu-operator-resources",
    "ingress-nginx",
    "local-path-storage",
    "longhorn-system",
    "metallb-system",
    "nvidia-gpu-operator",
    "openebs",
    "rook-ceph",
    "topolvm-system",
    "trident",
    "vmware-system-csi",
)
MIG_MANAGER = "mig-manager"
DEVICE_PLUGINS = ("device-plugin", "device-dp", "deviceplugin", "shared-dp")


def is_one(namespace):
    """Return whether a namespace is one of the cluster's own."""
    return namespace in NAMES or str(namespace).startswith(PREFIXES)


def is_add_on(namespace, pod):
    """Return whether a pod is one of an add-on; a device plugin is the cluster's own."""
    return namespace in ADD_ONS and not is_device_plugin(pod)


def is_device_plugin(pod):
    """Return whether a pod of this name is a device plugin."""
    return any(word in pod for word in DEVICE_PLUGINS)


def is_of_devices(pod):
    """Return whether a pod of this name looks at a node's devices, and says once what it misses."""
    return is_device_plugin(pod) or MIG_MANAGER in pod
