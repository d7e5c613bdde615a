# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes as the API lists them: their hosts, zones, conditions and values of other types."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    nodes as nodes_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import api_node
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.cluster import Cluster


def views(*items):
    answer = {"status": "ok", "data": {"items": list(items)}}
    return api_node.views(Cluster("k", [], api={"nodes": answer}, api_status="ok"))


def test_an_old_node_says_neither_taints_nor_lease():
    (view,) = views({"name": "w1", "ready": "True"})
    assert (view.name, view.ready, view.told, view.leased, view.host) == (
        "w1",
        "True",
        False,
        None,
        None,
    )


def test_what_a_node_says_of_itself():
    (view,) = views(
        {
            "name": "w1",
            "control_plane": True,
            "unschedulable": True,
            "cordon": {"run": "r"},
            "taints": [{"key": "a"}, "broken"],
            "conditions": [{"type": "Ready", "status": "True"}],
            "lease": "2027-01-15T08:00:00Z",
            "lease_duration_s": 40,
            "addresses": [
                {"type": "Hostname", "address": "w1"},
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "InternalIP", "address": None},
            ],
        }
    )
    assert (view.control_plane, view.cordoned, view.ours) == (
        True,
        True,
        nodes_answer.Cordon("r"),
    )
    assert view.taints == (nodes_answer.Taint("a"),)
    assert view.internal == ("10.0.0.1",)
    assert view.lease_seconds == 40
    assert view.leased.isoformat() == "2027-01-15T08:00:00+00:00"
    assert view.condition("Ready") == nodes_answer.Condition("Ready", "True")
    assert view.condition("DiskPressure") is None


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({api_node.ZONES[0]: "a", api_node.ZONES[1]: "old"}, "a"),
        ({api_node.ZONES[1]: "old"}, "old"),
        ({api_node.ZONES[0]: ""}, None),
        (None, None),
    ],
)
def test_the_zone_is_of_the_newer_label(labels, zone):
    assert views({"name": "w1", "labels": labels})[0].zone == zone


@pytest.mark.parametrize("value", [None, "text", 7, {"key": "a"}])
def test_lists_of_another_type_are_empty(value):
    (view,) = views({"name": "w1", "taints": value, "conditions": value, "unschedulable": "yes"})
    assert (view.taints, view.conditions, view.cordoned) == ((), (), False)


def test_a_host_is_found_by_name_and_else_by_address(world):
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import engine

    world.data("api", "nodes")["items"].append(
        {"name": "renamed", "addresses": [{"type": "InternalIP", "address": "w1"}]}
    )
    _result, (cluster, *_rest) = engine.evaluate_clusters([*world.documents.values(), world.api])
    hosts = {view.name: view.host and view.host.host for view in api_node.views(cluster)}
    assert hosts["m1"] == "m1"
    assert hosts["w1"] == hosts["renamed"] == "w1"


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "n1"), (2, "n1, n2"), (3, "n1, n2 and 1 more"), (9, "n1, n2 and 7 more")],
)
def test_only_the_first_names_are_shown(count, text):
    assert api_node.and_others([f"n{n}" for n in range(1, count + 1)], shown=2) == text
