# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes that each reason of a Pending pod excludes, as far as they are certain."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    pending,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.cluster import Cluster
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.scheduling import (
    excluded_nodes,
)

GPU = "nvidia.com/gpu"
MASTER = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
CAF = {"key": "caf", "value": "log", "effect": "NoSchedule"}


def read(*items):
    """Return the nodes: a master and three workers, two of them with GPUs."""
    rows = [
        {"name": "m1", "taints": [MASTER], "devices": {}, "control_plane": True},
        {"name": "w1", "taints": [], "devices": {GPU: [2, 2]}},
        {"name": "w2", "taints": [CAF], "devices": {GPU: [2, 2]}},
        {"name": "w3", "taints": [CAF], "devices": {}},
    ]
    api = {"nodes": {"status": "ok", "data": {"items": list(items) or rows}}}
    return excluded_nodes.Nodes(Cluster("k", [], api=api, api_status="ok"))


def entry(message="", **more):
    row = {"names": ["p"], "namespace": "n", "message": message, "tolerations": [], **more}
    return decode(pending.PendingPods, row).answer


def test_nodes_with_the_same_taints_are_one_group():
    nodes = read()
    assert nodes.group["w2"] == nodes.group["w3"] != nodes.group["w1"]
    assert len(nodes.groups) == 3


@pytest.mark.parametrize(
    ("tolerations", "away"),
    [
        ([], {"m1", "w2", "w3"}),
        ([{"key": "caf", "operator": "Exists"}], {"m1"}),
        ([{"operator": "Exists"}], set()),
    ],
)
def test_the_taints_that_keep_a_pod_away(tolerations, away):
    nodes = read()
    off = nodes.off(entry(tolerations=tolerations).tolerations)
    assert {name for name, group in nodes.group.items() if off[group]} == away


@pytest.mark.parametrize(
    ("asks", "meant"),
    [
        ({}, ["w1", "w2", "w3"]),
        ({GPU: 1}, ["w1", "w2"]),
        ({GPU: 9}, ["w1", "w2", "w3"]),
    ],
)
def test_nodes_of_the_control_plane_and_without_the_devices_are_not_meant(asks, meant):
    assert read().meant_for(entry(asks=asks)) == meant


def test_where_there_is_only_a_control_plane_it_is_meant():
    assert read({"name": "m1", "taints": [MASTER], "devices": {}}).meant_for(entry()) == ["m1"]


@pytest.mark.parametrize(
    ("names", "helpless"), [(["w3"], [GPU]), (["w2", "w3"], []), (["w2"], []), ([], [])]
)
def test_a_toleration_does_not_help_without_the_devices(names, helpless):
    assert read().helpless(entry(asks={GPU: 1}), names) == helpless


def test_a_taint_that_the_message_names_has_the_names_of_its_nodes():
    message = (
        "0/4 nodes are available: 1 node(s) had untolerated taint"
        " {node-role.kubernetes.io/control-plane: }, 2 node(s) had untolerated taint {caf: log},"
        " 1 Insufficient cpu."
    )
    reasons = read().reasons_of(entry(message))
    assert {reason.nodes for reason in reasons if reason.kind == "taint"} == {
        ("m1",),
        ("w2", "w3"),
    }
    (cpu,) = [reason for reason in reasons if reason.kind == "resource"]
    assert (cpu.name, cpu.nodes) == ("cpu", ("w1",))


def test_a_message_about_other_nodes_names_none_of_these():
    (reason,) = read().reasons_of(entry("0/9 nodes are available: 9 Insufficient cpu."))
    assert (reason.count, reason.nodes) == (9, None)


def test_devices_that_no_node_has_are_a_reason_although_the_scheduler_does_not_say_so():
    message = "0/4 nodes are available: 4 node(s) didn't match Pod's node affinity/selector."
    reasons = read().reasons_of(entry(message, asks={GPU: 9}))
    (unsaid,) = [reason for reason in reasons if reason.unsaid]
    assert (unsaid.name, unsaid.lack.asked, unsaid.lack.most) == (GPU, 9, 2)


def test_the_reasons_of_one_entry_are_read_once():
    nodes, one = read(), entry("0/4 nodes are available: 4 Insufficient cpu.")
    assert nodes.reasons_of(one) is nodes.reasons_of(one)
