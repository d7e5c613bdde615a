# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that were taken out on purpose: by which sign, and what allows a repair of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import contract
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.cluster import Cluster
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import Finding
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import fencing
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import (
    Consent,
    RemedyContext,
)

MASKED = {"collectors": {"kubelet": {"status": "ok", "data": {"unit": {"load_state": "masked"}}}}}
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def context(nodes=None, *allow, api="ok", node="w1", document=None):
    collectors = {}
    if nodes is not None:
        collectors["nodes"] = {"status": "ok", "data": {"items": nodes}}
    cluster = Cluster("k", [], api=collectors, api_status=api, api_reason="refused")
    finding = Finding("KM502", "critical", "k", "h1", "kubelet", "down", node=node)
    return RemedyContext(finding, cluster, document or {}, Consent(2, frozenset(allow)))


@pytest.mark.parametrize(
    "node",
    [
        {"name": "w1"},
        {"name": "w1", "taints": []},
        {"name": "w1", "taints": "broken"},
        {"name": "w1", "taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]},
        {"name": "w1", "unschedulable": True, "cordon": {"run": "r", "held": False}},
        {"name": "w1", "unschedulable": True, "cordon": {"run": "r"}, "taints": [CORDON]},
    ],
)
def test_a_node_in_service_is_repaired(node):
    assert fencing.refusal(context([node])) is None
    assert not fencing.is_held(context([node]))


@pytest.mark.parametrize(
    "nodes",
    [
        [],
        [{"name": "w2"}],
        [{"name": "w1", "unschedulable": True}],
        [{"name": "w1", "unschedulable": True, "cordon": {"run": "r", "held": True}}],
        [{"name": "w1", "taints": [OUT_OF_SERVICE]}],
    ],
)
def test_a_node_out_of_service_is_repaired_with_consent_only(nodes):
    assert "kubemend_allow=fenced" in fencing.refusal(context(nodes))
    assert fencing.refusal(context(nodes, "fenced")) is None
    assert fencing.beside_mask(context(nodes, "fenced"))


def test_the_consent_that_is_named_keeps_what_is_allowed_already():
    text = fencing.refusal(context([], "force_reset"))
    assert text.endswith("kubemend_allow=fenced,force_reset")


@pytest.mark.parametrize("nodes", [None, [{"name": "w1"}]])
def test_without_an_api_no_node_is_known_to_be_in_service(nodes):
    silent = context(nodes, api="error")
    assert "refused" in fencing.refusal(silent)
    assert "kubemend_allow=api_down" in fencing.refusal(silent)
    assert fencing.refusal(context(nodes, "api_down", api="error")) is None
    assert fencing.beside_mask(silent)


def test_an_api_that_lists_no_nodes_is_as_silent():
    scene = context("no list")
    evidence = contract.checked({"kind": "cluster", "collectors": scene.cluster.api})
    cluster = replace(scene.cluster, api=evidence["collectors"])
    assert "kubemend_allow=api_down" in fencing.refusal(replace(scene, cluster=cluster))
    assert fencing.refusal(context(None, node=None)) is None


def test_a_mask_is_a_sign_and_only_a_proven_node_shows_that_it_was_forgotten():
    nodes = [{"name": "w1"}]
    assert "masked" in fencing.refusal(context(nodes, document=MASKED))
    assert fencing.refusal(context(nodes, "fenced", document=MASKED)) is None
    assert fencing.beside_mask(context(nodes, document=MASKED)) is None
    assert "not proven" in fencing.beside_mask(context(nodes, node=None, document=MASKED))


@pytest.mark.parametrize(
    ("node", "held"),
    [
        ({"name": "w1", "unschedulable": True}, True),
        ({"name": "w1", "unschedulable": True, "cordon": {"held": True}}, True),
        ({"name": "w1", "unschedulable": True, "cordon": {"held": False}}, False),
        ({"name": "w1", "unschedulable": False, "cordon": {"held": True}}, False),
        ({"name": "w2", "unschedulable": True}, False),
    ],
)
def test_a_cordon_of_another_client_is_held(node, held):
    assert fencing.is_held(context([node])) is held
