# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which API groups of other servers the evidence has."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    api_services,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from tests.unit.support.fake_client import ItemClient


def group(status="False", service=True, **more):
    condition = {"type": "Available", "status": status, "reason": "MissingEndpoints", **more}
    spec = {"service": {"namespace": "kube-system", "name": "metrics"}} if service else {}
    return {
        "metadata": {"name": "v1beta1.metrics.k8s.io"},
        "spec": spec,
        "status": {"conditions": [condition]},
    }


def test_groups_that_are_not_available():
    rows = [group(), group("True"), group(service=False), group("Unknown")]
    data, cut = api_services.collect(ItemClient(*rows))
    (row,) = data["items"]
    assert row["name"] == "v1beta1.metrics.k8s.io"
    assert (row["service"], row["reason"]) == ("metrics", "MissingEndpoints")
    assert (data["listed"], cut) == (3, False)
    data, cut = api_services.collect(ItemClient(*[group()] * 60))
    assert (len(data["items"]), cut) == (api_services.MAX_KEPT, True)


def test_without_the_right_to_read_them():
    with pytest.raises(ApiError):
        api_services.collect(ItemClient(ApiError("denied", "HTTP 403", 403)))
