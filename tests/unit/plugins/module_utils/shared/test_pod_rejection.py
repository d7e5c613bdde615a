# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a pod shows that a kubelet rejected it."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared.pod_rejection import (
    rejected,
)


@pytest.mark.parametrize(
    ("phase", "reason", "message", "is_rejected"),
    [
        ("Failed", "UnexpectedAdmissionError", "", True),
        ("Failed", "OutOfcpu", "", True),
        ("Failed", "Outofnvidia.com/gpu", "", True),
        ("Failed", "NodeAffinity", "Pod was rejected: x", True),
        # up to 1.17, with spaces
        ("Failed", "Topology Affinity Error", "", True),
        # up to 1.22
        ("Failed", "AppArmor", "Pod Cannot enforce AppArmor: AppArmor is not enabled", True),
        ("Failed", "SysctlForbidden", 'Pod forbidden sysctl: "net.x" not allowlisted', True),
        ("Failed", "InvalidNodeInfo", "Pod Kubelet cannot get node info.", True),
        ("Failed", "Error", "Pod ended", False),
        ("Failed", "NodeAffinity", "x", False),
        ("Failed", "Evicted", "Pod was rejected: x", False),
        ("Failed", None, "Pod was rejected: x", False),
        ("Running", "OutOfcpu", "", False),
    ],
)
def test_reason_and_message_of_a_rejection(
    phase: str, reason: "str | None", message: str, is_rejected: bool
) -> None:
    status = {"phase": phase, "reason": reason, "message": message}
    assert rejected({"status": status}) is is_rejected


def test_a_pod_without_a_status() -> None:
    assert rejected({}) is False
