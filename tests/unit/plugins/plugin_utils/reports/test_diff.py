# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two reports compared: by place and not by words, and never gone without a new look."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    Finding,
    HostRow,
    Missing,
    NotJudged,
    Result,
    Verdict,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    diff as report_diff,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    json_report,
    text,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import (
    Run,
    exit_of,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.settings import SettingsError
from tests import schemas
from tests.unit.plugins.plugin_utils.faults.test_recorded import FOLDER

KEY = "0123456789abcdef"
SCHEDULER = "kube-scheduler"


def run(**more):
    return Run(
        run_id="20261121T090000Z-1a2b3c",
        started="s",
        finished="2026-11-21T09:00:09Z",
        mode="observe",
        report_dir="/r",
        tool_version="0.1.0",
        **more,
    )


def found(code="KM101", host="m1", component=SCHEDULER, severity="critical", cluster=KEY, **more):
    return Finding(code, severity, cluster, host, component, more.pop("summary", "off"), **more)


def hosts(*names, **other):
    return tuple(
        HostRow(name, None, KEY, "control_plane", other.get(name, "ok"))
        for name in (*names, *other)
    )


def saw(code="KM101", verdict="clear", host=None, component=SCHEDULER, cluster=KEY, missing=()):
    return Verdict(code, cluster, verdict, host, component, missing)


def earlier(*findings, verdicts=()):
    report = json_report.render(Result(findings=findings, verdicts=verdicts), run())
    return report_diff.parse(json.dumps(report).encode(), "report.json")


def compared(before, result):
    told = report_diff.compare(before, result)
    report = schemas.checked("report", json_report.render(result, run(compared=told)))
    assert report["compared"] == told.shown()
    return told


def ids(findings):
    return [item.id for item in findings]


LACK = (Missing("m2", "host", "unreachable"),)


def test_by_place_and_not_by_words():
    now = Result(
        hosts=hosts("m1", "m2"),
        verdicts=(saw(verdict="present"),),
        findings=(found(summary="in other words", evidence=(), remedy="other"), found(host="m2")),
    )
    told = compared(earlier(found(), found(component="kube-controller-manager")), now)
    assert ids(told.unchanged) == [f"KM101/{KEY}/m1/{SCHEDULER}"]
    assert ids(told.new) == [f"KM101/{KEY}/m2/{SCHEDULER}"]
    assert told.counts == {"critical": 1, "warning": 0, "unknown": 0}


def test_several_of_one_place_are_one():
    now = Result(findings=(found("KM313", summary="pod a"), found("KM313", summary="pod b")))
    told = compared(earlier(found("KM313", summary="pod c")), now)
    assert (ids(told.unchanged), told.new, told.gone) == ([found("KM313").id], (), ())


def test_what_is_more_severe_than_it_was_counts():
    now = Result(findings=(found(), found("KM901", "m3", None, "warning")))
    told = compared(earlier(found(severity="warning"), found("KM901", "m3", None, "critical")), now)
    assert (ids(told.worse), ids(told.unchanged)) == ([found().id], [found("KM901", "m3", None).id])
    assert told.counts == {"critical": 1, "warning": 0, "unknown": 0}


@pytest.mark.parametrize(
    ("item", "result", "reason"),
    [
        (found(), Result(hosts=hosts("m1"), verdicts=(saw(),)), ""),
        (found(), Result(hosts=hosts("m1"), verdicts=(saw(verdict="not_applicable"),)), ""),
        (
            found(),
            Result(
                hosts=hosts("m1", "m2"),
                verdicts=(saw(verdict="present"),),
                findings=(found(host="m2"),),
            ),
            "",
        ),
        (
            found("KM502", component=None),
            Result(hosts=hosts("m1"), verdicts=(saw("KM502", host="m1", component="kubelet"),)),
            "",
        ),
        (
            found("KM901", component=None),
            Result(hosts=hosts("m1"), verdicts=(saw("KM901", host="m1", component=None),)),
            "",
        ),
        (found("KM113", None, None), Result(verdicts=(saw("KM113", component=None),)), ""),
        # Not inspected, or not well enough.
        (found(), Result(hosts=hosts(m1="unreachable"), verdicts=(saw(),)), "m1 did not answer"),
        (found(), Result(hosts=hosts(m1="error"), verdicts=(saw(),)), "m1: error"),
        (found(), Result(hosts=hosts("m2"), verdicts=(saw(),)), "m1 was not asked"),
        (found(), Result(hosts=hosts("m1"), verdicts=(saw("KM102"),)), "KM101 was not judged"),
        (
            found(),
            Result(hosts=hosts("m1"), verdicts=(saw(component="kube-controller-manager"),)),
            "KM101 was not judged",
        ),
        (
            found(),
            Result(hosts=hosts("m1"), verdicts=(saw(cluster="f" * 16),)),
            "KM101 was not judged",
        ),
        (
            found(),
            Result(hosts=hosts("m1"), not_judged=(NotJudged("KM101", KEY, "limit"),)),
            "KM101 was left out by --limit",
        ),
        (
            found(),
            Result(hosts=hosts("m1"), not_judged=(NotJudged("KM101", None, "tier"),)),
            "KM101 needs kubemend_deep",
        ),
        (
            found(),
            Result(hosts=hosts("m1"), not_judged=(NotJudged("KM101", None, "slice"),)),
            "KM101 is left to the replay of all slices",
        ),
        (
            found(),
            Result(
                hosts=hosts("m1", m2="unreachable"),
                verdicts=(saw(verdict="unknown", missing=LACK),),
            ),
            "KM101 is unknown",
        ),
        (
            found(),
            Result(
                hosts=hosts("m1", "m3", m2="unreachable"),
                verdicts=(saw(verdict="present", missing=LACK),),
                findings=(found(host="m3"),),
            ),
            "KM101 is not known of every host",
        ),
        (
            found("KM901", component=None),
            Result(hosts=hosts("m2"), verdicts=(saw("KM901", host="m2", component=None),)),
            "KM901 was not judged",
        ),
        (found("KM113", None, None), Result(hosts=hosts(m1="unreachable")), "KM113 was not judged"),
    ],
)
def test_gone_is_said_only_of_what_was_judged_again(item, result, reason):
    told = compared(earlier(item), result)
    assert told.not_judged == (((item, reason),) if reason else ())
    assert told.gone == (() if reason else (item,))


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, KEY), (KEY, None), ("unproven", KEY), (KEY, "unproven"), (None, "unproven")],
)
def test_a_host_whose_cluster_was_not_proven_is_the_same_host(before, after):
    told = compared(earlier(found(cluster=before)), Result(findings=(found(cluster=after),)))
    assert ids(told.unchanged) == [found(cluster=after).id]
    assert not told.new
    assert not told.gone
    assert not told.not_judged
    two = compared(earlier(found(cluster="a" * 16)), Result(findings=(found(),)))
    assert len(two.new) == 1
    assert len(two.not_judged) == 1


