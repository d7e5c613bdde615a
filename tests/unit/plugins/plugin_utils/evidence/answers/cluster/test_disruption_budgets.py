# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PodDisruptionBudgets, as the collector writes them."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    disruption_budgets,
)
from tests.unit.support import answers

BUDGETS = {
    "listed": 3,
    "items": [
        {
            "namespace": "shop",
            "name": "cart",
            "expected": 1,
            "healthy": 1,
            "desired": 1,
            "fresh": True,
            "failure": "",
            "owner": {"kind": "VirtualMachineInstance", "group": "kubevirt.io"},
            "kept": 1,
            "nodes": ["w1"],
            "node_count": 1,
            "pods": [{"name": "cart-1", "node": "w1"}],
        }
    ],
}


def test_a_budget():
    answer = answers.typed(disruption_budgets.DisruptionBudgets, BUDGETS)
    (item,) = answer.items
    assert (answer.listed, item.name, item.desired, item.fresh) == (3, "cart", 1, True)
    assert item.owner == disruption_budgets.BudgetOwner("VirtualMachineInstance", "kubevirt.io")
    assert (item.nodes, item.node_count) == (("w1",), 1)
    assert item.pods == (disruption_budgets.KeptPod("cart-1", "w1"),)


def test_numbers_that_are_none():
    place = ("items", 0, "expected")
    kind = disruption_budgets.DisruptionBudgets
    assert answers.changed(kind, BUDGETS, *place, value=None).malformed == ()
    assert answers.changed(kind, BUDGETS, *place, value="1").malformed == ("items[0].expected",)
