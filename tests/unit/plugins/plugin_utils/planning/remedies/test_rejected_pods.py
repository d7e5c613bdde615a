# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rejected pods are deleted once their cause is gone in the evidence, and not before."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    REMEDIES,
)

MANAGER = "kube-controller-manager"
TOPOLOGY = "Pod Resources cannot be allocated with Topology Locality"
DEVICES = (
    "Pod Allocate failed due to requested number of devices unavailable for vendor.com/card."
    " Requested: 1, Available: 0, which is unexpected"
)


def stamp(second):
    return f"2027-01-15T08:00:{second:02}Z"


def pod(name, second, **more):
    return {
        "namespace": "n",
        "name": name,
        "uid": f"u-{name}",
        "node": "w1",
        "created": stamp(second),
        "started": stamp(second),
        "deletion_requested": None,
        "finished_at": None,
        "phase": "Running",
        "owner": "ReplicaSet/a",
        "owner_uid": "u-a",
        "placed": False,
        "scheduler": "default-scheduler",
        "requests": {},
        "qos": "BestEffort",
        "hash": None,
        **more,
    }


def refused(name="late", **more):
    return pod(
        name,
        30,
        **{
            "phase": "Failed",
            "reason": "TopologyAffinityError",
            "message": TOPOLOGY,
            "rejected_at": stamp(30),
            **more,
        },
    )


def of_devices(**more):
    requests = {"vendor.com/card": 1}
    return refused(reason="UnexpectedAdmissionError", message=DEVICES, requests=requests, **more)


@pytest.fixture
def planned(world):
    def made(rejected, pods=(), consent=frozenset({"service_restart"})):
        world.data("api", "rejected").update(
            items=list(rejected),
            total=len(rejected),
            nodes={"w1": {"pods": list(pods), "plugins": []}},
        )
        result, clusters = fault_engine.evaluate_clusters([*world.documents.values(), world.api])
        return plan.plan(
            result.findings,
            clusters,
            world.documents.__getitem__,
            plan.Consent(3, consent, frozenset([plan.CLEAN_UP])),
            REMEDIES,
            fault_engine.KEY_DIGITS,
        )

    return made


def the_clean_up(steps):
    return next(step for step in steps if step.remedy == plan.CLEAN_UP)


@pytest.mark.parametrize(
    ("rejected", "pods", "allowed"),
    [
        (refused(), [], False),
        (refused(), [pod("before", 20)], False),
        (refused(), [pod("next", 40)], True),
        (refused(), [pod("next", 40, deletion_requested=stamp(50))], False),
        (refused(), [pod("next", 40, phase="Pending")], False),
        (refused(), [pod("next", 40, owner_uid="u-b")], True),
        (refused(), [pod("next", 40, owner_uid="u-b", qos="Burstable")], False),
        (refused(owner_uid=None), [pod("next", 40, owner_uid=None, qos="Burstable")], False),
        (of_devices(), [pod("next", 40, owner_uid="u-b", requests={"vendor.com/card": 1})], True),
        (of_devices(), [pod("next", 40, owner_uid="u-b", requests={"cpu": 100})], False),
    ],
)
def test_what_a_kubelet_accepted_since_shows_that_the_cause_is_gone(
    planned, rejected, pods, allowed
):
    step = the_clean_up(planned([rejected], pods))
    assert step.allowed is allowed
    assert bool(step.blocked_by) is not allowed
    assert [one["name"] for one in step.change["pods"]] == ["late"] * allowed


def test_only_those_are_deleted_whose_cause_is_gone(planned):
    step = the_clean_up(planned([refused(), of_devices(name="card")], [pod("next", 40)]))
    assert step.allowed
    assert [one["name"] for one in step.change["pods"]] == ["late", "card"]
    other = of_devices(name="card", owner_uid="u-b")
    step = the_clean_up(planned([refused(), other], [pod("next", 40)]))
    assert [one["name"] for one in step.change["pods"]] == ["late"]
    assert step.note.startswith("1 pod stays")
    assert "n/card" not in step.diff


@pytest.mark.parametrize("reached", [True, False])
def test_a_cause_that_the_same_plan_repairs_is_no_obstacle(world, planned, reached):
    world.manifest("m1", MANAGER, "--leader-elect=false")
    world.run("m1", MANAGER, "--leader-elect=false", elect=False)
    if not reached:
        world.documents["m1"]["collectors"]["journal"] = {"status": "error", "error": "no"}
    steps = planned([refused()])
    repair = next(step for step in steps if step.code == "KM101")
    step = the_clean_up(steps)
    assert step.needs == ("KM101",)
    assert step.allowed is repair.allowed
    if not repair.allowed:
        assert "KM101, which is still there" in step.blocked_by


def test_a_cause_without_a_repair_stays(world, planned):
    """Nothing in the plan helps a plugin that ends again and again."""
    crash = {"name": "c", "restarts": 9, "waiting": "CrashLoopBackOff", "exit_code": 1}
    plugin = {"namespace": "n", "name": "plugin", "containers": [crash]}
    steps = planned([of_devices()], [pod("next", 40)])
    assert the_clean_up(steps).allowed
    world.data("api", "rejected")["nodes"]["w1"]["plugins"] = [plugin]
    result, clusters = fault_engine.evaluate_clusters([*world.documents.values(), world.api])
    assert "KM325" in next(item for item in result.findings if item.code == "KM320").because
    steps = plan.plan(
        result.findings,
        clusters,
        world.documents.__getitem__,
        plan.Consent(3, frozenset(), frozenset([plan.CLEAN_UP])),
        REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    assert "KM325, which is still there" in the_clean_up(steps).blocked_by