def test_nodes_that_are_no_hosts_are_told_apart():
    told = compared(
        earlier(found("KM112", None, None, node="n1")),
        Result(findings=(found("KM112", None, None, node="n2"),)),
    )
    assert [item.node for item in told.new] == ["n2"]
    assert [item.node for item, dummy in told.not_judged] == ["n1"]


def test_only_unknown_verdicts_that_are_new_count():
    lacking = saw(verdict="unknown", missing=LACK)
    before = earlier(verdicts=(lacking, saw("KM501", "unknown", "m2", None, None)))
    assert (
        compared(before, Result(verdicts=(lacking, saw("KM501", "unknown", "m2", None)))).counts[
            "unknown"
        ]
        == 0
    )
    assert (
        compared(before, Result(verdicts=(saw("KM102", "unknown", missing=LACK),))).counts[
            "unknown"
        ]
        == 1
    )


@pytest.mark.parametrize(
    ("level", "before", "code"),
    [
        ("critical", (), 2),
        ("warning", (), 2),
        ("never", (), 0),
        ("critical", (found(),), 0),
        ("unknown", (found(),), 0),
        ("critical", (found(severity="warning"),), 2),
        ("critical", (found(host="m2"),), 2),
    ],
)
def test_what_fails_the_run_is_what_is_new(level, before, code):
    result = Result(verdicts=(saw(verdict="present"),), findings=(found(),))
    with_it = run(fail_on=level, compared=report_diff.compare(earlier(*before), result))
    assert exit_of(result, with_it) == ((2, "threshold") if code else (0, "ok"))
    assert json_report.render(result, with_it)["exit_code"] == code


def test_the_terminal_says_what_became_of_them():
    result = Result(
        hosts=hosts("m1", "m2", m3="unreachable"),
        verdicts=(saw(verdict="present"), saw("KM502", host="m1", component="kubelet")),
        findings=(found(), found(host="m2")),
    )
    before = earlier(found(), found("KM502", component="kubelet"), found(host="m3"))
    titles = {"KM101": "Election disabled", "KM502": "Kubelet does not run"}
    report = text.render(
        result, run(compared=report_diff.compare(before, result), titles=titles), 80
    )
    assert (
        "compared with run 20261121T090000Z-1a2b3c, which ended 2026-11-21T09:00:09Z:\n"
        "  new: KM101 m2 kube-scheduler: Election disabled\n"
        "  gone: KM502 m1 kubelet: Kubelet does not run\n"
        "  unchanged: KM101 m1 kube-scheduler: Election disabled\n"
        "  not judged now: KM101 m3 kube-scheduler: Election disabled (m3 did not answer)\n"
        in report
    )
    assert "  new: nothing\n" in text.render(
        Result(), run(compared=report_diff.compare(earlier(), Result())), 80
    )
    assert "compared" not in text.render(result, run(), 80)


