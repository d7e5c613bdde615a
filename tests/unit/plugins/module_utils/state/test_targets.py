# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every entry of a journal has one target, by the beginning of its `real`, and a writer."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import targets


@pytest.mark.parametrize(
    ("real", "name"),
    [
        ("configmap:kube-system/kubeadm-config#ClusterConfiguration", targets.API_OBJECT),
        ("workload:/apis/apps/v1/namespaces/a/deployments/b", targets.API_OBJECT),
        ("unit:kubelet.service", targets.SYSTEMD_UNIT),
        ("unit:/etc/systemd/system/kubelet.service", targets.SYSTEMD_UNIT),
        ("packages:containerd:amd64,runc:amd64", targets.PACKAGE_SELECTION),
        ("level:kube-scheduler", targets.LOG_VERBOSITY),
        ("level:kubelet/w1", targets.LOG_VERBOSITY),
        ("/etc/kubernetes/manifests/kube-scheduler.yaml", targets.FILE),
    ],
)
def test_the_beginning_of_real_names_the_target(real, name):
    target = targets.target_of({"real": real})
    assert target.name == name
    assert target.is_file is (name == targets.FILE)
    assert target.readable is (name != targets.LOG_VERBOSITY)
