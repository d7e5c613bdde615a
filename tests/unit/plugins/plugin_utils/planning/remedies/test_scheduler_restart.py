# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The restart of the scheduler that has lost a node: which one, when not, and what avoids it."""

from __future__ import annotations

import copy
from collections import Counter

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.scheduling import (
    lost_nodes,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.scheduling import (
    node_tree,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    scheduler_restart,
)
from tests.unit.support.facts import facts

SCHEDULER = "kube-scheduler"
ZONE = "failure-domain.beta.kubernetes.io/zone"
SHORT = "0/4 nodes are available: 3 node(s) didn't match node selector."


def planned(world, max_risk=2, allow=()):
    documents = copy.deepcopy(world.documents)
    result, found = fault_engine.evaluate_clusters(
        [*documents.values(), world.api], frozenset(("KM201", "KM202"))
    )
    return plan.plan(
        result.findings,
        found,
        documents.__getitem__,
        plan.Consent(max_risk, frozenset(allow)),
        scheduler_restart.REMEDIES,
        fault_engine.KEY_DIGITS,
    )


@pytest.fixture
def incident(world):
    """Three masters in one zone, a worker in another, v1.18.4."""
    for name in ("m1", "m2", "m3"):
        next(
            one
            for one in world.data(name, "component_http")["components"]
            if one["component"] == SCHEDULER
        )["metrics"]["git_version"] = "v1.18.4"
    for item in world.data("api", "nodes")["items"]:
        item["labels"] = {ZONE: "200004" if item["name"] == "w1" else "200002"}
    return world


def waiting(world, message=SHORT, **more):
    world.data("api", "pending")["items"].append(
        {
            "namespace": "kube-system",
            "names": ["agent-x"],
            "pods": 1,
            "since": "2027-01-15T07:30:00Z",
            "owner": "DaemonSet/agent",
            "scheduler": "default-scheduler",
            "message": message,
            "tolerations": [{"operator": "Exists"}],
            "targets": [["agent-x", "m3"]],
            **more,
        }
    )


@pytest.fixture
def struck(incident):
    """Give the DaemonSet's pod for m3 waits."""
    waiting(incident)
    return incident


def held(world, holder, **more):
    for server in world.data("api", "locks")["servers"]:
        for one in server["objects"]:
            if one["name"] == SCHEDULER:
                one.update(holder=holder, **more)


def test_the_one_that_leads_is_restarted(struck):
    held(struck, "m2_abc")
    (step,) = planned(struck)
    assert (
        step.id,
        step.host,
        step.code,
        step.remedy,
        step.risk,
        step.allowed,
        step.component,
        step.node,
    ) == (
        "01-m2-kube-scheduler-restart-leader",
        "m2",
        "KM202",
        "restart_leader",
        2,
        True,
        SCHEDULER,
        "m3",
    )
    assert step.change == {
        "kind": "restart_leader",
        "lock": {"kind": "Lease", "name": SCHEDULER},
        "holder": "m2_abc",
        "node": "m2",
        "pods": [["kube-system", "agent-x", "m3"]],
        "cluster_uid": "ks",
    }
    assert (
        step.diff == "restart of kube-scheduler pid 100\n  kube-system/agent-x gets its node m3\n"
    )
    assert step.expect["restart"] == "signal"
    assert step.expect["pid"] == 100
    assert step.guard["loads"] == []
    assert "it returns when nodes join unevenly again" in step.note
    assert "v1.18.8" in step.note
    assert "nothing to revert" in step.note


def test_without_consent_the_risk_is_said(struck):
    (step,) = planned(struck, 1)
    assert not step.allowed
    facts(step.blocked_by, "risk 2", "-e kubemend_max_risk=2")


def test_a_cluster_that_is_well_has_no_step(incident):
    assert planned(incident) == ()


def test_several_nodes_are_one_step(struck):
    waiting(struck, SHORT.replace("3", "2"), names=["net-z"], targets=[["net-z", "m2"]])
    (step,) = planned(struck)
    assert [pod[2] for pod in step.change["pods"]] == ["m2", "m3"]


@pytest.mark.parametrize(
    ("holder", "renewed", "why"),
    [
        ("w1_x", "2027-01-15T08:00:00Z", "its lock names w1_x"),
        ("", "2027-01-15T08:00:00Z", "its lock names no process"),
        ("m1_x", "2027-01-15T07:00:00Z", "no lock"),
    ],
)
def test_who_leads_must_be_known(struck, holder, renewed, why):
    held(struck, holder, renew_time=renewed)
    (step,) = planned(struck)
    assert not step.allowed
    assert "which scheduler leads is not known" in step.blocked_by
    assert why in step.blocked_by


def answered(world, name):
    return next(
        one
        for one in world.data(name, "component_http")["components"]
        if one["component"] == SCHEDULER
    )


def test_one_that_does_not_elect_may_be_the_one_that_lost_it(struck):
    answered(struck, "m3").update(
        leader_election_check=False,
        configz={"status": 200, "leader_election": {"leaderElect": False}, "error": None},
    )
    (step,) = planned(struck)
    assert not step.allowed
    assert (
        "kube-scheduler of m3 runs with --leader-elect=false and places pods whichever leads"
        in step.blocked_by
    )
    assert "repair KM101 first" in step.blocked_by


def test_the_holders_host_may_run_one_of_another_lock(struck):
    answered(struck, "m1")["configz"]["leader_election"]["resourceName"] = "other-scheduler"
    (step,) = planned(struck)
    assert not step.allowed
    assert "which scheduler leads is not known (its lock names m1_" in step.blocked_by


def others(world, change):
    """Return every scheduler but that of m1."""
    for name in ("m2", "m3"):
        change(world, name)


def gone(world, name):
    running = world.data(name, "instances")["processes"]
    running[:] = [one for one in running if one["component"] != SCHEDULER]


def silent(world, name):
    next(
        one
        for one in world.data(name, "component_http")["components"]
        if one["component"] == SCHEDULER
    ).update(
        leader_election_check=None,
        configz={"status": None, "leader_election": None, "error": "refused"},
    )


@pytest.mark.parametrize("change", [gone, silent])
def test_nobody_to_take_over_is_a_pause_that_must_be_allowed(struck, change):
    others(struck, change)
    (step,) = planned(struck)
    assert not step.allowed
    assert step.blocked_by.startswith("no other healthy kube-scheduler")
    assert "-e kubemend_allow=scheduler_pause" in step.blocked_by
    (step,) = planned(struck, allow=("scheduler_pause",))
    assert step.allowed
    assert "scheduler_pause" in step.guard["allow"]


def test_a_kubelet_that_would_not_bring_it_back(struck):
    struck.data("m1", "kubelet").update(process=None, unit={"active_state": "failed"})
    (step,) = planned(struck)
    assert not step.allowed
    assert "repair the kubelet of m1 first" in step.blocked_by


def test_somebody_elses_changes_are_not_loaded(struck):
    running = next(
        one for one in struck.data("m1", "instances")["processes"] if one["component"] == SCHEDULER
    )
    running["given"] = [
        {"path": "/etc/kubernetes/scheduler.conf", "mtime": running["started_at"] + 100}
    ]
    (step,) = planned(struck)
    assert not step.allowed
    assert "/etc/kubernetes/scheduler.conf is newer than the process" in step.blocked_by
    assert planned(struck, allow=("pending_changes",))[0].allowed


def test_a_manifest_that_the_kubelet_did_not_take(struck):
    struck.manifest("m1", SCHEDULER, "--leader-elect=true", "--v=4")
    (step,) = planned(struck)
    assert not step.allowed
    assert "older manifest" in step.blocked_by


# What avoids it


def joined(first, later):
    """Nodes lost when these join one after the other, each with a round behind it."""
    events = [{"add": name, "zone": zone} for name, zone in first] + [{"round": 1}]
    lost = set()
    for name, zone in later:
        events += [{"add": name, "zone": zone}, {"round": 1}]
        lost |= set(node_tree.replay(events, node_tree.KEPT).lost)
    return lost


def test_the_advice_is_true():
    masters = [(f"m{n}", "a") for n in range(3)] + [("b0", "b")]
    assert not joined(masters, [(f"a{n}", "a") for n in range(5)])  # of the largest zone
    assert joined(masters, [("b1", "b")])
    assert joined(masters, [("c1", "c")])
    # one of each in turn
    assert not joined(
        [("a0", "a")],
        [(f"{zone}{n}", zone) for n in range(1, 5) for zone in "abc" if (zone, n) != ("a", 1)],
    )


def test_the_advice_names_the_zone():
    assert "(now sh/1 (3))" in lost_nodes.order(Counter({"sh/1": 3, "sh/2": 1}))
    assert "(now" not in lost_nodes.order(None)


@pytest.mark.parametrize(
    ("name", "allow", "word"),
    [("m2", (), "another client cordoned m2"), ("m2", ("fenced",), ""), ("m3", (), "")],
)
def test_a_leader_that_somebody_took_out_is_left_alone_and_the_lost_node_is_not_asked(
    struck, name, allow, word
):
    held(struck, "m2_abc")
    next(one for one in struck.data("api", "nodes")["items"] if one["name"] == name).update(
        unschedulable=True
    )
    (step,) = planned(struck, allow=allow)
    assert (step.allowed, step.node) == (not word, "m3")
    assert word in (step.blocked_by or "")
