# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of what releases no longer take, against facts of their change logs."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import release_table


@pytest.mark.parametrize(
    ("kind", "component", "name", "last"),
    [
        ("flag", "kubelet", "network-plugin", (1, 23)),
        ("flag", "kubelet", "container-runtime", (1, 26)),
        ("flag", "kubelet", "pod-infra-container-image", (1, 34)),
        ("flag", "kubelet", "logtostderr", (1, 25)),
        ("flag", "kubelet", "bootstrap-checkpoint-path", (1, 18)),
        ("flag", "kube-scheduler", "port", (1, 23)),
        ("flag", "kube-controller-manager", "port", (1, 23)),
        ("flag", "kube-apiserver", "basic-auth-file", (1, 18)),
        ("flag", "kube-apiserver", "insecure-port", (1, 23)),
        ("flag", "kube-apiserver", "address", (1, 23)),
        ("flag", "kube-apiserver", "cloud-provider", (1, 32)),
        ("flag", "kube-apiserver", "cloud-config", (1, 32)),
        ("flag", "kubelet", "log-file", (1, 25)),
        ("flag", "kube-apiserver", "log-file", (1, 25)),
        ("flag", "kube-controller-manager", "log-file", (1, 25)),
        ("flag", "kube-scheduler", "log-file", (1, 25)),
        ("flag", "kube-scheduler", "policy-config-file", (1, 22)),
        ("flag", "kube-controller-manager", "pod-eviction-timeout", (1, 26)),
        ("gate", "", "DynamicAuditing", (1, 18)),
        ("gate", "", "MemoryManager", (1, 35)),
        ("plugin", "kube-apiserver", "PodSecurityPolicy", (1, 24)),
        ("group", "kube-apiserver", "settings.k8s.io", (1, 19)),
        ("group", "kube-apiserver", "batch/v2alpha1", (1, 20)),
        ("group", "kube-apiserver", "resource.k8s.io/v1alpha2", (1, 30)),
        ("api", "kube-scheduler", "v1beta3", (1, 28)),
        ("api", "kubeadm", "v1beta2", (1, 26)),
    ],
)
def test_what_a_release_had_last(kind, component, name, last):
    assert release_table.last_release(kind, component, name) == last


@pytest.mark.parametrize(
    ("kind", "component", "name"),
    [
        ("flag", "kubelet", "config"),
        ("flag", "kubelet", "v"),
        ("flag", "kubelet", "housekeeping-interval"),
        ("flag", "kube-apiserver", "authorization-mode"),
        ("flag", "kube-scheduler", "leader-elect"),
        ("flag", "kubelet", "never-there"),
        ("gate", "", "AllAlpha"),
        ("plugin", "kube-apiserver", "NodeRestriction"),
        # No release serves it, and all of them register it.
        ("group", "kube-apiserver", "extensions/v1beta1"),
    ],
)
def test_what_the_newest_release_has_or_none_had(kind, component, name):
    assert release_table.last_release(kind, component, name) is None


def test_locks_limits_and_what_kubeadm_tidies():
    assert release_table.locked("RotateKubeletClientCertificate") == ((1, 19), True)
    assert release_table.locked("GitRepoVolumeDriver") == ((1, 36), False)
    assert release_table.locked("NeverThere") is None
    assert release_table.kubelet_skew((1, 28)) == 1
    assert release_table.kubelet_skew((1, 36)) == 3
    assert release_table.kubelet_skew((1, 14)) == 0
    assert release_table.external_etcd((1, 30)) == "3.4.13"
    assert release_table.external_etcd((1, 31)) == "3.5.24"
    assert release_table.is_tidied("pod-infra-container-image", (1, 35))
    assert not release_table.is_tidied("pod-infra-container-image", (1, 36))
    assert release_table.oldest() == (1, 15)
    assert release_table.newest() >= (1, 37)


def test_each_line_has_its_columns():
    header, *lines = release_table.PATH.read_text(encoding="utf-8").splitlines()
    assert tuple(header.split("\t")) == release_table.COLUMNS
    assert lines == sorted(lines, key=lambda line: line.split("\t"))
    assert {len(line.split("\t")) for line in lines} == {len(release_table.COLUMNS)}
