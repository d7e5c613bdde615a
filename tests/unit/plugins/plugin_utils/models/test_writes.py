# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM115, a cluster that accepts no writes.

What proves it, what it explains, what is not clear meanwhile, and which repairs it refuses.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import writes
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import run_plan
from tests.unit.support.refused_writes import (
    CLOCK,
    FRESH,
    MANAGER,
    OLD,
    SCHEDULER,
    judged,
    lost,
    present,
    status,
    stopped,
)


def test_a_cluster_that_writes_is_clear(world):
    assert judged(world, "KM115") == ({"KM115": "clear"}, [])
    status(world)
    assert judged(world, "KM115") == ({"KM115": "clear"}, [])


@pytest.mark.parametrize("one", ["node", "lock", "beat", "other lock"])
def test_one_lease_that_is_renewed_shows_that_something_is_written(world, one):
    stopped(world)
    servers = world.data("api", "locks")["servers"]
    if one == "node":
        world.data("api", "nodes")["items"][-1]["lease"] = FRESH
    elif one == "lock":
        servers[0]["objects"][0]["renew_time"] = FRESH
    elif one == "beat":
        servers[0]["beat"] = FRESH
    else:
        servers[0]["objects"].append(
            {
                "kind": "Lease",
                "name": "cilium",
                "holder": "x",
                "renew_time": FRESH,
                "lease_duration_s": 3600,
            }
        )
    assert judged(world, "KM115") == ({"KM115": "clear"}, [])


def test_a_lease_of_somebody_else_that_lasts_for_hours_shows_nothing(world):
    stopped(world)
    world.data("api", "locks")["servers"][0]["objects"].append(
        {"kind": "Lease", "name": "x", "holder": "x", "renew_time": OLD, "lease_duration_s": 99999}
    )
    assert present(world)


@pytest.mark.parametrize(
    ("at", "said"),
    [
        # whoever could not write tries again
        ("2027-01-15T07:59:30Z", "clear"),
        ("2027-01-15T07:59:10Z", "unknown"),
        ("2027-01-15T07:58:30Z", "present"),
    ],
)
def test_a_lease_is_over_when_its_own_duration_is(world, at, said):
    stopped(world, at)
    assert judged(world, "KM115")[0] == {"KM115": said}


def test_a_longer_duration_of_the_leases_counts(world):
    stopped(world, "2027-01-15T07:58:30Z")
    for item in world.data("api", "nodes")["items"]:
        item["lease_duration_s"] = 300
    assert judged(world, "KM115")[0] == {"KM115": "clear"}


def test_kubelets_that_are_all_down_write_nothing_and_prove_nothing(world):
    stopped(world)
    for name in world.documents:
        world.data(name, "kubelet")["process"] = None
    assert judged(world, "KM115")[0] == {"KM115": "unknown"}
    for name in world.documents:
        # they have just come up
        world.data(name, "kubelet")["process"] = {
            "pid": 1,
            "argv": ["kubelet"],
            "started_at": CLOCK - 20,
        }
    assert judged(world, "KM115")[0] == {"KM115": "unknown"}


def test_without_leases_or_without_the_api_nobody_knows(world):
    for item in world.data("api", "nodes")["items"]:
        del item["lease"]
    world.data("api", "locks")["servers"].clear()
    result = world.judge(faults=frozenset(["KM115"]))
    # an older release collected it
    assert not result.findings
    assert [one.code for one in result.not_judged] == ["KM115"]
    world.api.update(status="error", reason="connection refused", collectors={})
    assert judged(world, "KM115")[0] == {"KM115": "unknown"}


# etcd's own word


def test_an_alarm_that_health_tells_without_a_credential(world):
    world.documents["m2"]["collectors"]["etcd"] = {
        "status": "error",
        "data": {
            "status": None,
            "alarms": None,
            "members": [],
            "error": "TLS: x",
            "health": {"status": 503, "body": '{"health":"false","reason":"ALARM NOSPACE"}'},
        },
    }
    assert "NOSPACE" in present(world).summary


def test_no_quorum_where_the_manifests_of_the_others_are_gone(world):
    """Nothing runs there that could be asked: etcd's own list says that it should."""
    lost(world)
    for name in ("m2", "m3"):
        world.documents[name]["collectors"]["etcd"] = {"status": "absent", "data": None}
        running = world.data(name, "instances")["processes"]
        running[:] = [one for one in running if one["component"] not in ("etcd", "kube-apiserver")]
    world.api.update(status="error", reason="timed out", collectors={})
    assert "etcd of m2 does not run" in present(world).summary


def test_no_quorum_where_the_other_hosts_are_gone(world):
    lost(world)
    for name in ("m2", "m3"):
        world.silence(name)
    world.api.update(status="error", reason="timed out", collectors={})
    assert "m2 does not answer at all" in present(world).summary


@pytest.mark.parametrize("down", [("m2",), ()])
def test_one_member_without_a_leader_is_no_loss_of_quorum(world, down):
    lost(world, *down)
    status(world, "m3")  # it knows one
    stopped(world)
    assert "quorum" not in present(world).summary
    world.data("m3", "etcd").update(status=None)  # not asked: two of three may have one
    if down:
        world.documents["m2"]["collectors"]["etcd"] = {"status": "denied", "data": None}
        assert "quorum" not in present(world).summary


def test_an_election_is_no_loss_of_quorum(world):
    """For a second there is no leader, while leases were renewed a moment ago."""
    lost(world)
    assert judged(world, "KM115") == ({"KM115": "clear"}, [])


def test_api_servers_without_any_etcd(world):
    lost(world, "m1", "m2", "m3")
    world.api.update(status="error", reason="timed out", collectors={})
    found = present(world)
    assert "no etcd" in found.summary
    assert "m1, m2, m3" in found.summary
    world.silence("m3")  # it may run there
    assert judged(world, "KM115")[0] == {"KM115": "unknown"}


