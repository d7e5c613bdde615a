# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import kubelet_root
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import pod_start_message

UNKNOWN = "driver name d.example.com not found in the list of registered CSI drivers"
FOLDER = "hostPath type check failed: /var/lib/kubelet/plugins is not a directory"


@pytest.mark.parametrize(
    ("root", "message", "named"),
    [
        ("", UNKNOWN, ""),
        ("/data/kubelet", UNKNOWN, "d.example.com"),
        ("/data/kubelet", FOLDER, "/var/lib/kubelet/plugins"),
        ("/data/kubelet", "mount failed: exit status 32", ""),
        ("/data/kubelet", FOLDER.replace("/var/lib/kubelet", "/var/lib/kubelets"), ""),
    ],
)
def test_what_the_folder_of_a_kubelet_explains(root, message, named):
    host = SimpleNamespace(host="w1", kubelet_root=root)
    cluster = SimpleNamespace(hosts_by_node=lambda: {"w1": host})
    trouble = pod_start_message.trouble("FailedMount", message)
    row = SimpleNamespace(node="w1", text=message, trouble=trouble)
    found = kubelet_root.elsewhere(cluster, row)
    assert (found is not None) is bool(named)
    assert found is None or (named in found.clause and root in found.advice)


PROBE = (
    "Kubelet plugin registration hasn't succeeded yet,"
    " file=/var/lib/kubelet/plugins/d.example.com/registration doesn't exist."
)
DIALLED = "dial unix /var/lib/kubelet/plugins/d.example.com/csi.sock: connect: no such file"


@pytest.mark.parametrize(
    ("root", "message", "is_told"),
    [
        ("/data/kubelet", PROBE, True),
        ("/data/kubelet", DIALLED, True),
        ("", PROBE, False),
        ("/data/kubelet", DIALLED.replace("/var/lib/kubelet", "/data/kubelet"), False),
    ],
)
def test_a_driver_below_the_usual_folder_of_a_kubelet(root, message, is_told):
    host = SimpleNamespace(host="w1", kubelet_root=root)
    cluster = SimpleNamespace(hosts_by_node=lambda: {"w1": host})
    found = kubelet_root.of_driver(cluster, "w1", message)
    assert (found is not None) is is_told
    assert found is None or (root in found.clause and "/plugins/d.example.com/" in found.clause)
    assert kubelet_root.of_driver(cluster, "w2", message) is None
