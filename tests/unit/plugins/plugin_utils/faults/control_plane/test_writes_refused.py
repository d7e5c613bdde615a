# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM115, a cluster that accepts no writes: its causes, its remedies and what it explains."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import text
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run
from tests.unit.support.refused_writes import (
    CLOCK,
    MANAGER,
    NOW,
    OLD,
    judged,
    lost,
    present,
    status,
    stopped,
)


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


def test_corrupt_is_never_to_be_disarmed(world):
    status(world)
    world.data("m1", "etcd")["alarms"] = [
        {"member_id": "2", "alarm": "CORRUPT"},
        {"member_id": "1", "alarm": "NOSPACE"},
    ]
    found = present(world)
    assert "CORRUPT" in found.summary
    assert found.remedy.startswith("do not disarm")


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


def test_no_quorum_of_an_etcd_at_its_quota_comes_first(world):
    """As a member of etcd 3.6.16 answered: no leader, and the alarm."""
    lost(world, "m2", "m3")
    status(world, leader="0", errors=["etcdserver: no leader", "memberID:1 alarm:NOSPACE"])
    found = present(world)  # its leases are fresh: the alarm is sure all the same
    assert "no quorum" in found.summary
    assert "NOSPACE" in found.summary
    assert found.remedy.startswith("restore")


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


def test_an_etcd_that_does_not_stay_up_is_the_cause_and_other_components_follow(world):
    for host in ("m1", "m2", "m3"):
        world.data(host, "instances")["processes"] = []
        world.documents[host]["collectors"]["etcd"] = {"status": "error", "data": None}
        for component in ("etcd", "kube-apiserver"):
            world.manifest(host, component, "--v=2")
    world.api.update(status="error", reason="timed out", collectors={})
    found = [one for one in world.judge().findings if one.code in ("KM115", "KM114")]
    because = {one.component: one.because for one in found if one.code == "KM114"}
    assert [one.because for one in found if one.code == "KM115"] == [("KM114",)]
    assert because.pop("etcd") == ()
    assert "kube-apiserver" in because
    assert set(because.values()) == {("KM114", "KM115")}


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
