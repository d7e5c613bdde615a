# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM144, a slow etcd: by its metrics or its log, with the disk, the network or the CPU as cause."""

from __future__ import annotations

import pytest

from tests.unit.support.etcd_evidence import found, metrics, settle, verdicts

LATE = (
    '{"level":"warn","msg":"leader failed to send out heartbeat on time; took too long, leader is'
    ' overloaded likely from slow disk"}'
)
SYNC = '{"level":"warn","msg":"slow fdatasync","took":"2.1s","expected-duration":"1s"}'


def said(world, host, line, count, minutes):
    row = {"count": count, "minutes": minutes, "first": 1.0, "last": 2.0, "pods": 0, "line": line}
    world.documents[host]["collectors"]["repeated_errors"] = {
        "status": "ok",
        "data": {"read_at": 2.0, "components": [{"component": "etcd", "entries": [row]}]},
    }


def times(p99, count=5000.0):
    return {"count": count, "seconds": 1.0, "p99": p99}


def stores(world, *uses):
    rows = [{"path": f"/{use}", "use": use, "device": device} for use, device in uses]
    world.documents["m1"]["collectors"]["space"] = {"status": "ok", "data": {"stores": rows}}


def only(world):
    (finding,) = found(world, "KM144")
    assert (finding.host, finding.component) == ("m1", "etcd")
    return finding


def test_a_fast_etcd_is_clear(world):
    settle(world)
    metrics(world, "m1").update(wal_fsync=times(0.02), backend_commit=times(0.03))
    assert verdicts(world, "KM144")["KM144"] in ("clear", "not_applicable")
    result = world.judge(faults=frozenset(("KM144",)))
    assert {item.host: item.verdict for item in result.verdicts} == {
        "m1": "clear",
        "m2": "clear",
        "m3": "clear",
        "w1": "not_applicable",
    }


@pytest.mark.parametrize(("key", "p99"), [("wal_fsync", 0.6), ("backend_commit", 0.3)])
def test_a_slow_disk_names_who_shares_it(world, key, p99):
    settle(world)
    metrics(world, "m1")[key] = times(p99)
    world.data("m1", "etcd")["local"]["folder"] = {"path": "/var/lib/etcd", "disk": "sdb"}
    stores(world, ("etcd", 5), ("runtime", 5), ("kubelet", 6))
    finding = only(world)
    assert "its disk is slow (/var/lib/etcd on sdb), which" in finding.summary
    assert "images and containers" in finding.summary
    assert "kubelet's pods" not in finding.summary


def test_a_few_slow_syncs_of_a_young_process_decide_nothing(world):
    settle(world)
    metrics(world, "m1")["wal_fsync"] = times(0.9, count=20.0)
    assert found(world, "KM144") == []


def test_a_slow_network_is_told_apart(world):
    settle(world)
    metrics(world, "m1")["peers"][0]["round_trip"] = times(0.4)
    finding = only(world)
    assert "network" in finding.summary
    assert "2380" in finding.remedy


@pytest.mark.parametrize(
    ("line", "count", "minutes", "is_slow"),
    [
        (LATE, 40, 6, True),
        (LATE, 40, 2, False),
        (LATE, 5, 5, False),
        (SYNC, 3, 1, True),
        (SYNC, 1, 1, False),
        ('{"level":"warn","msg":"prober detected unhealthy status"}', 900, 9, False),
    ],
)
def test_lines_of_the_log_count_where_they_are_said_again_and_again(
    world, line, count, minutes, is_slow
):
    settle(world)
    said(world, "m1", line, count, minutes)
    assert bool(found(world, "KM144")) is is_slow


def test_lines_of_one_text_are_counted_together(world):
    settle(world)
    line = '{"level":"warn","msg":"apply request took too long","request":"key:%s"}'
    said(world, "m1", LATE, 40, 6)
    data = world.data("m1", "repeated_errors")
    (row,) = data["components"][0]["entries"]
    data["components"][0]["entries"] += [{**row, "line": line % key} for key in "abcd"]
    finding = only(world)
    assert finding.summary.count("took too long") == 1
    assert "160 times within ten minutes: took too long" in finding.summary
    assert len(finding.evidence) <= 3


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"throttled": {"periods": 100, "throttled": 60}}, "CPU limit"),
        ({"stalls": {"io": 60.0, "cpu": 1.0}}, "its disk"),
        ({"stalls": {"io": 1.0, "cpu": 80.0}}, "waited for a CPU"),
        ({"stalls": {"io": 1.0, "cpu": 10.0}}, "is slow: 40 times"),
    ],
)
def test_the_cause_of_late_heartbeats(world, more, word):
    settle(world)
    said(world, "m1", LATE, 40, 6)
    world.data("m1", "etcd")["local"].update(more)
    assert word in only(world).summary


@pytest.mark.parametrize(
    ("line", "more", "changes", "severity"),
    [
        (LATE, {}, 0.0, "info"),
        (LATE, {}, 17.0, "warning"),
        (LATE, {"stalls": {"io": 60.0, "cpu": 1.0}}, 0.0, "warning"),
        (SYNC, {}, 0.0, "warning"),
    ],
)
def test_lines_alone_are_a_warning_where_leaders_change(world, line, more, changes, severity):
    settle(world)
    said(world, "m1", line, 40, 6)
    world.data("m1", "etcd")["local"].update(more)
    metrics(world, "m1")["leader_changes"] = changes
    assert only(world).severity == severity


def test_without_metrics_it_is_unknown(world):
    settle(world)
    world.data("m1", "etcd")["local"].update(metrics=None, metrics_error="refused")
    result = world.judge(faults=frozenset(("KM144",)))
    assert {item.host: item.verdict for item in result.verdicts}["m1"] == "unknown"
