# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import other_folders
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Detection
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.cni_folders import (
    CniFolders,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet_root import Root
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import EvidenceRef

HIT = Detection("it says x", (), "look at x")
TEXT = "stat /etc/cni/net.d/multus.d/multus.kubeconfig: no such file or directory"


def test_the_folder_of_a_kubelet_is_in_the_finding():
    proof = EvidenceRef("process", "w1", text="its folder: /data")
    found = other_folders.with_root(HIT, Root("its folder is /data", "give it /data", proof))
    assert found.summary == "it says x; its folder is /data"
    assert found.remedy == "give it /data; look at x"
    assert found.evidence == (proof,)
    assert other_folders.with_root(HIT, None) is HIT


def test_the_folders_of_the_cni_are_in_the_finding():
    host = SimpleNamespace(cni_folders=CniFolders("/data/net.d"))
    found = other_folders.with_cni(HIT, host, TEXT)
    assert found.summary.startswith("it says x; ")
    assert "/data/net.d" in found.summary
    assert found.remedy.endswith("; look at x")
    assert other_folders.with_cni(HIT, host, "something else") is HIT
    assert other_folders.with_cni(HIT, None, TEXT) is HIT