def test_a_host_that_falls_silent_loses_nothing():
    """Recorded: two masters without election, then one of them does not answer."""
    folder = FOLDER / "v1.18.4-two-leaders" / "evidence"
    documents = list(evidence_sources.stream([str(folder)]))
    first = fault_engine.evaluate(documents, deep=True)
    lost = next(item.host for item in first.findings if item.code == "KM101")
    silent = document.envelope(lost, "unreachable", "timed out")
    second = fault_engine.evaluate(
        [
            (
                {**silent, "groups": ["control_plane"]}
                if item["host"] == lost and item.get("kind") != "cluster"
                else item
            )
            for item in documents
        ],
        deep=True,
    )
    told = compared(earlier(*first.findings), second)
    assert not any(item.host == lost for item in told.gone)
    assert {item.code for item, dummy in told.not_judged if item.host == lost} >= {"KM101"}
    assert [item.code for item in told.new if item.host == lost] == ["KM901"]
    same = compared(earlier(*first.findings), first)
    assert not same.new
    assert not same.gone
    assert not same.not_judged
    assert len(same.unchanged) == len({item.id for item in first.findings})


GOOD = json_report.render(Result(findings=(found(),), verdicts=(saw(),)), run())


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (None, "there is no such file or folder."),
        ("", "it is no report (no JSON, or cut)."),
        ("[" * 100000, "it is no report (no JSON, or cut)."),
        *(
            (text, "it is no report of kubemend.")
            for text in ("[]", '{"schema": "kubemend.plan/1"}', '{"schema": 1}')
        ),
        (
            '{"schema": "kubemend.report/2"}',
            "its schema is 'kubemend.report/2', and this version compares kubemend.report/1 only.",
        ),
        (
            '{"schema": "kubemend.evidence/1"}',
            "that is evidence of a host; what is compared is report.json, or the folder of a run.",
        ),
        (
            json.dumps({**GOOD, "mode": "capture"}),
            "it is the report of a capture, which judges nothing.",
        ),
        *(
            (
                json.dumps({**GOOD, **wrong}),
                (
                    "it is no whole report: a field of its findings or verdicts is missing or of"
                    " another type."
                ),
            )
            for wrong in (
                {"findings": None},
                {"findings": [1]},
                {"findings": [{"code": "KM101"}]},
                {"findings": [{**GOOD["findings"][0], "severity": "bad"}]},
                {"findings": [{**GOOD["findings"][0], "host": ["m1"]}]},
                {"verdicts": {"a": 1}},
                {"verdicts": [{"verdict": "unknown"}]},
                {"run_id": 7},
            )
        ),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(tmp_path, data, sentence):
    path = tmp_path / "report.json"
    if data is not None:
        path.write_text(data)
    with pytest.raises(SettingsError) as error:
        report_diff.read(str(path))
    said = str(error.value)
    assert said.startswith("kubemend_compare_to is ")
    assert said.endswith(": " + sentence)
    assert "\n" not in said


def test_a_folder_of_a_run_will_do_and_no_other(tmp_path):
    with pytest.raises(SettingsError, match=r"that folder has no report\.json"):
        report_diff.read(str(tmp_path))
    (tmp_path / "report.json").write_text(json.dumps(GOOD))
    assert report_diff.parse(report_diff.read(str(tmp_path)), "x").findings[0].id == found().id
    with pytest.raises(SettingsError, match="that is no file"):
        report_diff.read("/dev/null")


@pytest.mark.parametrize("known_first", [True, False])
def test_a_node_is_the_same_when_its_host_becomes_known(known_first):
    reports = [found("KM512", host, None, node="w1") for host in ("10.0.0.1", None)]
    before, now = reports if known_first else reversed(reports)
    told = compared(earlier(before), Result(findings=(now,)))
    assert ids(told.unchanged) == [now.id]
    assert (told.new, told.gone, told.not_judged) == ((), (), ())


def test_the_same_node_of_another_cluster_or_on_another_host_is_another_one():
    before = earlier(found("KM512", "a", None, node="w1"))
    for now in (
        found("KM512", "b", None, node="w1"),
        found("KM512", None, None, node="w1", cluster="f" * 16),
    ):
        assert len(compared(before, Result(findings=(now,))).new) == 1


def test_many_hosts_of_a_change_are_ranges():
    result = Result(findings=tuple(found("KM502", f"w{n}", None) for n in range(1, 61)))
    report = text.render(result, run(compared=report_diff.compare(earlier(), result)), 80)
    assert "  new: KM502 w1-w60 (60 hosts)\n" in report


def test_ids_are_the_same_whatever_order_the_evidence_has():
    folder = FOLDER / "v1.36.3-pods-pending" / "evidence"
    documents = list(evidence_sources.stream([str(folder)]))
    results = [fault_engine.evaluate(order, deep=True) for order in (documents, documents[::-1])]
    assert sorted(ids(results[0].findings)) == sorted(ids(results[1].findings))
