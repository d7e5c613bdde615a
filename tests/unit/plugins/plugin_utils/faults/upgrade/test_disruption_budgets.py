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
        "owner": None,
        "kept": 1,
        "nodes": ["w1"],
        "node_count": 1,
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
    ],
)
def test_what_passes_and_what_does_not(world, numbers, severity):
    add(world, **numbers)
    (finding,) = judge(world, "KM728").findings
    assert finding.severity == severity


@pytest.mark.parametrize("number", [0, 1, None])
def test_a_budget_that_its_controller_cannot_count(world, number):
    numbers = dict.fromkeys(("expected", "healthy", "desired"), number)
    add(world, failure="found no scale\nfor pods", **numbers)
    (finding,) = judge(world, "KM728").findings
    assert finding.severity == "warning"
    assert finding.summary == (
        "a drain of w1 does not end: PodDisruptionBudget shop/cart lets none of its pods go,"
        " because its controller cannot count them"
    )
    assert "an integer as minAvailable: kubectl -n shop edit pdb cart" in finding.remedy
    (proof,) = finding.evidence
    assert proof.text == "SyncFailed: found no scale for pods; it keeps cart-1"
    assert "None" not in finding.remedy


@pytest.mark.parametrize(("expected", "desired"), [(1, 1), (3, 3), (2, 3)])
def test_more_replicas_are_not_advised_where_they_do_not_help(world, expected, desired):
    add(world, expected=expected, healthy=expected, desired=desired)
    (finding,) = judge(world, "KM728").findings
    assert f"run more than {desired} replicas" in finding.remedy
    _number, _semicolon, every_pod = finding.remedy.partition("; with ")
    assert every_pod.startswith("maxUnavailable: 0 or minAvailable: 100% ")
    assert "give the budget maxUnavailable: 1 instead" in every_pod


OF_VM = {"kind": "VirtualMachineInstance", "group": "kubevirt.io"}


@pytest.mark.parametrize(
    ("values", "is_operators"),
    [
        ({"owner": OF_VM}, True),
        ({"owner": {"kind": "Cluster", "group": "postgresql.cnpg.io"}}, True),
        ({"owner": {"kind": "", "group": ""}}, True),
        ({"owner": OF_VM, "failure": "no scale"}, True),
        ({"owner": OF_VM, "expected": 3, "healthy": 2, "desired": 2}, True),
        ({"namespace": "longhorn-system", "name": "instance-manager-0a1b"}, True),
        ({"namespace": "storage", "name": "instance-manager-0a1b"}, True),
        ({"namespace": "rook-ceph", "name": "x"}, True),
        ({"namespace": "ceph", "name": "rook-ceph-osd-host-w1"}, True),
        ({"namespace": "linstor"}, True),
        ({"namespace": "piraeus-datastore"}, True),
        ({"namespace": "portworx"}, True),
        ({"namespace": "kube-system", "name": "px-storage"}, True),
        ({"namespace": "shop", "name": "longhorn"}, False),
        ({"namespace": "my-longhorn"}, False),
        ({"name": "px-shop"}, False),
    ],
)
def test_a_budget_that_an_operator_keeps_is_left_to_it(world, values, is_operators):
    add(world, **values)
    (finding,) = judge(world, "KM728").findings
    assert (finding.severity == "info") is is_operators
    assert ("Do not edit the budget" in finding.remedy) is is_operators
    assert ("waits for an operator" in finding.summary) is is_operators
    assert ("kubectl" in finding.remedy) is not is_operators


def test_the_owner_of_a_budget_is_named(world):
    add(world, owner={"kind": "Virtual\nMachine", "group": "kubevirt.io"})
    (finding,) = judge(world, "KM728").findings
    assert finding.summary.startswith(
        "a drain of w1 waits for an operator (Virtual Machine of kubevirt.io): "
    )


def test_more_nodes_and_pods_than_are_named(world):
    add(world, nodes=["w1", "w2"], node_count=7, kept=9)
    (finding,) = judge(world, "KM728").findings
    assert finding.summary.startswith("a drain of w1, w2 and 5 more does not end: ")
    assert finding.evidence[0].text.endswith("it keeps cart-1 and 8 more")


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
