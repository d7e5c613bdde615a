# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which namespaces hold the pods that make the cluster."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import system_namespaces


@pytest.mark.parametrize(
    ("namespace", "is_one"),
    [
        ("kube-system", True),
        ("calico-system", True),
        ("openshift-sdn", True),
        ("default", False),
        ("kube-system-2", False),
        ("my-openshift-sdn", False),
        (None, False),
    ],
)
def test_a_namespace(namespace, is_one):
    assert system_namespaces.is_one(namespace) is is_one


@pytest.mark.parametrize(
    ("namespace", "pod", "is_add_on"),
    [
        ("metallb-system", "speaker-abcde", True),
        ("gpu-operator", "gpu-operator-abcde", True),
        ("gpu-operator", "nvidia-device-plugin-daemonset-abcde", False),
        ("kube-system", "coredns-abcde", False),
        ("kubevirt", "virt-handler-abcde", True),
        ("kube-amd-gpu", "default-node-labeller-abcde", True),
        # agents of nodes, which charts put anywhere
        ("monitoring", "prometheus-node-exporter-abcde", True),
        ("a", "virt-handler-abcde", True),
        ("a", "virt-launcher-web-abcde", False),
        ("a", "mofed-ubuntu24.04-84cb6b9485-ds-abcde", True),
        # words of users' pods that have such a name within them
        ("a", "thermofed-web-abcde", False),
        ("a", "kata-deployments-ui-abcde", False),
        ("default", "metallb-system", False),
    ],
)
def test_an_add_on(namespace, pod, is_add_on):
    assert system_namespaces.is_add_on(namespace, pod) is is_add_on


@pytest.mark.parametrize(
    ("pod", "is_plugin", "is_of_devices"),
    [
        ("nvidia-device-plugin-bcdfg", True, True),
        ("intel-qat-plugin-bcdfg", True, True),
        ("nvidia-kubevirt-gpu-dp-daemonset-bcdfg", True, True),
        ("nvidia-mig-manager-bcdfg", False, True),
        ("calico-node-bcdfg", False, False),
        ("rdma-shared-dp-ds-bcdfg", True, True),
        ("intel-gpu-plugin-bcdfg", True, True),
        ("gpu-dpdk-forwarder-bcdfg", False, False),
        ("input-gpu-plugins-bcdfg", False, False),
    ],
)
def test_what_looks_at_devices(pod, is_plugin, is_of_devices):
    assert system_namespaces.is_device_plugin(pod) == is_plugin
    assert system_namespaces.is_of_devices(pod) == is_of_devices
