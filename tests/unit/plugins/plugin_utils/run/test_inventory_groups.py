# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that groups leave out of a run are named, with a guess at the group that was meant."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    inventory_groups,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.settings import (
    check,
    without_effect,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.variables import VARIABLES
from tests.unit.support.facts import facts

CP, NODE = "kubemend_control_plane_group", "kubemend_node_group"


def used(cp="kube_control_plane", node="kube_node", given=()):
    return [
        inventory_groups.Used(CP, cp, CP in given),
        inventory_groups.Used(NODE, node, NODE in given),
    ]


def said(inventory, outside=(), by_pattern=False, **more):
    return inventory_groups.notices(used(**more), inventory, outside, "masters", by_pattern)


@pytest.mark.parametrize("name", ["kube_nodes", "kube-node", "Kube_Node", "kube_nod", "kube-nodes"])
def test_a_group_with_a_letter_too_many(name):
    lines = said({"all": ["m1", "w1"], "kube_control_plane": ["m1"], name: ["w1"]}, ["w1"])
    assert len(lines) == 2
    assert name in lines[0]
    assert f"{NODE}: {name}" in lines[0]
    assert "w1" in lines[1]


def test_kubesprays_former_name():
    (line,) = said({"all": ["m1"], "kube-master": ["m1"], "ungrouped": []})
    assert "kube-master" in line
    assert "kube_control_plane" in line


@pytest.mark.parametrize(
    "inventory",
    [
        {
            "all": ["m1", "w1"],
            "ungrouped": [],
            "kube_control_plane": ["m1"],
            "kube_node": ["w1"],
            "kube_node_gpu": ["w1"],
            "k8s_cluster": ["m1", "w1"],
        },
        {"all": ["m1"], "ungrouped": ["m1"]},
        {"all": ["m1"], "masters": ["m1"], "workers": []},
        {"all": ["m1"], "kube_nodes": []},
    ],
)
def test_nothing_is_said_of_what_is_well(inventory):
    assert said(inventory) == []


def test_a_group_that_is_configured_and_not_there():
    (line,) = said({"all": ["m1"], "masters": ["m1"]}, cp="master", given=(CP,))
    assert line.startswith(f"{CP} is master")
    assert "masters" in line
    (line,) = said({"all": ["m1"], "master": []}, cp="master", given=(CP,))
    assert "no hosts" in line
    assert said({"all": ["m1"], "masters": ["m1"]}, cp="masters", given=(CP,)) == []


def test_hosts_outside_are_named_with_the_reason():
    inventory = {"all": ["m1", "lb1"], "kube_control_plane": ["m1"], "lb": ["lb1"]}
    assert "lb1" in said(inventory, ["lb1"])[0]
    assert "kube_node" in said(inventory, ["lb1"])[0]
    assert "kubemend_hosts (masters)" in said(inventory, ["lb1"], by_pattern=True)[0]
    (line,) = said(inventory, [f"h{n}" for n in range(5000)])
    assert "and 4980 more" in line


def test_consent_without_effect_is_told_once_with_the_playbook_that_has_it():
    assert without_effect(check({}), "audit") == []
    assert (
        without_effect(check({"kubemend_max_risk": 0, "kubemend_drain_timeout": 900}), "replay")
        == []
    )
    (line,) = without_effect(check({"kubemend_max_risk": 2}), "audit")
    facts(line, "kubemend_max_risk", "audit", "kubemend.remediation.remediate")
    (line,) = without_effect(
        check({"kubemend_probe": True, "kubemend_allow": ["fenced"]}), "replay"
    )
    assert "kubemend_allow, kubemend_probe have no effect in replay" in line
    assert "remediate" in line
    assert set(VARIABLES) >= {"kubemend_max_risk", "kubemend_cleanup_rejected"}
    used = ("kubemend_probe", "kubemend_max_risk")
    settings = {"kubemend_probe": True, "kubemend_max_risk": 1}
    assert without_effect(check(settings), "audit", used) == []
    (line,) = without_effect(check({**settings, "kubemend_allow": ["fenced"]}), "audit", used)
    assert "kubemend_probe" not in line
