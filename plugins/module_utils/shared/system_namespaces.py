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


def is_one(namespace):
    """Return whether a namespace is one of the cluster's own."""
    return namespace in NAMES or str(namespace).startswith(PREFIXES)
