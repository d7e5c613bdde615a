# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods make the cluster, by their namespaces and their containers."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import own_pods


@pytest.mark.parametrize(
    ("namespace", "pod", "containers", "is_one"),
    [
        ("kube-system", "a", ["app"], True),
        ("rook-ceph", "csi-rbdplugin-bcdfg", ["csi-rbdplugin", "driver-registrar"], True),
        ("x", "longhorn-csi-plugin-bcdfg", ["longhorn-csi-plugin", "node-driver-registrar"], True),
        ("x", "ebs-csi-controller-bcdfg", ["ebs-plugin", "csi-provisioner"], True),
        ("longhorn-system", "longhorn-manager-bcdfg", ["longhorn-manager"], True),
        ("metallb-system", "speaker-bcdfg", ["speaker", "frr"], True),
        ("net", "metallb-speaker-bcdfg", ["speaker"], True),
        ("canal", "x", ["calico-node"], True),
        ("ovn-kubernetes", "ovnkube-node-bcdfg", ["nb-ovsdb", "ovn-controller"], True),
        ("ovn-kubernetes", "ovnkube-node-bcdfg", ["ovnkube-node"], True),
        ("net", "cilium-operator-bcdfg", ["cilium-operator"], True),
        # workloads of users, also in such namespaces, and of names that are like those
        ("rook-ceph", "rook-ceph-tools-bcdfg", ["rook-ceph-tools"], False),
        ("conference", "speaker-bcdfg", ["speaker"], False),
        ("a", "domain-registrar-bcdfg", ["registrar"], False),
        ("a", "csi-bcdfg", ["csi"], False),
        ("a", "b", [], False),
    ],
)
def test_a_pod(namespace, pod, containers, is_one):
    assert own_pods.is_one(namespace, pod, containers) is is_one


@pytest.mark.parametrize(
    ("namespace", "pod", "container", "is_add_on"),
    [
        ("cert-manager", "cert-manager-webhook-bcdfg", "cert-manager-webhook", True),
        ("rook-ceph", "rook-ceph-operator-bcdfg", "rook-ceph-operator", True),
        # what nodes need themselves, also in such namespaces
        ("rook-ceph", "csi-rbdplugin-bcdfg", "csi-rbdplugin", False),
        ("longhorn-system", "longhorn-manager-bcdfg", "longhorn-manager", False),
        ("gpu-operator", "nvidia-device-plugin-daemonset-bcdfg", "ctr", False),
        ("kube-system", "coredns-bcdfg", "coredns", False),
        ("a", "b", "c", False),
    ],
)
def test_a_container_of_an_add_on(namespace, pod, container, is_add_on):
    assert own_pods.is_add_on(namespace, pod, container) is is_add_on
