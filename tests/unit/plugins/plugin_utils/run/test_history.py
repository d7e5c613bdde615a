# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Since when findings are there: what earlier reports say, and when they say nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    UNPROVEN,
    Finding,
    HostRow,
    Missing,
    Result,
    Verdict,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    html,
    json_report,
    text,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import history
from tests import schemas

KEY = "0123456789abcdef"
NOW, NOW_ID = "2026-11-27T09:00:00Z", "20261127T090000Z-1a2b3c"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".kubemend" / "runs"


def finding(code="KM502", host="w1", cluster=KEY, **more):
    return Finding(code, "warning", cluster, host, more.pop("component", "kubelet"), "x", **more)


def result(*findings, verdicts=(), status="ok", hosts=("w1", "w2")):
    present = tuple(
        Verdict(item.code, item.cluster, "present", item.host, item.component) for item in findings
    )
    rows = tuple(HostRow(host, host, KEY, "worker", status) for host in hosts)
    return Result((), rows, (*present, *verdicts), findings=findings)


def stamp(day):
    return f"202611{day:02}T090000Z-1a2b3c"


def run(day, **more):
    time = f"2026-11-{day:02}T09:00:00Z"
    return Run(stamp(day), time, time, more.pop("mode", "observe"), "/r", "0.1.0", **more)


def write(root, day, judged, folder=None, **more):
    report = json_report.render(judged, run(day, **more))
    schemas.checked("report", report)
    place = folder or root / stamp(day)
    place.mkdir(parents=True, exist_ok=True)
    (place / "report.json").write_text(json.dumps(report), encoding="utf-8")
    return place / "report.json"


def since(root, judged, compared=None, folder=None):
    found = history.with_since(judged, str(folder or root / NOW_ID), NOW_ID, NOW, compared)
    return [item.since for item in found.findings]


CLEAR = (Verdict("KM502", KEY, "clear", "w1", "kubelet"),)
UNKNOWN = (
    Verdict("KM502", KEY, "unknown", "w1", "kubelet", (Missing("w1", "kubelet", "denied"),)),
)


def test_without_earlier_runs_a_finding_is_there_since_this_one(runs):
    assert since(runs, result(finding())) == [NOW]
    assert since(runs, result()) == []


def test_the_time_of_the_newest_report_with_the_finding_goes_on(runs):
    first = history.with_since(result(finding()), "/r", stamp(3), "2026-11-03T09:00:00Z")
    write(runs, 3, first)
    second = history.with_since(result(finding()), "/r", stamp(4), "2026-11-04T09:00:00Z")
    write(runs, 4, second)
    (runs / stamp(3) / "report.json").unlink()
    assert since(runs, result(finding())) == ["2026-11-03T09:00:00Z"]


def test_a_report_without_since_counts_with_its_start(runs):
    write(runs, 3, result(finding()))
    assert since(runs, result(finding(), finding("KM501"))) == ["2026-11-03T09:00:00Z", NOW]


@pytest.mark.parametrize(
    ("between", "ends"),
    [
        ({"verdicts": CLEAR}, True),
        ({"verdicts": (Verdict("KM502", KEY, "not_applicable", "w1", "kubelet"),)}, True),
        ({"verdicts": (Verdict("KM502", KEY, "clear"),)}, True),
        ({"verdicts": (Verdict("KM502", KEY, "present"),)}, True),
        ({"verdicts": UNKNOWN}, False),
        ({"verdicts": (*CLEAR, *UNKNOWN)}, False),
        ({"verdicts": ()}, False),
        ({"verdicts": (Verdict("KM502", KEY, "clear", "w2", "kubelet"),)}, False),
        ({"verdicts": (Verdict("KM502", KEY, "clear", "w1", "crio"),)}, False),
        ({"verdicts": (Verdict("KM502", "other", "clear", "w1", "kubelet"),)}, False),
        ({"verdicts": CLEAR, "status": "unreachable"}, False),
    ],
)
def test_only_a_run_that_judged_it_and_did_not_find_it_ends_the_time(runs, between, ends):
    write(runs, 3, result(finding()))
    write(runs, 4, result(**between))
    assert since(runs, result(finding())) == [NOW if ends else "2026-11-03T09:00:00Z"]


def test_a_fault_that_came_back_is_there_since_it_came_back(runs):
    write(runs, 3, result(finding()))
    write(runs, 4, result(verdicts=CLEAR))
    write(runs, 5, result(finding()))
    assert since(runs, result(finding())) == ["2026-11-05T09:00:00Z"]