def test_an_etcd_that_refuses_a_credential_is_not_gone(world):
    for name in ("m1", "m2", "m3"):
        world.documents[name]["collectors"]["etcd"] = {
            "status": "error",
            "data": {"status": None, "error": "https://127.0.0.1:2379: TLS: bad certificate"},
        }
    world.api.update(status="error", reason="timed out", collectors={})
    assert judged(world, "KM115")[0] == {"KM115": "unknown"}


@pytest.mark.parametrize(
    "broken",
    [
        7,
        "x",
        [],
        {"version": 7},
        {"version": "3.6", "leader": 0, "errors": "no leader"},
        {"version": "3.6", "leader": ["0"], "errors": [7, None]},
        {"version": "3.6", "leader": "0x", "db_size": "big"},
    ],
)
@pytest.mark.parametrize("alarms", [None, 7, "NOSPACE", [7], [{"alarm": ["NOSPACE"]}]])
def test_etcd_evidence_of_another_shape_proves_nothing(world, broken, alarms):
    world.data("m1", "etcd").update(status=broken, alarms=alarms, health=[], members=[])
    assert judged(world, "KM115") == ({"KM115": "clear"}, [])


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("lease", 7),
        ("lease", ["x"]),
        ("lease_duration_s", "long"),
        ("lease_duration_s", True),
        ("lease_duration_s", -5),
    ],
)
def test_leases_of_another_shape_are_none(world, where, value):
    stopped(world)
    world.data("api", "nodes")["items"][0][where] = value
    assert judged(world, "KM115")[0]["KM115"] in ("present", "unknown")


@pytest.mark.parametrize(
    "value",
    [
        7,
        None,
        "x",
        [7],
        [{"name": ["x"], "renew_time": 7, "holder": {}}],
        [{"name": "a", "renew_time": OLD, "lease_duration_s": "x"}],
    ],
)
def test_locks_of_another_shape_are_none(world, value):
    stopped(world)
    for server in world.data("api", "locks")["servers"]:
        server["objects"], server["beat"] = value, ["x"]
    assert judged(world, "KM115")[0]["KM115"] in ("present", "unknown")


# What it is to the rest


def planned(world: Any, risk: int = 2) -> list[plan.Step]:
    result, clusters = fault_engine.evaluate_clusters([*world.documents.values(), world.api])
    return list(
        plan.plan(
            result.findings,
            clusters,
            lambda host: world.documents[host],
            plan.Consent(risk),
            run_plan.REMEDIES,
            fault_engine.KEY_DIGITS,
        )
    )


def test_a_repair_that_needs_a_write_is_refused_and_one_that_needs_none_is_not(world):
    world.run("m2", MANAGER, "--leader-elect=false", elect=False)
    world.manifest("m2", MANAGER, "--leader-elect=false")
    world.data("w1", "kubelet")["process"] = None
    world.data("w1", "kubelet").update(
        unit={
            "name": "kubelet.service",
            "load_state": "loaded",
            "active_state": "inactive",
            "sub_state": "dead",
            "unit_file_state": "enabled",
        },
        healthz={"status": None, "error": "refused"},
    )
    assert all(step.allowed for step in planned(world) if step.remedy == "edit_manifest")
    stopped_kubelet = world.data("w1", "kubelet")
    for name in ("m1", "m2", "m3"):
        world.data(name, "kubelet")["process"]["started_at"] = CLOCK - 90000
    for item in world.data("api", "nodes")["items"]:
        item["lease"] = OLD
    for server in world.data("api", "locks")["servers"]:
        for lock in server["objects"]:
            lock["renew_time"] = OLD
    assert stopped_kubelet["process"] is None
    steps = {step.remedy: step for step in planned(world)}
    assert not steps["edit_manifest"].allowed
    assert "KM115" in steps["edit_manifest"].blocked_by
    assert not plan.only_risk(steps["edit_manifest"])
    # fencing can be read
    assert steps["start_kubelet"].allowed
    assert steps["start_kubelet"].blocked_by is None


@pytest.mark.parametrize(
    ("remedy", "more", "local"),
    [
        ("edit_manifest", {}, False),
        ("restart", {}, False),
        ("probe", {}, False),
        ("drain", {}, False),
        ("uncordon", {}, False),
        ("start_kubelet", {}, True),
        ("kernel_setting", {}, True),
        ("recover", {"component": "kubelet"}, True),
        ("recover", {"component": SCHEDULER}, False),
        ("reset_state", {"expect": {"down": True}}, True),
        ("reset_state", {"expect": {"down": False}}, False),
        ("reset_state", {}, False),
        ("restore_levels", {"risk": 1}, True),
        ("restore_levels", {"risk": 2}, False),
        ("unit_limit", {"risk": 2}, False),
        ("a new one", {}, False),
    ],
)
def test_which_steps_need_a_write(remedy, more, local):
    step = plan.Step(
        **{
            "id": "1",
            "host": "m1",
            "code": "KM101",
            "remedy": remedy,
            "risk": 2,
            "target": "x",
            **more,
        }
    )
    assert plan._is_local(step) is local


def test_evidence_that_nobody_foresaw_ends_no_plan(world, monkeypatch):
    def unforeseen(cluster):
        raise IndexError("list index out of range")

    monkeypatch.setattr(writes, "_state", unforeseen)
    world.run("m2", MANAGER, "--leader-elect=false", elect=False)
    world.manifest("m2", MANAGER, "--leader-elect=false")
    assert judged(world, "KM115")[0] == {"KM115": "unknown"}
    assert any(step.allowed for step in planned(world))
