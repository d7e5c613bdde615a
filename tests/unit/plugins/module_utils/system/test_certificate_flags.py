# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flags that name certificates, and manifests that have them."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    certificate_flags,
)

MANIFEST = """apiVersion: v1
kind: Pod
metadata:
  name: etcd
spec:
  containers:
  - name: etcd
    command:
    - etcd
    - --cert-file=/etc/kubernetes/pki/etcd/server.crt
    - "--key-file=/etc/kubernetes/pki/etcd/server.key"
    image: registry/etcd:3.5
"""


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["c", "--key=/a", "--key=/b"], ["/a", "/b"]),
        (["c", "--key", "/a"], ["/a"]),
        (["c", "-key=/a"], ["/a"]),
        (["c", "--other=/a", "key=/b", "--key"], []),
        (["c", "--key="], []),
    ],
)
def test_every_value_of_a_flag_counts(argv, expected):
    assert certificate_flags.values(argv, "key") == expected


def test_underscores_are_hyphens():
    assert certificate_flags.values(["c", "--tls_cert_file=/a"], "tls-cert-file") == ["/a"]


@pytest.mark.parametrize("command", ["etcd", "/usr/local/bin/etcd"])
def test_a_manifest_has_the_arguments_of_its_component(command):
    component, argv = certificate_flags.argv_of_manifest(
        MANIFEST.replace("- etcd\n", f"- {command}\n")
    )
    assert component == "etcd"
    assert certificate_flags.values(argv, "cert-file") == ["/etc/kubernetes/pki/etcd/server.crt"]
    assert certificate_flags.values(argv, "key-file") == ["/etc/kubernetes/pki/etcd/server.key"]


@pytest.mark.parametrize("text", ["", "kind: Pod", "- command", "- kube-proxy\n- --config=/a"])
def test_another_manifest_has_none(text):
    assert certificate_flags.argv_of_manifest(text) == (None, [])


@pytest.mark.parametrize(
    ("component", "flag", "kind"),
    [
        ("etcd", "cert-file", "certificate"),
        ("etcd", "trusted-ca-file", "authority"),
        ("etcd", "peer-key-file", "key"),
        ("kubelet", "server-ca", "authority"),
        ("etcd", "healthcheck-client", "certificate"),
    ],
)
def test_the_kind_of_a_file(component, flag, kind):
    assert certificate_flags.kind_of(component, flag) == kind


def test_each_known_file_is_of_a_kind():
    rows = (*certificate_flags.USUAL, *certificate_flags.RANCHER_SERVER)
    for component, flag, name in rows:
        kind = certificate_flags.kind_of(component, flag)
        is_key = name.endswith((".key", ".pub"))
        assert (kind == certificate_flags.KEY) is is_key
