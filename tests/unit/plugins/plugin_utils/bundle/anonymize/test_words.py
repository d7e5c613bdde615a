# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words that identify no host and no person: what of a text stays because of them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.bundle.anonymize import (
    evidence as anonymize_evidence,
)

SECRET = b"of the test"


def of(*documents, **more):
    return anonymize_evidence.Anonymizer(
        [{"host": "h", "collectors": {}, **one} for one in documents] or [more], SECRET
    )


def test_words_of_kubernetes_stay_whoever_is_called_so():
    change = of({"host": "master"}, {"host": "node"}, {"host": "master-1"})
    text = (
        "node-role.kubernetes.io/master: system:node:x --node-ip node.kubernetes.io/not-ready"
        " kube-system control-plane"
    )
    assert change.text(text) == text
    assert change.text("master-1") != "master-1"
    assert change.text("etcd-master-1").startswith("etcd-host-")


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:10257",
        "0.0.0.0",
        "https://registry.k8s.io/pause:3.9",
        "k8s.gcr.io/etcd:3.4.3-0",
        "v1.36.3",
        "kubernetes.default.svc.cluster.local",
        "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
        "10:13:16.298479",
        "2026-11-21T10:13:18.306797Z",
        "::1",
        "[::]:10250",
        "kubelet.service",
        "/etc/rc.local",
        "nvidia.com/gpu",
        "169.254.169.254",
        "224.0.0.1",
        "remote_runtime.go:237] x",
        "pkg/kubelet/kubelet.go:1:2",
        "/root/.kube/config",
        "/home/kubernetes/bin",
        "6.18.44-fc-v669",
        "cb47b034a368619b1b34f097a9cbfc7ae7915f02dc08c219738a25b8a985e82a",
        "topology.kubernetes.io/zone=eu-1a",
    ],
)
def test_what_names_nobody_stays(text):
    assert of({"host": "m1"}).text(text) == text
