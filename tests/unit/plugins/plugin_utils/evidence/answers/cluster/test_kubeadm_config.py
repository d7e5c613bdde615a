# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record from which kubeadm writes the manifests."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    kubeadm_config,
)
from tests.unit.support import answers

CONFIG = answers.recorded("v1.36.3-etcd-no-space", "m1.cluster", "kubeadm_config")


def test_the_text_of_the_config_map():
    config = answers.typed(kubeadm_config.KubeadmConfig, CONFIG)
    assert isinstance(config, kubeadm_config.ConfigText)
    assert config.text.startswith("apiServer: {}\napiVersion: kubeadm.k8s.io/v1beta4\n")
    assert (config.size, config.masked) == (len(config.text), ())
    assert config.sha256 == CONFIG["sha256"]
    assert config.resource_version == "263"


def test_a_resource_version_is_a_text_that_may_not_be_compared_as_a_number():
    decoded = answers.changed(kubeadm_config.KubeadmConfig, CONFIG, "resource_version", value=263)
    assert decoded.malformed == ("resource_version",)
    assert decoded.answer.resource_version is None


def test_masked_spans_are_pairs_of_bytes():
    raw = {**CONFIG, "masked": [[3, 9], [12, 20, 28], [30, "40"]]}
    decoded = decode.decode(kubeadm_config.KubeadmConfig, raw)
    assert decoded.malformed == ("masked[1]", "masked[2][1]")
    assert decoded.answer.masked == ((3, 9),)
