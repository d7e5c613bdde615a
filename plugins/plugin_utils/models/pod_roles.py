# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which part of the cluster one of its own pods is, by the names of its container and itself. Pure.

The part, and the names, are also the places by which known messages are looked up.
"""

from __future__ import annotations

import re
from typing import Protocol

CLOUD = "cloud-controller-manager"
NETWORK, CSI, DEVICES = "network", "csi", "device-plugin"
BALANCER = "svclb"
NAMES_OF_DNS = ("coredns", "kube-dns", "dns", "dnsmasq", "node-cache")
NETWORKS = (
    "calico-node",
    "cilium-agent",
    "kube-flannel",
    "flannel",
    "weave",
    "kube-router",
    "aws-node",
    "antrea-agent",
    "antrea-ovs",
    "kindnet-cni",
    "ovnkube-controller",
    "ovnkube-node",
    "cni-server",
    "install-cni",
    "install-cni-plugin",
)
_GENERATED = re.compile(
    r"(?:-[bcdfghjklmnpqrstvwxz2456789]{6,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}$"
)
_NETWORK = re.compile(
    r"calico|tigera|cilium|flannel|weave|kube-router|aws-node|vpc-cni|antrea|kindnet|ovn|ovs"
    r"|kube-ovn|multus|whereabouts|sriov|canal|azure-cn|cni\b"
)
_CSI = re.compile(
    r"csi|longhorn|rook|ceph|openebs|mayastor|nfs-(?:node|[\w-]{0,30}provisioner)|trident|linstor"
    r"|piraeus|drbd|topolvm|local-path|hostpath-provisioner"
)
_DRIVER = re.compile(r"\bcsi\b|csi-\w*plugin|longhorn-manager|linstor-satellite")
_DEVICES = re.compile(
    r"device-?plugin|nvidia|gpu|dcgm|habana|rdma|\bmofed\b|\bascend\b|\bhami\b|sriovdp"
    r"|(?:dlb|dsa|fpga|iaa|npu|qat|sgx)-plugin|smarter-device|\bdra\b"
)
# The load balancer of K3s, of whose pods each is named after its Service.
_BALANCER = re.compile(r"\bsvclb-")
_PARTS = ((NETWORK, _NETWORK), (CSI, _CSI), (DEVICES, _DEVICES), (BALANCER, _BALANCER))


class OwnPod(Protocol):
    """A container of one of the cluster's own pods."""

    @property
    def namespace(self) -> str:
        """Return its namespace."""

    @property
    def pod(self) -> str:
        """Return the name of its pod."""

    @property
    def container(self) -> str:
        """Return the name of the container, or an empty text."""


def name(pod: OwnPod) -> str:
    """Return the name of a container, or else of its workload."""
    return pod.container or workload(pod)


def workload(pod: OwnPod) -> str:
    """Return the name of a pod without what a controller adds to it."""
    return _GENERATED.sub("", pod.pod)


def role(pod: OwnPod) -> str:
    """Return which part of the cluster a pod is: its container, or else its name."""
    container = name(pod)
    if CLOUD in container or CLOUD in pod.pod:
        return CLOUD
    if container in NETWORKS or workload(pod) in NETWORKS:
        return NETWORK
    return "dns" if container in NAMES_OF_DNS else container


def is_driver(pod: OwnPod) -> bool:
    """Tell whether a pod is a driver of storage, by the names of its container and itself."""
    return _DRIVER.search(f"{pod.container} {pod.pod}") is not None


def places(pod: OwnPod) -> frozenset[str]:
    """Return the places by which known messages of a pod are looked up."""
    names = {name(pod), workload(pod), role(pod)}
    if CLOUD in names:
        names.add("cloud")
    text = f"{pod.namespace} {pod.pod} {pod.container}"
    names.update(part for part, pattern in _PARTS if pattern.search(text))
    return frozenset(names)
