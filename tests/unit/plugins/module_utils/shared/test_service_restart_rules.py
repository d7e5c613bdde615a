# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hangs on the restart of a service."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    service_restart_rules,
)


@pytest.mark.parametrize(
    "name",
    [
        "kubelet.service",
        "k3s.service",
        "systemd-journald.service",
        "dbus.service",
        "etcd.service",
        "kube-apiserver.service",
    ],
)
def test_more_than_a_service_hangs_on_some(name):
    assert "more than a service hangs on it" in service_restart_rules.never_reason(name)
    assert service_restart_rules.never_reason("containerd.service") is None
    assert service_restart_rules.never_reason("ssh.service") is None
