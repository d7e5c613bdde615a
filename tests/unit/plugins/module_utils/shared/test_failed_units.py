# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What units are for."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import failed_units


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("iscsid.service", "storage"),
        ("chronyd.service", "clock"),
        ("nvidia-k8s-device-plugin.service", "devices"),
        ("nvidia-persistenced.service", "devices"),
        ("kube-vip-helper.service", "cluster"),
        ("cloud-final.service", "cluster"),
        ("kubeadm.service", "cluster"),
        ("nodeadm-run.service", "cluster"),
        ("kube-proxy.service", "proxy"),
        ("kubelet.service", ""),
        ("kube-apiserver.service", ""),
        ("containerd.service", ""),
        ("systemd-networkd-wait-online.service", ""),
        ("fwupd-refresh.service", ""),
        ("iscsid.socket", ""),
        ("var-lib-etcd.mount", "folder"),
        ("var-lib-kubelet-pods-0a3407de-volumes.mount", ""),
        ("run-user-1000.mount", ""),
        ("", ""),
    ],
)
def test_a_unit(name, group):
    assert failed_units.group(name) == group
