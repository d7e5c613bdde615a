# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import pod_roles
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.pod_errors import PodError


@pytest.mark.parametrize(
    ("pod", "container", "role", "place"),
    [
        ("calico-node-x2x4z", "calico-node", "network", "network"),
        ("calico-kube-controllers-6d4b75cb6d-x2x4z", "", "calico-kube-controllers", "network"),
        ("coredns-6d4b75cb6d-x2x4z", "coredns", "dns", "dns"),
        ("kube-proxy-x2x4z", "kube-proxy", "kube-proxy", "kube-proxy"),
        ("ebs-csi-node-x2x4z", "ebs-plugin", "ebs-plugin", "csi"),
        ("nvidia-device-plugin-daemonset-x2x4z", "ctr", "ctr", "device-plugin"),
        ("aws-cloud-controller-manager-x2x4z", "aws", "cloud-controller-manager", "cloud"),
        (
            "mofed-ubuntu24.04-84cb6b9485-ds-x2x4z",
            "mofed-container",
            "mofed-container",
            "device-plugin",
        ),
        (
            "hami-scheduler-6d4b75cb6d-x2x4z",
            "vgpu-scheduler-extender",
            "vgpu-scheduler-extender",
            "device-plugin",
        ),
        ("virt-handler-x2x4z", "virt-launcher", "virt-launcher", "virt-handler"),
        ("intel-qat-plugin-x2x4z", "intel-qat-plugin", "intel-qat-plugin", "device-plugin"),
        ("kube-vip-w1", "kube-vip", "kube-vip", "kube-vip"),
        ("topolvm-node-x2x4z", "topolvm-node", "topolvm-node", "csi"),
        ("local-path-provisioner-6d4b75cb6d-x2x4z", "", "local-path-provisioner", "csi"),
        ("nfs-subdir-external-provisioner-6d4b75cb6d-x2x4z", "nfs", "nfs", "csi"),
        ("hostpath-provisioner-6d4b75cb6d-x2x4z", "", "hostpath-provisioner", "csi"),
    ],
)
def test_names_tell_the_part_of_the_cluster(
    pod: str, container: str, role: str, place: str
) -> None:
    row = PodError("kube-system", pod, container, "")
    assert pod_roles.role(row) == role
    assert place in pod_roles.places(row)


@pytest.mark.parametrize("pod", ["hamilton-web-x2x4z", "ascending-x2x4z", "thermofed-x2x4z"])
def test_a_name_of_devices_within_another_word_tells_nothing(pod: str) -> None:
    assert "device-plugin" not in pod_roles.places(PodError("monitoring", pod, "web", ""))
