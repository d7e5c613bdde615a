# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waived findings in every report: shown as waived, in no count but their own, never hidden."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    ClusterRow,
    Coverage,
    Finding,
    HostRow,
    Result,
    Verdict,
    Waived,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.waivers import (
    Waiver,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    conclusion,
    headline,
    html,
    json_report,
    junit,
    matrix,
    phrases,
    text,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    diff as report_diff,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import (
    Run,
    Symptom,
    exit_of,
    last_line,
    summary,
)
from tests import schemas

KEY = "0123456789abcdef"
WAIVED = Waived("rebuilt <soon>", "platform", "2027-01-31")
EXPIRED = Waiver("KM50*", "w2", "was known", "storage", "2026-01-31", None, 9)


def finding(code, host, severity="warning", waived=None, **more):
    return Finding(code, severity, KEY, host, "kubelet", f"{code} is there", waived=waived, **more)


ACCEPTED = finding("KM407", "w1", waived=WAIVED, remedy="set it")
COUNTING = finding("KM502", "w2", "critical")


def result(*findings):
    return Result(
        (ClusterRow(KEY, "v1.36.3", ("w1", "w2")),),
        tuple(HostRow(host, host, KEY, "worker", "ok", judged=97) for host in ("w1", "w2")),
        tuple(Verdict(item.code, KEY, "present", item.host, item.component) for item in findings),
        findings=findings,
        faults=97,
        coverage=(Coverage(KEY, 2, 2),),
    )


def run(**more):
    return Run(
        "20261121T090000Z-1a2b3c",
        "2026-11-21T09:00:00Z",
        "2026-11-21T09:00:09Z",
        "observe",
        "/r",
        "0.1.0",
        titles={"KM407": "Settings lost", "KM502": "Kubelet stopped"},
        **more,
    )


@pytest.mark.parametrize(
    ("findings", "fail_on", "code"),
    [
        ((ACCEPTED,), "warning", 0),
        ((replace(ACCEPTED, severity="critical"),), "unknown", 0),
        ((ACCEPTED, COUNTING), "critical", 2),
        ((replace(ACCEPTED, waived=None),), "warning", 2),
    ],
)
def test_the_threshold_does_not_count_waived_findings(findings, fail_on, code):
    assert exit_of(result(*findings), run(fail_on=fail_on))[0] == code


def test_counts_leave_waived_findings_out_and_count_them_apart():
    found = result(ACCEPTED, COUNTING)
    counts = summary(found)
    assert (counts["critical"], counts["warning"], counts["waived"]) == (1, 0, 1)
    assert counts["present"] == 2
    assert "waived" not in summary(result(COUNTING))
    assert headline.counts(found)["waived"] == 1
    assert "1 critical, 0 warning, 0 unknown" in last_line(found, run())


def test_the_text_shows_a_waived_finding_last_with_day_owner_and_reason():
    shown = text.render(result(replace(ACCEPTED, severity="critical"), COUNTING), run())
    lines = shown.splitlines()
    first, second = (
        next(index for index, line in enumerate(lines) if line.startswith(head))
        for head in ("CRITICAL KM502 w2", "WAIVED CRITICAL KM407 w1")
    )
    assert first < second
    assert "waived until 2027-01-31 by platform: rebuilt <soon>" in lines[second + 1]
    assert "fix (waived, not planned): set it" in shown
    assert lines[-3].startswith("CRITICAL KM502") or lines[-4].startswith("CRITICAL KM502")
    assert shown.count("WAIVED CRITICAL KM407 w1") == 2


def test_waived_and_other_findings_of_a_fault_are_two_groups():
    shown = text.render(result(ACCEPTED, replace(ACCEPTED, host="w2", waived=None)), run())
    assert shown.count("\nWAIVED WARNING KM407 w1 ") == 2
    assert shown.count("\nWARNING KM407 w2 ") == 2


def test_json_has_the_waiver_and_the_schema_knows_it():
    report = json_report.render(result(ACCEPTED, COUNTING), run(waivers_expired=(EXPIRED,)))
    schemas.checked("report", report)
    assert [item.get("waived") for item in report["findings"]] == [
        {"reason": "rebuilt <soon>", "owner": "platform", "expires": "2027-01-31"},
        None,
    ]
    assert report["summary"]["waived"] == 1
    assert report["waivers_expired"] == [
        {
            "code": "KM50*",
            "hosts": "w2",
            "component": None,
            "reason": "was known",
            "owner": "storage",
            "expires": "2026-01-31",
        }
    ]
    assert EXPIRED.end in report["notices"]
    assert "waivers_expired" not in json_report.render(result(COUNTING), run())


def junit_case(found, host, code, **more):
    content = junit.render(found, run(**more))
    assert schemas.junit_complaints(content) == []
    cases = [
        case
        for suite in ElementTree.fromstring(content.encode())
        if suite.get("name") == host
        for case in suite.iter("testcase")
    ]
    (case,) = (case for case in cases if case.get("name").startswith(code))
    (outcome,) = case
    return outcome


def test_junit_skips_a_waived_finding_with_its_reason():
    outcome = junit_case(result(ACCEPTED), "w1", "KM407")
    assert outcome.tag == "skipped"
    assert outcome.get("message") == "waived until 2027-01-31 by platform: rebuilt <soon>"
    assert "KM407 is there" in outcome.text


def test_one_finding_without_a_waiver_makes_the_case_of_a_cluster_fail():
    other = replace(ACCEPTED, host="w2", waived=None, summary="not accepted")
    found = replace(
        result(replace(ACCEPTED, severity="critical"), other),
        verdicts=(Verdict("KM407", KEY, "present", None, "kubelet"),),
    )
    outcome = junit_case(found, f"cluster {KEY}", "KM407")
    assert (outcome.tag, outcome.get("type")) == ("failure", "warning")
    assert outcome.get("message") == "w2: not accepted"
    assert "WAIVED CRITICAL KM407 w1" in outcome.text
    assert junit_case(found, "w1", "KM407").tag == "skipped"


def test_junit_names_the_expired_waiver_in_the_failure():
    outcome = junit_case(result(COUNTING), "w2", "KM502", waivers_expired=(EXPIRED,))
    assert outcome.tag == "failure"
    assert EXPIRED.end in outcome.text


@pytest.mark.parametrize(("waived", "tag"), [(WAIVED, "skipped"), (None, "error")])
def test_a_silent_host_that_is_waived_is_no_error(waived, tag):
    found = Result(
        hosts=(HostRow("w1", None, KEY, "worker", "unreachable", "timed out"),),
        verdicts=(Verdict("KM901", KEY, "present", "w1"),),
        findings=(Finding("KM901", "warning", KEY, "w1", None, "silent", waived=waived),),
    )
    assert junit_case(found, "w1", "KM901").tag == tag


def test_the_page_marks_waived_findings_and_can_show_only_them():
    page = html.render(result(ACCEPTED, COUNTING), run(waivers_expired=(EXPIRED,)))
    assert page.count('data-s="waived"') == 3  # the finding, its host and their filter
    assert "waived until 2027-01-31 by platform: rebuilt &lt;soon&gt;" in page
    assert '<li class="waived"><b>1</b> waived</li>' in page
    assert "expired on 2026-01-31" in page
    assert 'data-s="waived"' not in html.render(result(COUNTING), run())


def test_the_matrix_shows_waived_states_below_those_that_count():
    states = matrix.states(result(ACCEPTED).verdicts, [ACCEPTED])
    assert states["w1"] == {"KM407": "waived"}
    both = [ACCEPTED, replace(ACCEPTED, severity="info", waived=None, component="other")]
    assert matrix.states((), both)["w1"] == {"KM407": "info"}
    table = matrix.make(result().hosts, states)
    assert [(row.kind, row.hosts) for row in table.rows] == [("host", ("w1",)), ("clean", ("w2",))]


def test_the_conclusion_names_waived_findings_and_calls_their_host_not_healthy():
    found = result(ACCEPTED)
    assert conclusion.conclusion(found, run()).startswith(
        "No problems found but 1 waived finding: 97 faults"
    )
    assert conclusion.conclusion(result(ACCEPTED, COUNTING), run()) == ""
    assert conclusion.about_hosts(found.hosts, found.findings, found, run()) == {"healthy": ["w2"]}


@pytest.mark.parametrize(("count", "said"), [(1, "1 finding is waived"), (2, "2 findings are ")])
def test_the_conclusion_of_an_audit_with_gaps_names_waived_findings_too(count, said):
    whole = result(*[ACCEPTED] * count)
    silent = replace(
        whole, hosts=(*whole.hosts, replace(whole.hosts[0], host="w9", status="error"))
    )
    sentence = conclusion.conclusion(silent, run())
    assert sentence.startswith(said)
    assert "not everything was judged" in sentence
    assert "No problem" not in sentence


def test_the_causes_of_a_symptom_say_that_they_are_waived():
    symptom = Symptom("node_unreachable", "Node gone", ("KM407", "KM502"))
    found = result(ACCEPTED, COUNTING)
    shown = text.render(found, run(symptom=symptom))
    assert "KM407 Settings lost: w1 kubelet; waived" in shown
    assert "KM502 Kubelet stopped: w2 kubelet\n" in shown
    assert "w1 kubelet; waived" in html.render(found, run(symptom=symptom))
    both = phrases.waived_codes([ACCEPTED, replace(ACCEPTED, host="w2", waived=None)])
    assert both == frozenset()


@pytest.mark.parametrize(
    ("then", "now", "change", "critical"),
    [
        (WAIVED, None, "worse", 1),
        (WAIVED, WAIVED, "unchanged", 0),
        (None, WAIVED, "unchanged", 0),
        (None, None, "unchanged", 0),
    ],
)
def test_a_waiver_that_is_over_makes_its_finding_worse(then, now, change, critical):
    before = json_report.render(result(replace(COUNTING, waived=then)), run())
    earlier = report_diff.parse(_dumped(before), "report.json")
    compared = report_diff.compare(earlier, result(replace(COUNTING, waived=now)))
    assert [item.code for item in getattr(compared, change)] == ["KM502"]
    assert compared.counts["critical"] == critical


def test_a_new_finding_that_is_waived_does_not_count():
    earlier = report_diff.parse(_dumped(json_report.render(result(), run())), "report.json")
    compared = report_diff.compare(earlier, result(ACCEPTED))
    assert [item.code for item in compared.new] == ["KM407"]
    assert compared.counts["warning"] == 0


def _dumped(report):
    return "".join(json_report.dumps(report)).encode()


def test_changed_severities_are_told():
    shown = text.render(result(COUNTING), run(severities={"KM502": "critical"}))
    assert "note: kubemend_severity makes KM502 critical." in shown
