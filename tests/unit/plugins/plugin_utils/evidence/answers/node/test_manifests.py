# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of the static pod directory."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    manifests,
)
from tests.unit.support import answers

MANIFESTS = answers.recorded("v1.36.3-healthy", "m1", "manifests")


def test_the_manifests_of_a_control_plane_node():
    answer = answers.typed(manifests.Manifests, MANIFESTS)
    assert (answer.folder, answer.is_mount) == ("/etc/kubernetes/manifests", False)
    assert [item.name for item in answer.files] == [
        "etcd.yaml",
        "kube-apiserver.yaml",
        "kube-controller-manager.yaml",
        "kube-scheduler.yaml",
    ]
    assert all(item.text.startswith("apiVersion: v1\nkind: Pod\n") for item in answer.files)
    assert {(item.kind, item.mode, item.error) for item in answer.files} == {("file", "0600", None)}


def test_files_that_the_kubelet_does_not_read():
    answer = answers.typed(manifests.Manifests, {**MANIFESTS, "ignored": [".scheduler.swp"]})
    assert answer.ignored == (".scheduler.swp",)


def test_a_manifest_of_another_type_is_dropped():
    decoded = answers.changed(manifests.Manifests, MANIFESTS, "files", 0, value="etcd.yaml")
    assert decoded.malformed == ("files[0]",)
    assert len(decoded.answer.files) == 3


def test_the_text_of_a_manifest_is_no_mapping():
    decoded = answers.changed(
        manifests.Manifests, MANIFESTS, "files", 3, "text", value={"kind": "Pod"}
    )
    assert decoded.malformed == ("files[3].text",)
    file = decoded.answer.files[3]
    assert (file.text, file.name) == (None, "kube-scheduler.yaml")


def test_whether_the_directory_is_a_mount_is_unknown_where_it_is_a_number():
    decoded = answers.changed(manifests.Manifests, MANIFESTS, "is_mount", value=0)
    assert (decoded.malformed, decoded.answer.is_mount) == (("is_mount",), None)