@pytest.mark.parametrize("mode", ["replay", "capture", "revert"])
def test_reports_of_other_modes_say_nothing(runs, mode):
    write(runs, 3, result(finding()))
    write(runs, 4, result(verdicts=CLEAR), mode=mode)
    assert since(runs, result(finding())) == ["2026-11-03T09:00:00Z"]


def test_a_later_run_and_a_folder_that_is_no_run_say_nothing(runs):
    write(runs, 28, result(finding()))
    write(runs, 3, result(finding()), folder=runs / "notes")
    assert since(runs, result(finding())) == [NOW]


@pytest.mark.parametrize("cluster", [None, UNPROVEN])
def test_a_host_without_a_cluster_is_known_again_only_among_the_same_hosts(runs, cluster):
    silent = finding("KM901", cluster=cluster, component=None)
    write(runs, 3, result(silent))
    assert since(runs, result(silent)) == ["2026-11-03T09:00:00Z"]
    assert since(runs, result(silent, hosts=("w1", "x2"))) == [NOW]


def test_the_report_in_the_folder_of_this_run_and_the_compared_one_count_by_their_time(
    runs, tmp_path
):
    folder, compared = tmp_path / "report", tmp_path / "compared"
    write(runs, 2, result(finding()), folder=folder)
    assert since(runs, result(finding()), folder=folder) == ["2026-11-02T09:00:00Z"]
    path = write(runs, 4, result(verdicts=CLEAR), folder=compared)
    assert since(runs, result(finding()), str(path), folder) == [NOW]
    write(runs, 5, result(finding()))
    assert since(runs, result(finding()), str(path), folder) == ["2026-11-05T09:00:00Z"]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"schema": "kubemend.report/1"}', '{"schema": "kubemend.report/2"}'],
)
def test_what_is_no_report_is_passed_over(runs, content):
    write(runs, 3, result(finding()))
    (runs / stamp(4)).mkdir()
    (runs / stamp(4) / "report.json").write_text(content, encoding="utf-8")
    assert since(runs, result(finding())) == ["2026-11-03T09:00:00Z"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("findings", [{"id": ["x"]}]),
        ("findings", 1),
        ("verdicts", [1]),
        ("hosts", None),
        ("run_id", 7),
        ("started", "yesterday"),
        ("verdicts", [{"code": {}, "cluster": [], "verdict": "x", "missing": 0, "host": 0}]),
    ],
)
def test_a_report_with_wrong_types_is_passed_over(runs, field, value):
    write(runs, 3, result(finding()))
    path = write(runs, 4, result(finding()))
    report = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**report, field: value}), encoding="utf-8")
    assert since(runs, result(finding())) == ["2026-11-03T09:00:00Z"]


def test_a_since_that_is_no_time_is_the_start_of_its_run(runs):
    path = write(runs, 3, result(finding()))
    report = json.loads(path.read_text(encoding="utf-8"))
    report["findings"][0]["since"] = "\x1b[31m"
    path.write_text(json.dumps(report), encoding="utf-8")
    assert since(runs, result(finding())) == ["2026-11-03T09:00:00Z"]


def test_reports_that_may_not_be_read_leave_it_open(runs, monkeypatch):
    write(runs, 3, result(finding()))
    for day in (4, 5):
        write(runs, day, result(finding("KM501")))
    judged = result(finding(), finding("KM501"))
    monkeypatch.setattr(history, "MOST_REPORTS", 2)
    assert since(runs, judged) == [None, "2026-11-05T09:00:00Z"]
    monkeypatch.setattr(history, "MOST_REPORTS", 20)
    size = (runs / stamp(5) / "report.json").stat().st_size
    monkeypatch.setattr(history, "MOST_BYTES", size + 10)
    assert since(runs, judged) == [None, "2026-11-05T09:00:00Z"]


def test_every_face_tells_it_and_only_of_what_earlier_runs_found():
    old = replace(finding(), since="2026-11-24T09:00:00Z")
    older = replace(finding(host="w2"), since="2026-11-20T09:00:00Z")
    now = replace(run(27), finished=NOW)
    shown = text.render(result(old), now)
    assert "present for 3 d (since 2026-11-24 09:00 UTC)\n" in shown
    assert "present for 3 d (since 2026-11-24 09:00 UTC)<" in html.render(result(old), now)
    both = text.render(result(old, older), now)
    assert "present for 7 d (since 2026-11-20 09:00 UTC) at the longest" in both
    new = replace(finding(), since=NOW)
    assert "present for" not in text.render(result(new), now) + html.render(result(new), now)
    assert json_report.render(result(new), now)["findings"][0]["since"] == NOW
