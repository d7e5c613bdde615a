# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM115, a cluster that accepts no writes.

What proves it, what it explains, what is not clear meanwhile, and which repairs it refuses.
"""

from __future__ import annotations

from email.utils import formatdate
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import writes
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import text
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import run_plan

CLOCK = 1_800_000_000.0
NOW, OLD, FRESH = (
    "2027-01-15T08:00:00Z",
    "2027-01-15T07:30:00.000000Z",
    "2027-01-15T07:59:55.000000Z",
)
MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"


def stopped(world: Any, at: str = OLD) -> None:
    """Every lease as it was then, while every kubelet and every component runs."""
    for item in world.data("api", "nodes")["items"]:
        item["lease"] = at
    for server in world.data("api", "locks")["servers"]:
        for lock in server["objects"]:
            lock["renew_time"] = at
    for name in world.documents:
        world.data(name, "kubelet")["process"]["started_at"] = CLOCK - 90000


def status(world: Any, host: str = "m1", **more: Any) -> dict[str, Any]:
    found = {
        "version": "3.6.4",
        "member_id": host[1:],
        "leader": "1",
        "errors": [],
        "db_size": 2097152,
        "db_size_in_use": 1048576,
        "quota": 1048576,
        "learner": False,
        "endpoint": "https://127.0.0.1:2379",
        **more,
    }
    world.data(host, "etcd").update(status=found)
    return found


def judged(world: Any, *codes: str) -> tuple[dict[str, str], list[Any]]:
    result = world.judge(faults=frozenset(codes) if codes else None)
    return {item.code: item.verdict for item in result.verdicts if item.host is None}, list(
        result.findings
    )


def present(world: Any) -> Any:
    """Give the finding, None where there is none."""
    return next((one for one in judged(world, "KM115")[1]), None)


def test_a_cluster_that_writes_is_clear(world):
    assert judged(world, "KM115") == ({"KM115": "clear"}, [])
    status(world)
    assert judged(world, "KM115") == ({"KM115": "clear"}, [])


def test_everything_stopped_and_nothing_is_clear(world):
    """C01: locks and leases of one time, every Node Ready, half an hour later."""
    stopped(world)
    verdicts, found = judged(
        world, "KM115", "KM203", "KM511", "KM512", "KM513", "KM525", "KM202", "KM523"
    )
    assert {code: verdicts[code] for code in ("KM115", "KM203", "KM511")} == dict.fromkeys(
        ("KM115", "KM203", "KM511"), "present"
    )
    assert all(verdicts[code] == "unknown" for code in ("KM512", "KM513", "KM523", "KM525"))
    assert found[0].code == "KM115"
    assert found[0].severity == "critical"
    assert "2027-01-15T07:30:00Z" in found[0].summary
    assert {one.code: one.because for one in found[1:]} == {
        "KM203": ("KM115",),
        "KM511": ("KM115",),
    }


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


@pytest.mark.parametrize("ahead", [45.0, -45.0])
def test_where_clocks_differ_no_age_is_known_and_the_clocks_are_named(world, ahead):
    stopped(world)
    clock = {
        "asked_at": CLOCK,
        "read_at": CLOCK + 0.1,
        "date": formatdate(CLOCK + ahead, usegmt=True),
    }
    for server in world.data("api", "locks")["servers"]:
        server["clock"] = clock
    result = world.judge(faults=frozenset(("KM115", "KM203", "KM511", "KM526")))
    verdicts = {item.code: item for item in result.verdicts}
    assert {code: item.verdict for code, item in verdicts.items()} == {
        "KM115": "unknown",
        "KM203": "unknown",
        "KM511": "unknown",
        "KM526": "present",
    }
    assert all("KM526" in verdicts[code].note for code in ("KM115", "KM203", "KM511"))
    assert [(one.code, one.host) for one in result.findings] == [("KM526", "m1")]


# etcd's own word


@pytest.mark.parametrize(
    ("alarms", "errors"),
    [
        ([{"member_id": "2", "alarm": "NOSPACE"}], []),
        (None, ["memberID:2 alarm:NOSPACE "]),
        ([], ["memberID:2 alarm:NOSPACE "]),
    ],
)
def test_an_alarm_counts_from_the_first_second(world, alarms, errors):
    status(world, errors=errors)
    world.data("m1", "etcd")["alarms"] = alarms
    found = present(world)
    assert "NOSPACE" in found.summary
    assert "2.0 MiB of 1.0 MiB" in found.summary
    assert ("m2" in found.summary) is bool(alarms)
    # m2, which the alarm names, was not read: the size is not said to be its own.
    assert "its database" not in found.summary
    assert "disarm" in found.remedy
    assert any(proof.kind == "http" and proof.host == "m1" for proof in found.evidence)
    verdicts, _findings = judged(world)
    assert verdicts["KM203"] == verdicts["KM511"] == verdicts["KM525"] == "unknown"


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


def test_corrupt_is_never_to_be_disarmed(world):
    status(world)
    world.data("m1", "etcd")["alarms"] = [
        {"member_id": "2", "alarm": "CORRUPT"},
        {"member_id": "1", "alarm": "NOSPACE"},
    ]
    found = present(world)
    assert "CORRUPT" in found.summary
    assert found.remedy.startswith("do not disarm")


def lost(world: Any, *down: str) -> None:
    """Members that do not run, as where their manifests were moved away.

    The others know no leader.
    """
    for name in ("m1", "m2", "m3"):
        if name in down:
            world.documents[name]["collectors"]["etcd"] = {
                "status": "error",
                "error": "x",
                "data": {
                    "status": None,
                    "members": [],
                    "error": "https://127.0.0.1:2379: Connection refused",
                },
            }
        else:
            status(world, name, leader="0", errors=["etcdserver: no leader"])


def test_no_quorum(world):
    lost(world, "m2", "m3")
    stopped(world)
    found = present(world)
    assert "no quorum" in found.summary
    assert "m2" in found.summary
    assert "m3" in found.summary
    assert "majority" in found.remedy
    world.api.update(status="error", reason="timed out", collectors={})
    assert "no quorum" in present(world).summary


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


def test_no_quorum_of_an_etcd_at_its_quota_comes_first(world):
    """As a member of etcd 3.6.16 answered: no leader, and the alarm."""
    lost(world, "m2", "m3")
    status(world, leader="0", errors=["etcdserver: no leader", "memberID:1 alarm:NOSPACE"])
    found = present(world)  # its leases are fresh: the alarm is sure all the same
    assert "no quorum" in found.summary
    assert "NOSPACE" in found.summary
    assert found.remedy.startswith("bring back")


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
    """For a second nobody leads, while leases were renewed a moment ago."""
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


def test_it_comes_first_and_no_host_is_called_healthy(world):
    world.run("m2", MANAGER, "--leader-elect=false", elect=False)
    world.manifest("m2", MANAGER, "--leader-elect=false")
    stopped(world)
    result = world.judge()
    assert result.findings[0].code == "KM115"
    assert "KM101" in {one.code for one in result.findings}
    shown = text.render(
        result,
        Run(
            run_id="20270115T080000Z-000000",
            started=NOW,
            finished=NOW,
            mode="observe",
            report_dir="/x",
            tool_version="0",
        ),
    )
    assert shown.index("KM115") < shown.index("KM101")
    assert "healthy:" not in shown


def test_kubelets_that_are_not_heard_get_no_other_cause(world):
    stopped(world)
    node = world.data("api", "nodes")["items"][-1]
    node.update(ready="Unknown", conditions=[{"type": "Ready", "status": "Unknown", "since": OLD}])
    world.documents["w1"]["collectors"]["api_way"] = {
        "status": "ok",
        "data": {"server": "https://x", "failed": "certificate", "error": "timed out"},
    }
    (found,) = [one for one in judged(world)[1] if one.code == "KM525"]
    assert found.because == ("KM115",)
    assert "accepts no writes" in found.summary
    assert "certificate" not in found.summary


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
