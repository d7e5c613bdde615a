# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Space of etcd: the alarm, the quota, and pages that hold nothing."""

from __future__ import annotations

import pytest

from tests.unit.support import etcd_evidence
from tests.unit.support.etcd_evidence import found, metrics, resize, settle, verdicts

CODES = ("KM140", "KM141", "KM143")
ALARM = [{"member_id": "2", "alarm": "NOSPACE"}]


def test_a_healthy_etcd_is_clear(world):
    settle(world)
    assert verdicts(world, *CODES) == dict.fromkeys(CODES, "clear")


def test_the_alarm_has_the_steps_in_their_order(world):
    settle(world)
    resize(world, "m2", 2049, 19)
    world.data("m1", "etcd")["alarms"] = ALARM
    (finding,) = found(world, *CODES)
    assert (finding.code, finding.severity, finding.component) == ("KM140", "critical", "etcd")
    assert "member m2" in finding.summary
    steps = ("snapshot save", "compact --physical", "$E defrag", "alarm disarm")
    places = [finding.remedy.index(step) for step in steps]
    assert places == sorted(places)
    assert "leader last" in finding.remedy
    assert "quota-backend-bytes" not in finding.remedy
    assert verdicts(world, *CODES)["KM141"] == "not_applicable"


def test_a_database_that_is_really_full_needs_a_higher_quota_first(world):
    settle(world)
    resize(world, "m1", 2049, 2040)
    world.data("m1", "etcd")["alarms"] = ALARM
    (finding,) = found(world, "KM140")
    assert "quota-backend-bytes" in finding.remedy


@pytest.mark.parametrize("code", ["KM140", "KM141"])
def test_the_resources_with_the_most_objects_are_named(world, code):
    settle(world)
    resize(world, "m1", 2030, 2020)
    if code == "KM140":
        world.data("m1", "etcd")["alarms"] = ALARM
    counts = {"events": 812000, "secrets": 0, "leases": 90, "pods": 40, "jobs": None, "x": 1}
    world.data("m1", "etcd")["objects"] = [
        {"resource": name, "count": count} for name, count in counts.items()
    ]
    (finding,) = found(world, code)
    assert finding.remedy.endswith("these: events 812000, leases 90, pods 40")


def test_the_alarm_explains_why_nothing_is_written(world):
    settle(world)
    world.data("m1", "etcd")["alarms"] = ALARM
    by_code = {item.code: item for item in found(world, "KM115", "KM140")}
    assert by_code["KM115"].because == ("KM140",)


def test_another_alarm_is_not_this_one(world):
    settle(world)
    world.data("m1", "etcd")["alarms"] = [{"member_id": "2", "alarm": "CORRUPT"}]
    assert verdicts(world, "KM140", "KM142") == {"KM140": "clear", "KM142": "present"}
    (finding,) = found(world, "KM142")
    assert finding.remedy.startswith("do not disarm")


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ('{"health":"true","reason":""}', "clear"),
        ('{"health":"false","reason":"ALARM NOSPACE"}', "present"),
        ("404 page not found", "unknown"),
    ],
)
def test_health_stands_for_a_status_that_no_credential_gets(world, body, verdict):
    settle(world)
    for name in ("m1", "m2", "m3"):
        world.data(name, "etcd").update(
            status=None, alarms=None, health={"status": 200, "body": body}
        )
    assert verdicts(world, "KM140") == {"KM140": verdict}


def test_without_any_word_of_etcd_nothing_is_clear(world):
    for name in ("m1", "m2", "m3"):
        world.documents[name]["collectors"]["etcd"] = {"status": "denied", "data": None}
    assert set(verdicts(world, *CODES, "KM142").values()) == {"unknown"}


def test_evidence_of_an_older_release_is_not_judged(world):
    for name in ("m1", "m2", "m3"):
        for key in ("status", "alarms", "local"):
            del world.data(name, "etcd")[key]
    assert set(verdicts(world, *CODES).values()) == {"tier"}


def test_an_etcd_elsewhere_is_not_judged(world):
    for name in ("m1", "m2", "m3"):
        world.documents[name]["collectors"]["etcd"] = {"status": "absent", "data": None}
    assert verdicts(world, *CODES) == dict.fromkeys(CODES, "not_applicable")


@pytest.mark.parametrize(
    ("size", "used", "severity", "word"),
    [
        (1700, 200, "warning", "defragment"),
        (1700, 1690, "warning", "delete"),
        (1700, None, "warning", "delete"),
        (1950, 1940, "critical", "delete"),
    ],
)
def test_near_the_quota(world, size, used, severity, word):
    settle(world)
    resize(world, "m3", size, used)
    (finding,) = found(world, "KM141")
    assert finding.severity == severity
    assert "m3" in finding.summary
    assert "m1" not in finding.summary
    assert word in finding.remedy


def test_a_quota_that_is_switched_off_has_no_limit(world):
    settle(world)
    for name in ("m1", "m2", "m3"):
        resize(world, name, 9000, 8999)
        world.data(name, "etcd")["status"]["quota"] = None
        world.data(name, "etcd")["local"]["quota"] = None
    assert verdicts(world, "KM141") == {"KM141": "clear"}


@pytest.mark.parametrize(
    ("size", "used", "verdict"),
    [(400, 100, "present"), (150, 60, "clear"), (400, 250, "clear"), (90, 1, "clear")],
)
def test_pages_that_hold_nothing(world, size, used, verdict):
    settle(world)
    resize(world, "m1", size, used)
    assert verdicts(world, "KM143") == {"KM143": verdict}


def test_what_is_in_use_is_not_known_of_old_releases(world):
    settle(world)
    for name in ("m1", "m2", "m3"):
        resize(world, name, 400, None)
    assert verdicts(world, "KM143") == {"KM143": "unknown"}


def test_metrics_alone_tell_the_size(world):
    settle(world)
    for name in ("m1", "m2", "m3"):
        world.data(name, "etcd")["status"] = None
        metrics(world, name).update(db_size=1990.0 * etcd_evidence.MIB)
    (finding,) = found(world, "KM141")
    assert finding.severity == "critical"
    assert finding.evidence[0].object == "http://127.0.0.1:2381"


def stop_all(world, size):
    """Let no etcd run; the file of each database has this size, in MiB."""
    for id_ in etcd_evidence.MEMBERS:
        etcd_evidence.end(world, id_)
        name = f"m{id_}"
        world.manifest(name, "etcd", f"--name={name}")
        file = {"path": "/var/lib/etcd/member/snap/db", "bytes": size * etcd_evidence.MIB}
        world.documents[name]["collectors"]["space"] = {"status": "ok", "data": {"database": file}}


def test_files_tell_the_sizes_where_no_etcd_runs(world):
    settle(world)
    stop_all(world, 2050)
    (finding,) = found(world, "KM141")
    assert finding.severity == "critical"
    assert [proof.path for proof in finding.evidence] == ["/var/lib/etcd/member/snap/db"] * 3
    assert "has to run first" in finding.remedy
    assert verdicts(world, "KM140", "KM143") == {"KM140": "unknown", "KM143": "unknown"}
    stop_all(world, 900)
    assert verdicts(world, "KM141") == {"KM141": "clear"}
