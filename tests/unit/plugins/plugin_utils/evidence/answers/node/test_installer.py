# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The traces of installers on a host."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    installer,
)
from tests.unit.support import answers

INSTALLER = answers.recorded("v1.18.4-component-ends", "m1", "installer")


def test_a_node_that_kubeadm_installed():
    answer = answers.typed(installer.Installer, INSTALLER)
    assert answer.paths == (
        "/etc/kubernetes/admin.conf",
        "/var/lib/kubelet/kubeadm-flags.env",
    )
    assert (answer.kubelet_exe, answer.traces) == ("/usr/bin/kubelet", None)


def test_no_traces_is_not_the_same_as_an_older_release():
    assert answers.typed(installer.Installer, {**INSTALLER, "traces": []}).traces == ()
    decoded = decode.decode(installer.Installer, {**INSTALLER, "traces": "/etc/kubernetes"})
    assert (decoded.malformed, decoded.answer.traces) == (("traces",), None)
    assert decoded.answer.kubelet_exe == "/usr/bin/kubelet"


def test_a_path_that_is_no_text_is_dropped():
    decoded = answers.changed(installer.Installer, INSTALLER, "paths", 0, value=False)
    assert decoded.malformed == ("paths[0]",)
    assert decoded.answer.paths == ("/var/lib/kubelet/kubeadm-flags.env",)
