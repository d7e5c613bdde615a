# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that make the cluster itself, in whatever namespace they are.

Operators and charts put the network and the storage of nodes into namespaces of any name. What such
a pod is, its containers tell: only a driver of CSI has the programs that register it.
"""

import re

from . import system_namespaces

# What registers a driver of CSI with the kubelet, and what serves the API for one.
_SIDECAR = re.compile(
    r"(?:^|-)(?:driver|plugin)-registrar$|^csi-(?:provisioner|attacher|resizer|snapshotter)$"
)
# What serves the volumes of a node in such a pod.
_DRIVER = re.compile(r"^csi-\w{1,30}plugin$")
# Agents of networks, storage and devices, by containers that no other program has.
AGENTS = frozenset(
    (
        "antrea-agent",
        "aws-node",
        "calico-node",
        "cilium-agent",
        "cilium-operator",
        "drbd-module-loader",
        "kernel-module-injector",
        "kindnet-cni",
        "kube-flannel",
        "kube-multus",
        "kube-router",
        "linstor-satellite",
        "longhorn-manager",
        "metallb-speaker",
        "node-disk-manager",
        "nvidia-container-toolkit-ctr",
        "nvidia-driver-ctr",
        "ovn-controller",
        "ovnkube-controller",
        "ovnkube-node",
    )
)
SPEAKER, METALLB = "speaker", "metallb"  # the former is a name for other programs, too


def is_one(namespace, pod, containers):
    """Return whether a pod is one of the cluster's own, by its namespace or its containers."""
    return system_namespaces.is_one(namespace) or is_agent(namespace, pod, containers)


def is_add_on(namespace, pod, container):
    """Return whether a container is one of an add-on, and none that nodes need themselves."""
    if not system_namespaces.is_add_on(namespace, pod):
        return False
    return not is_agent(namespace, pod, [container]) and _DRIVER.search(container) is None


def is_agent(namespace, pod, containers):
    """Return whether a pod with these containers gives a node its network, storage or devices."""
    if SPEAKER in containers and METALLB in f"{namespace}/{pod}":
        return True
    return any(name in AGENTS or _SIDECAR.search(name) for name in containers)
