# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The trend over reports: what came, stayed and went, and what no run says."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    UNPROVEN,
    ClusterRow,
    Finding,
    HostRow,
    Missing,
    Result,
    Verdict,
    Waived,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import json_report
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import (
    Run,
    Symptom,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import trend
from tests import schemas

KEY = "0123456789abcdef"


@pytest.fixture(name="runs")
def _runs(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".kubemend" / "runs"


def finding(code="KM502", host="w1", cluster=KEY, severity="warning", **more):
    return Finding(code, severity, cluster, host, "kubelet", "x", **more)


def verdict(kind, missing=(), **more):
    place = {"host": "w1", "component": "kubelet", "cluster": KEY, **more}
    return Verdict("KM502", verdict=kind, missing=missing, **place)


def write(runs, day, *findings, verdicts=(), cluster=KEY, hosts=("w1",), status="ok", **more):
    name, time = f"202611{day:02}T090000Z-1a2b3c", f"2026-11-{day:02}T09:00:00Z"
    present = [
        Verdict(item.code, item.cluster, "present", item.host, item.component) for item in findings
    ]
    result = Result(
        (ClusterRow(cluster, "v1.36.3", hosts),),
        tuple(HostRow(host, host, cluster, "worker", status) for host in hosts),
        (*present, *verdicts),
        findings=findings,
    )
    run = Run(name, time, time, more.pop("mode", "observe"), "/r", "0.1.0", **more)
    report = json_report.render(result, run)
    schemas.checked("report", report)
    (runs / name).mkdir(parents=True)
    (runs / name / "report.json").write_text(json.dumps(report), encoding="utf-8")


def only():
    (cluster,) = trend.read().clusters
    return cluster


def test_without_runs_there_is_no_trend(runs):
    assert trend.read() == trend.Trend(str(runs), [], 0)


def test_findings_that_came_stayed_and_went(runs):
    stays = finding("KM501")
    write(runs, 1, stays, finding())
    write(runs, 2, stays, verdicts=[verdict("clear")])
    write(runs, 3, stays, finding("KM503"), verdicts=[verdict("clear")])
    cluster = only()
    assert [row.changes for row in cluster.rows] == [None, (0, 1, 1), (1, 1, 0)]
    assert [row.counts["warning"] for row in cluster.rows] == [2, 1, 2]
    courses = {course.finding.code: course for course in cluster.courses.values()}
    assert (courses["KM501"].since, courses["KM501"].last[:10]) == (
        "2026-11-01T09:00:00Z",
        "2026-11-03",
    )
    assert (courses["KM502"].last[:10], courses["KM502"].gone[:10]) == ("2026-11-01", "2026-11-02")
    assert courses["KM503"].since == "2026-11-03T09:00:00Z"


@pytest.mark.parametrize(
    ("verdicts", "more"),
    [
        ([], {}),
        ([verdict("unknown", (Missing("w1", "kubelet", "denied"),))], {}),
        ([verdict("clear", host="w2")], {}),
        ([verdict("clear")], {"status": "unreachable"}),
    ],
)
def test_a_run_that_says_nothing_of_a_finding_does_not_end_it(runs, verdicts, more):
    write(runs, 1, finding())
    write(runs, 2, verdicts=verdicts, **more)
    cluster = only()
    (course,) = cluster.courses.values()
    assert (course.gone, course.last) == (None, "2026-11-01T09:00:00Z")
    assert cluster.rows[1].changes == (0, 0, 0)


def test_a_finding_that_comes_back_begins_again(runs):
    write(runs, 1, finding())
    write(runs, 2, verdicts=[verdict("clear")])
    write(runs, 3, finding())
    (course,) = only().courses.values()
    assert (course.since, course.gone) == ("2026-11-03T09:00:00Z", None)


def test_since_of_a_report_reaches_behind_the_runs_that_are_there(runs):
    write(runs, 5, finding(since="2026-10-01T00:00:00Z"))
    assert [course.since for course in only().courses.values()] == ["2026-10-01T00:00:00Z"]


def test_a_waived_finding_is_counted_as_none(runs):
    write(runs, 1, finding(waived=Waived("r", "o", "2027-01-01")), finding("KM501"))
    cluster = only()
    assert cluster.rows[0].counts["warning"] == 1
    assert {course.finding.state for course in cluster.courses.values()} == {"waived", "warning"}


def test_clusters_have_trends_of_their_own(runs):
    write(runs, 1, finding())
    write(runs, 2, finding(cluster="f" * 16), cluster="f" * 16, cluster_names={"f" * 16: "prod"})
    assert [(item.key, item.name, len(item.rows)) for item in trend.read().clusters] == [
        ("f" * 16, "prod", 1),
        (KEY, None, 1),
    ]


def test_hosts_of_no_proven_cluster_are_one_only_with_the_same_names(runs):
    write(runs, 1, finding(cluster=UNPROVEN), cluster=UNPROVEN)
    write(runs, 2, finding(cluster=UNPROVEN), cluster=UNPROVEN)
    write(runs, 3, cluster=UNPROVEN, hosts=("x1",))
    assert [len(item.rows) for item in trend.read().clusters] == [1, 2]


def test_a_row_has_the_symptom_and_the_hosts_that_answered(runs):
    write(runs, 1, hosts=("w1", "w2"), status="unreachable", symptom=Symptom("api_down", "x", ()))
    (row,) = only().rows
    assert (row.symptom, row.answered, row.hosts) == ("api_down", 0, 2)


@pytest.mark.parametrize("mode", ["replay", "revert", "capture"])
def test_runs_that_judged_another_time_or_nothing_are_left_out(runs, mode):
    write(runs, 1, finding(), mode=mode)
    assert trend.read().clusters == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "5",
        '{"schema": "kubemend.report/1", "mode": "observe"}',
        "[" * 100000,
        '{"schema": "kubemend.report/1", "mode": []}',
    ],
)
def test_a_file_that_is_no_report_is_passed_over(runs, text):
    write(runs, 1, finding())
    folder = runs / "20261102T090000Z-1a2b3c"
    folder.mkdir()
    (folder / "report.json").write_text(text, encoding="utf-8")
    assert len(only().rows) == 1


@pytest.mark.parametrize(
    "field", ["hosts", "verdicts", "findings", "clusters", "started", "symptom"]
)
@pytest.mark.parametrize("value", [5, "x", [5], None, [{}]])
def test_a_field_of_a_wrong_type_leaves_out_its_report_alone(runs, field, value):
    write(runs, 1, finding())
    write(runs, 2, finding())
    path = runs / "20261102T090000Z-1a2b3c" / "report.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**report, field: value}), encoding="utf-8")
    clusters = trend.read().clusters
    assert sum(len(cluster.rows) for cluster in clusters) in (1, 2)


def test_the_number_of_runs_and_of_bytes_is_bounded(runs, monkeypatch):
    for day in range(1, 6):
        write(runs, day, finding())
    result = trend.read(3)
    assert (len(result.clusters[0].rows), result.older) == (3, 2)
    assert result.clusters[0].rows[-1].run_id.startswith("20261105")
    size = (runs / "20261105T090000Z-1a2b3c" / "report.json").stat().st_size
    monkeypatch.setattr(trend, "MAX_BYTES", size + 10)
    result = trend.read()
    assert (len(result.clusters[0].rows), result.older) == (1, 4)
