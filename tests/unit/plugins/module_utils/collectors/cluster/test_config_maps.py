# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ConfigMaps from which nodes are configured."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    config_maps,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from tests.unit.support.fake_client import WorkloadClient


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ({"major": "1", "minor": "18+"}, "kubelet-config-1.18"),
        ({"major": "1", "minor": "23"}, "kubelet-config-1.23"),
        ({"major": "1", "minor": "24"}, "kubelet-config"),
        ({"major": "1", "minor": "36"}, "kubelet-config"),
        ({}, "kubelet-config"),
    ],
)
def test_the_kubelets_configmap_of_the_release(version, name):
    path = "/api/v1/namespaces/kube-system/configmaps/" + name
    api = WorkloadClient(
        single={
            path: {
                "metadata": {"resourceVersion": "7"},
                "data": {"kubelet": "token: abcdef.secret\ncpuManagerPolicy: static\n"},
            }
        }
    )
    (item,) = config_maps.kubelet(api, version)["items"]
    assert (item["name"], item["resource_version"], item["size"]) == (
        name,
        "7",
        46,
    )
    assert api.asked == [path]
    assert "secret" not in item["text"]
    assert "cpuManagerPolicy: static" in item["text"]
    assert item["masked"]
    with pytest.raises(ApiError, match="holds no kubelet"):
        config_maps.kubelet(WorkloadClient(single={path: {"metadata": {}, "data": {}}}), version)
