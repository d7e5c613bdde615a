# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a later release refuses of command lines and configurations."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import release_refusal


def found(component, *words):
    rows = release_refusal.of_words(component, words)
    return [(row.kind, row.name, row.since, row.value) for row in rows]


def test_a_flag_that_a_release_lacks():
    assert found("kubelet", "kubelet", "--network-plugin=cni", "--config=/c") == [
        ("flag", "network-plugin", (1, 24), "")
    ]
    # of another component, in the other spelling, with its value as a word of its own
    assert found("kube-apiserver", "--network-plugin=cni") == []
    assert found("kubelet", "--network_plugin", "cni")[0][:3] == ("flag", "network-plugin", (1, 24))
    assert found("etcd", "--network-plugin=cni") == []
    assert found("kubelet", "-v=2", "--", "network-plugin", "--v=2") == []


def test_feature_gates_that_are_gone_or_locked():
    assert found("kubelet", "--feature-gates=MemoryManager=true,KubeletPSI=false,Nobody=true") == [
        ("gate", "MemoryManager", (1, 36), "true"),
        ("lock", "KubeletPSI", (1, 36), "false"),
    ]
    # the value to which it is locked is taken; what does not parse is refused already
    assert found("kubelet", "--feature-gates", "KubeletPSI=true") == []
    assert found("kubelet", "--feature-gates=KubeletPSI=no") == []
    assert found("kubelet", "--feature-gates") == []


def test_plugins_and_groups_of_the_api_server():
    words = (
        "--enable-admission-plugins=NodeRestriction,PodSecurityPolicy",
        "--runtime-config=settings.k8s.io/v1alpha1=true,api/all=true",
    )
    assert found("kube-apiserver", *words) == [
        ("plugin", "PodSecurityPolicy", (1, 25), ""),
        ("group", "settings.k8s.io", (1, 20), ""),
    ]
    assert found("kube-scheduler", *words) == []


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_version_that_its_group_lacks_later(value):
    words = f"--runtime-config=batch/v1=true,batch/v2alpha1={value},batch/v2alpha1/cronjobs={value}"
    gone = ("group", "batch/v2alpha1", (1, 21), "")
    assert found("kube-apiserver", words) == [gone, gone]


def test_the_place_and_the_text_of_a_setting():
    words = ["kubelet", "--network-plugin", "cni"]
    (row,) = release_refusal.of_words("kubelet", words, [("/f", 10), ("/f", 11), ("/f", 12)])
    assert (row.path, row.line, row.text) == ("/f", 11, "--network-plugin cni")
    proof = row.proof("w1")
    assert (proof.kind, proof.host, proof.path, proof.line) == ("file", "w1", "/f", 11)
    (row,) = release_refusal.of_words("kubelet", words)
    assert row.proof("w1").kind == "process"


@pytest.mark.parametrize(
    ("component", "version", "since"),
    [
        ("kube-scheduler", "v1beta2", (1, 28)),
        ("kube-scheduler", "v1", None),
        ("kubeadm", "v1beta3", (1, 37)),
        ("kubeadm", "v1beta4", None),
    ],
)
def test_a_version_that_a_release_does_not_read(component, version, since):
    rows = release_refusal.of_version(component, version, "apiVersion", ("/f", 1))
    assert [row.since for row in rows] == ([] if since is None else [since])
