# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The advice for each cause of a kubelet's exit."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node import (
    kubelet_exit_advice,
)
from tests.unit.support.fake_kubelet_messages import (
    CASES,
)


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        ("swap", "KM504"),
        ("cpu_manager_state", "KM301"),
        ("memory_manager_state", "KM310"),
        ("inotify", "KM401"),
        ("limits", "KM409"),
    ],
)
def test_a_cause_that_another_fault_owns_is_named_with_its_code(cause, code):
    assert code in kubelet_exit_advice.words(cause, "x")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/var/lib/kubelet/config.yaml", "kubeadm upgrade node phase kubelet-config"),
        ("/var/lib/kubelet/pod_status_manager_state", "drain the node, and move"),
        ("/var/lib/kubelet/pki/kubelet-server-current.pem", "makes another"),
        ("/etc/kubernetes/pki/ca.crt", "from a node of the same cluster"),
        ("/etc/kubernetes/kubelet.conf", "system:node:w1"),
        (
            "/etc/kubernetes/kubelet-config.yaml",
            "kubespray's cluster.yml with --tags node and --limit",
        ),
    ],
)
def test_each_file_has_its_own_way_back(path, words):
    assert words in kubelet_exit_advice.emptied(path, "w1")


def test_the_values_that_protect_kernel_defaults_wants():
    assert "vm.overcommit_memory=1 kernel.panic=10 " in kubelet_exit_advice.cure(
        "kernel_defaults", "vm/overcommit_memory, kernel/panic", "w1", ""
    )


def test_every_cause_has_a_name():
    for cause in {case[2] for case in CASES} | {"limits", "oom_kill", "executable", "node_name"}:
        for what in ("", "x"):
            assert kubelet_exit_advice.words(cause, what) not in (
                "",
                cause,
            )
            assert "{" not in kubelet_exit_advice.words(cause, what)
