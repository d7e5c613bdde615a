# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments and version of kubeadm's ClusterConfiguration."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    kubeadm_config,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import kubeadm_arguments
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import pod_manifest

MAP = 'apiVersion: kubeadm.k8s.io/v1beta3\nscheduler:\n  extraArgs:\n    port: "0"\n'
LIST = (
    "apiVersion: kubeadm.k8s.io/v1beta4\nscheduler:\n  extraArgs:\n"
    '  - value: "0"\n    name: port\n  - name: v\n'
)


def record(text):
    return kubeadm_config.KubeadmConfig(text=text)


@pytest.mark.parametrize(("text", "line"), [(MAP, 4), (LIST, 4)])
def test_arguments_are_a_map_or_a_list(text, line):
    (row,) = kubeadm_arguments.refused(record(text))
    assert (row.component, row.name, row.text, row.line) == (
        *("kube-scheduler", "port", "--port=0"),
        line,
    )


def test_the_version_of_the_record():
    (row,) = kubeadm_arguments.old_version(record(MAP))
    assert (row.component, row.name, row.since, row.line) == ("kubeadm", "v1beta3", (1, 37), 1)
    assert kubeadm_arguments.old_version(record(LIST)) == []
    assert kubeadm_arguments.old_version(record(None)) == []


def test_an_external_etcd():
    assert kubeadm_arguments.external_etcd(record("etcd:\n  external:\n    caFile: /x\n"))
    assert not kubeadm_arguments.external_etcd(record("etcd:\n  local:\n    dataDir: /x\n"))


def test_a_record_that_does_not_parse():
    with pytest.raises(pod_manifest.ManifestError):
        kubeadm_arguments.refused(record("a: {"))
