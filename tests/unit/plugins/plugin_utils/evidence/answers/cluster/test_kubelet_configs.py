# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet configurations of kubeadm."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    kubelet_configs,
)
from tests.unit.support import answers

CONFIGS = answers.recorded("v1.18.4-component-ends", "m1.cluster", "kubelet_configs")


def test_the_config_map_of_a_minor_version():
    (config,) = answers.typed(kubelet_configs.KubeletConfigs, CONFIGS).items
    assert config.name == "kubelet-config-1.18"
    assert config.text.startswith("apiVersion: kubelet.config.k8s.io/v1beta1\n")
    assert (config.size, config.resource_version, config.masked) == (953, "163", ())
    assert config.sha256 == CONFIGS["items"][0]["sha256"]


def test_a_text_of_another_type_keeps_the_name():
    decoded = answers.changed(
        kubelet_configs.KubeletConfigs, CONFIGS, "items", 0, "text", value={"kind": "x"}
    )
    assert decoded.malformed == ("items[0].text",)
    assert decoded.answer.items[0].text is None
    assert decoded.answer.items[0].name == "kubelet-config-1.18"


def test_a_size_of_another_type_is_unknown():
    decoded = answers.changed(
        kubelet_configs.KubeletConfigs, CONFIGS, "items", 0, "size", value="9"
    )
    assert decoded.malformed == ("items[0].size",)
    assert decoded.answer.items[0].size is None


def test_a_name_of_another_type_is_unknown():
    decoded = answers.changed(kubelet_configs.KubeletConfigs, CONFIGS, "items", 0, "name", value=1)
    assert decoded.malformed == ("items[0].name",)
    assert decoded.answer.items[0].name is None


def test_items_are_a_list_and_no_mapping_by_name():
    decoded = decode.decode(
        kubelet_configs.KubeletConfigs, {"items": {"kubelet-config": CONFIGS["items"][0]}}
    )
    assert (decoded.malformed, decoded.answer.items) == (("items",), ())
