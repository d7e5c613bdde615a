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
# Storage, load balancers and drivers of GPUs, as their own installations name them: nodes do not
# work without them, and what one of them repeats while it runs is not judged.
ADDONS = (
    "gpu-operator",
    "gpu-operator-resources",
    "longhorn-system",
    "metallb-system",
    "nvidia-gpu-operator",
    "openebs",
    "rook-ceph",
    "topolvm-system",
    "trident",
)


def is_one(namespace):
    """Return whether a namespace is one of the cluster's own."""
    return namespace in NAMES or str(namespace).startswith(PREFIXES)


def is_addon(namespace):
    """Return whether a namespace is that of an addon which nodes do not work without."""
    return namespace in ADDONS
