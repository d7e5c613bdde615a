# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ConfigMaps from which nodes are configured."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    config_maps,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError

PATHS = {
    "Deployment": "/apis/apps/v1/deployments",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "CronJob": "/apis/batch/v1/cronjobs",
}


class Answers:
    """Lists by path, as Client.items gives them; objects by path, as Client.get does."""

    def __init__(self, *objects, single=None, fail=None, absent=()):
        self.lists = {path: [] for path in PATHS.values()}
        self.lists.update({"/api/v1/pods": [], "/apis/batch/v1beta1/cronjobs": []})
        for kind, item in objects:
            self.lists[PATHS.get(kind, kind)].append(item)
        self.single, self.fail, self.absent, self.asked = single or {}, fail or {}, absent, []

    def items(self, path, query=None, unmanaged=False):
        assert unmanaged
        self.asked.append(path)
        assert (
            path != "/api/v1/pods"
            or query["fieldSelector"] == "status.phase!=Succeeded,status.phase!=Failed"
        )
        if path in self.absent:
            raise ApiError("absent", "no such thing")
        for number, item in enumerate(self.lists[path]):
            if self.fail.get(path) == number:
                raise ApiError("timeout", "the time limit was reached")
            yield item

    def get(self, path, accept=None):
        self.asked.append(path)
        if path not in self.single:
            raise ApiError("absent", "no such thing")
        return self.single[path]


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
    api = Answers(
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
        config_maps.kubelet(Answers(single={path: {"metadata": {}, "data": {}}}), version)
