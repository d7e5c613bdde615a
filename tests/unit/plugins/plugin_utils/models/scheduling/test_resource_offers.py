# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resources that a Pending pod asks for, and the nodes that could have them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    pending,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.cluster import Cluster
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.scheduling import (
    resource_offers,
)

GPU = "nvidia.com/gpu"


def offers(devices, largest=None):
    """Return the offers of nodes by their counts (known, for pods) of GPUs."""
    items = [{"name": name, "devices": found} for name, found in devices.items()]
    api = {
        "nodes": {"status": "ok", "data": {"items": items}},
        "pending": {"status": "ok", "data": {"largest": largest or {}}},
    }
    return resource_offers.Offers(Cluster("k", [], api=api, api_status="ok"))


def asking(asks):
    return decode(pending.PendingPods, {"asks": asks}).answer


THREE = {"w1": {GPU: [4, 4]}, "w2": {GPU: [2, 0]}, "w3": {}}


@pytest.mark.parametrize(
    ("asked", "without"),
    [(1, {"w2", "w3"}), (4, {"w2", "w3"}), (5, {"w1", "w2", "w3"}), ("many", {"w2", "w3"})],
)
def test_nodes_that_have_fewer_devices_than_a_pod_asks_for(asked, without):
    assert offers(THREE).without(asking({GPU: asked}), GPU) == without


def test_devices_of_an_older_release_are_unknown():
    assert offers({"w1": {GPU: [4, 4]}, "w2": None}).without(asking({GPU: 1}), GPU) is None
    assert offers({}).without(asking({GPU: 1}), GPU) is None
    assert offers(THREE).without(asking({"cpu": 1}), "cpu") is None


def test_a_lack_names_the_most_the_nodes_elsewhere_and_the_idle():
    entry = asking({GPU: 4})
    assert offers(THREE).lack(entry, GPU, ["w1", "w2"]) is None
    assert offers(THREE).lack(entry, GPU, ["w2", "w3"]) == resource_offers.Lack(
        GPU, 4, 0, ("w1",), ("w2",)
    )


@pytest.mark.parametrize(
    ("asks", "largest", "lack"),
    [
        ({"cpu": 8000}, {"cpu": 4000}, resource_offers.Lack("cpu", 8000, 4000)),
        ({"cpu": 4000}, {"cpu": 4000}, None),
        ({"cpu": 8000}, {}, None),
        ({}, {"cpu": 4000}, None),
        ({"cpu": 8000}, {"cpu": "4"}, None),
    ],
)
def test_of_cpu_and_memory_the_largest_node_counts(asks, largest, lack):
    assert offers(THREE, largest).lack(asking(asks), "cpu", ["w1"]) == lack


def test_only_names_with_a_domain_are_devices():
    found = offers(THREE)
    assert found.devices(asking({"cpu": 1, GPU: 2})) == [GPU]
    assert found.devices(asking("text")) == found.devices(pending.PendingPods()) == []


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("cpu", 2000, "2"),
        ("cpu", 1500, "1500m"),
        ("memory", 2 * 1024**3, "2Gi"),
        ("memory", 1536 * 1024**2, "1536Mi"),
        ("memory", 1000, "1000"),
        ("memory", 0, "0"),
        (GPU, 1024, "1024"),
    ],
)
def test_an_amount_is_written_as_in_a_manifest(name, value, text):
    assert resource_offers.amount(name, value) == text
