# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM728: PodDisruptionBudgets by which the drains of an upgrade do not end."""

from __future__ import annotations

import pytest

from tests.unit.support.upgrade import judge, verdicts


def add(world, **values):
    budget = {
        "namespace": "shop",
        "name": "cart",
        "expected": 1,
        "healthy": 1,
        "desired": 1,
        "fresh": True,
        "failure": "",
        "kept": 1,
        "pods": [{"name": "cart-1", "node": "w1"}],
        **values,
    }
    world.data("api", "disruption_budgets")["items"].append(budget)


def test_a_budget_that_wants_all_its_pods(world):
    assert verdicts(world, "KM728") == ["clear"]
    add(world)
    (finding,) = judge(world, "KM728").findings
    assert (finding.component, finding.severity) == ("shop/cart", "warning")
    assert "at least 1 healthy pods and has 1" in finding.summary
    assert "kubectl -n shop edit pdb cart" in finding.remedy
    (proof,) = finding.evidence
    assert proof.object == "PodDisruptionBudget shop/cart"
    assert "desiredHealthy 1; it keeps cart-1" in proof.text


@pytest.mark.parametrize(
    ("numbers", "severity"),
    [
        ({"expected": 3, "healthy": 2, "desired": 2}, "info"),
        ({"expected": 3, "healthy": 3, "desired": 3}, "warning"),
        ({"expected": 3, "healthy": 2, "desired": 3}, "warning"),
        ({"expected": 0, "healthy": 0, "desired": 0, "failure": "no scale"}, "warning"),
        ({"expected": None, "healthy": None, "desired": None, "failure": "no scale"}, "warning"),
    ],
)
def test_what_passes_and_what_does_not(world, numbers, severity):
    add(world, **numbers)
    (finding,) = judge(world, "KM728").findings
    assert finding.severity == severity


def test_a_budget_that_nobody_has_counted_is_not_clear(world):
    add(world, fresh=False)
    assert verdicts(world, "KM728") == ["unknown"]
    add(world, name="other")
    assert [row.component for row in judge(world, "KM728").findings] == ["shop/other"]


@pytest.mark.parametrize(
    "record",
    [
        {"status": "denied", "data": None},
        {"status": "ok", "data": {"listed": 900, "items": []}, "truncated": True},
    ],
)
def test_budgets_that_are_not_known_are_not_clear(world, record):
    world.api["collectors"]["disruption_budgets"] = record
    assert verdicts(world, "KM728") == ["unknown"]


def test_names_do_not_reach_a_command_as_they_are(world):
    add(world, namespace="a;reboot", name="$(x)")
    (finding,) = judge(world, "KM728").findings
    assert "kubectl -n NAMESPACE edit pdb NAME" in finding.remedy
