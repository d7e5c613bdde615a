# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""junit.xml: a suite for each host and cluster, what counts as which, and its schema."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    EvidenceRef,
    Finding,
    HostRow,
    Missing,
    Result,
    Verdict,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    diff as report_diff,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    json_report,
    junit,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run
from tests import schemas
from tests.unit.plugins.plugin_utils.faults.test_recorded import CASES, FOLDER

KEY = "0123456789abcdef"
SCHEDULER = "kube-scheduler"
TITLES = {
    "KM101": "Leader election disabled",
    "KM502": "Kubelet stopped",
    "KM901": "Host gave no evidence",
}
HOSTILE = (
    "".join(map(chr, range(0x20)))
    + "\x7f\x85\u202e\ufeff\ufffe\uffff\ud800\U0001fffe </failure>]]> <!-- & \"'{{ 1 }}"
    " \x1b[31m\u2028 ä"
)


def run(**more):
    return Run(
        run_id="20261121T090000Z-1a2b3c",
        started="2026-11-21T09:00:00Z",
        finished="2026-11-21T09:01:09Z",
        mode="observe",
        report_dir="/r",
        tool_version="0.1.0",
        titles=TITLES,
        **more,
    )


def written(result, **more):
    """Return the file as its readers see it, after its schema saw it."""
    text = junit.render(result, run(**more))
    assert schemas.junit_complaints(text) == []
    return ElementTree.fromstring(text.encode("utf-8"))


def suite(root, name):
    (found,) = (item for item in root if item.get("name") == name)
    return found


def case(root, where, name):
    (found,) = (item for item in suite(root, where).iter("testcase") if item.get("name") == name)
    return found


HOSTS = (HostRow("m1", "n1", KEY, "control_plane", "ok"), HostRow("w1", None, KEY, "worker", "ok"))
OFF = Finding(
    "KM101",
    "critical",
    KEY,
    "m1",
    SCHEDULER,
    "leader election is off",
    "n1",
    evidence=(EvidenceRef("file", "m1", path="/m.yaml", line=17, text="- --leader-elect=false"),),
    remedy="fix it",
    risk=2,
    command="ansible-playbook x",
)
PRESENT = Verdict("KM101", KEY, "present", None, SCHEDULER)
TITLE = "KM101 Leader election disabled [kube-scheduler]"


def test_a_fault_of_a_cluster_fails_there_and_at_its_host():
    root = written(
        Result(
            hosts=HOSTS,
            verdicts=(PRESENT, Verdict("KM502", KEY, "clear", "w1", "kubelet")),
            findings=(OFF,),
        )
    )
    assert [item.get("name") for item in root] == ["m1", "w1", f"cluster {KEY}"]
    failure = case(root, "m1", TITLE).find("failure")
    assert (failure.get("type"), failure.get("message")) == ("critical", "leader election is off")
    assert (
        failure.text == "CRITICAL KM101 m1 kube-scheduler: leader election is off\n  /m.yaml:17: -"
        " --leader-elect=false\n  repair: fix it\n  command: ansible-playbook x"
    )
    ours = case(root, f"cluster {KEY}", TITLE).find("failure")
    assert (ours.get("message"), ours.text) == (
        "m1: leader election is off",
        "CRITICAL KM101 m1 kube-scheduler: leader election is off",
    )
    passed = case(root, "w1", "KM502 Kubelet stopped [kubelet]")
    assert list(passed) == []
    assert passed.get("classname") == "w1"
    assert {name: root.get(name) for name in ("name", "tests", "failures", "errors", "time")} == {
        "name": "kubemend",
        "tests": "3",
        "failures": "2",
        "errors": "0",
        "time": "69",
    }
    assert [item.get("id") for item in root] == ["0", "1", "2"]
    assert suite(root, "m1").get("timestamp") == "2026-11-21T09:00:00"
    properties = {
        item.get("name"): item.get("value") for item in suite(root, "m1").iter("property")
    }
    assert properties == {
        "run_id": "20261121T090000Z-1a2b3c",
        "cluster": KEY,
        "node": "n1",
        "role": "control_plane",
        "status": "ok",
    }


def test_times_are_those_of_the_report():
    found = replace(OFF, summary="off since 2026-11-24T07:42:17Z")
    root = written(Result(hosts=HOSTS, verdicts=(PRESENT,), findings=(found,)))
    for where in ("m1", f"cluster {KEY}"):
        failure = case(root, where, TITLE).find("failure")
        for text in (failure.get("message"), failure.text.splitlines()[0]):
            assert text.endswith("off since 2026-11-24 07:42 UTC")


def test_a_fault_of_one_component_is_no_failure_of_another():
    other = Verdict("KM101", KEY, "clear", None, "kube-controller-manager")
    root = written(Result(hosts=HOSTS, verdicts=(PRESENT, other), findings=(OFF,)))
    assert (
        case(
            root, f"cluster {KEY}", "KM101 Leader election disabled [kube-controller-manager]"
        ).find("failure")
        is None
    )
    assert len(suite(root, "m1").findall("testcase")) == 1


def test_unknown_is_skipped_with_what_is_missing():
    lack = Verdict(
        "KM502",
        KEY,
        "unknown",
        "w1",
        "kubelet",
        (Missing("w1", "kubelet", "denied"), Missing("m1", "nodes", "error")),
        "why",
    )
    skipped = case(
        written(Result(hosts=HOSTS, verdicts=(lack,))), "w1", "KM502 Kubelet stopped [kubelet]"
    ).find("skipped")
    assert skipped.get("message") == "unknown: missing kubelet of w1 (denied), nodes of m1 (error)"
    assert skipped.text == "kubelet of w1: denied\nnodes of m1: error\nwhy"
    assert suite(written(Result(hosts=HOSTS, verdicts=(lack,))), "w1").get("skipped") == "1"


def test_what_is_only_to_be_known_passes_and_says_so():
    note = Finding("KM502", "info", KEY, "w1", "kubelet", "as it happens")
    root = written(
        Result(
            hosts=HOSTS,
            verdicts=(Verdict("KM502", KEY, "present", "w1", "kubelet"),),
            findings=(note,),
        )
    )
    assert (
        case(root, "w1", "KM502 Kubelet stopped [kubelet]").findtext("system-out")
        == "INFO KM502 w1 kubelet: as it happens"
    )
    assert root.get("failures") == "0"


def test_a_present_fault_that_is_not_known_of_every_host_says_so():
    half = Verdict(
        "KM101", KEY, "present", None, SCHEDULER, (Missing("m2", "host", "unreachable"),)
    )
    root = written(Result(hosts=HOSTS, verdicts=(half,), findings=(OFF,)))
    assert "not known of: m2 (unreachable)" in case(root, f"cluster {KEY}", TITLE).findtext(
        "failure"
    )


@pytest.mark.parametrize("verdicts", [(Verdict("KM901", None, "present", "m1"),), ()])
def test_a_host_that_did_not_answer_is_an_error(verdicts):
    silent = Finding("KM901", "warning", None, "m1", None, "the host did not answer: timed out")
    root = written(
        Result(
            hosts=(HostRow("m1", None, None, "unknown", "unreachable", "timed out"),),
            verdicts=verdicts,
            findings=(silent,) if verdicts else (),
        )
    )
    error = case(root, "m1", "KM901 Host gave no evidence").find("error")
    assert (error.get("type"), error.get("message")) == ("unreachable", "timed out")
    assert (root.get("errors"), root.get("failures"), root.get("tests")) == ("1", "0", "1")


def test_what_is_not_applicable_is_no_case_and_what_has_no_host_has_its_cluster():
    lost = Finding("KM112", "warning", None, None, None, "who is it", "n9")
    root = written(
        Result(
            verdicts=(
                Verdict("KM502", KEY, "not_applicable", "w9"),
                Verdict("KM112", None, "present"),
            ),
            findings=(lost,),
        )
    )
    assert [item.get("name") for item in root] == ["no proven cluster"]
    assert root.get("tests") == "1"
    assert case(root, "no proven cluster", "KM112").find("failure").get("type") == "warning"


def test_beside_an_earlier_report():
    gone = Finding("KM502", "critical", KEY, "w1", "kubelet", "was down")
    left = Finding("KM502", "critical", KEY, "w9", "kubelet", "was down too")
    now = Result(
        hosts=HOSTS,
        verdicts=(PRESENT, Verdict("KM502", KEY, "clear", "w1", "kubelet")),
        findings=(OFF,),
    )
    before = report_diff.parse(
        json.dumps(json_report.render(Result(findings=(OFF, gone, left)), run())).encode(), "x"
    )
    root = written(now, compared=report_diff.compare(before, now))
    assert " (unchanged since run 20261121T090000Z-1a2b3c)" in case(root, "m1", TITLE).findtext(
        "failure"
    )
    assert (
        suite(root, "w1").findtext("system-out")
        == "gone since run 20261121T090000Z-1a2b3c: KM502 w1 kubelet: was down"
    )
    assert (
        suite(root, f"cluster {KEY}").findtext("system-out")
        == "not judged now (w9 was not asked): KM502 w9 kubelet: was down too"
    )
    assert "(new since" in case(
        written(now, compared=report_diff.compare(report_diff.Earlier("r", "f"), now)), "m1", TITLE
    ).findtext("failure")


def test_whatever_a_node_says_is_text_and_xml():
    row = HostRow(HOSTILE, HOSTILE, HOSTILE, "worker", "error", HOSTILE)
    item = Finding(
        "KM101",
        "critical",
        HOSTILE,
        HOSTILE,
        HOSTILE,
        HOSTILE,
        HOSTILE,
        evidence=(EvidenceRef("file", HOSTILE, HOSTILE, 1, 2, (HOSTILE,), HOSTILE, HOSTILE),),
        remedy=HOSTILE,
        command=HOSTILE,
    )
    lack = Verdict(
        "KM502",
        HOSTILE,
        "unknown",
        HOSTILE,
        HOSTILE,
        (Missing(HOSTILE, HOSTILE, HOSTILE),),
        HOSTILE,
    )
    result = Result(
        hosts=(row,),
        verdicts=(Verdict("KM101", HOSTILE, "present", None, HOSTILE), lack),
        findings=(item,),
    )
    earlier = report_diff.Earlier(
        HOSTILE, HOSTILE, (Finding("KM9", "info", HOSTILE, "x", HOSTILE, HOSTILE),)
    )
    root = written(result, compared=report_diff.compare(earlier, result))
    whole = "".join(root.itertext()) + "".join(
        value for element in root.iter() for value in element.attrib.values()
    )
    assert not {char for char in whole if not char.isprintable()} - {"\n"}
    assert r"\x1b[31m" in whole
    assert r"\x00" in whole
    assert r"\ufffe" in whole
    assert "</failure>]]> <!-- & \"'{{ 1 }}" in whole
    assert {element.tag for element in root.iter()} <= {
        "testsuites",
        "testsuite",
        "testcase",
        "properties",
        "property",
        "failure",
        "error",
        "skipped",
        "system-out",
    }


def test_a_long_text_is_cut_and_says_where_it_is_whole():
    item = Finding("KM101", "critical", KEY, "m1", SCHEDULER, "x" * 5000)
    message = (
        case(written(Result(hosts=HOSTS, verdicts=(PRESENT,), findings=(item,))), "m1", TITLE)
        .find("failure")
        .get("message")
    )
    assert message.endswith("… (3000 more characters in report.json)")


@pytest.mark.parametrize("case_name", CASES)
def test_every_recorded_incident_in_junit(case_name):
    result = fault_engine.evaluate(
        evidence_sources.stream([str(FOLDER / case_name / "evidence")]), deep=True
    )
    root = written(result)
    hosts = [item.host for item in result.hosts]
    assert [item.get("name") for item in root][: len(hosts)] == hosts
    assert all(
        item.get("name").startswith(("cluster ", "no proven cluster"))
        for item in root[len(hosts) :]
    )
    count = {
        name: sum(item.verdict == name for item in result.verdicts) for name in ("clear", "unknown")
    }
    cases = list(root.iter("testcase"))
    assert sum(item.find("skipped") is not None for item in cases) == count["unknown"]
    assert sum(len(item) == 0 for item in cases) == count["clear"]
    failed = {
        item.get("name").split(" ")[0]
        for item in cases
        if item.find("failure") is not None or item.find("error") is not None
    }
    assert failed == {item.code for item in result.findings if item.severity != "info"}
    places = [(item.get("classname"), item.get("name")) for item in cases]
    assert len(places) == len(set(places)), "a case is found again by its names"
    for name, tag in (
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
        ("skipped", "skipped"),
    ):
        assert all(int(item.get(name)) == len(list(item.iter(tag))) for item in root)


@pytest.mark.parametrize(
    "text",
    [
        "<testsuites/>",
        '<testsuites name="k" time="0" tests="0" failures="0" errors="0" new="1"/>',
        '<testsuites name="k" time="0" tests="0" failures="0" errors="0"><suite/></testsuites>',
    ],
)
def test_the_schema_refuses_what_is_of_another_shape(text):
    assert schemas.junit_complaints(text)


@pytest.mark.parametrize(
    ("mode", "words"), [("verify", "refused: "), ("plan", "would be refused: ")]
)
def test_a_step_of_a_repair_is_a_case_of_its_host(mode, words):
    plan = tuple(
        Step(
            f"0{number}-m1",
            "m1",
            "KM101",
            "edit_manifest",
            2,
            "/m.yaml",
            SCHEDULER,
            cluster=KEY,
            allowed=True,
        )
        for number in (1, 2, 3)
    )
    steps = (
        {"id": "01-m1", "state": "done"},
        {"id": "02-m1", "state": "refused", "reason": HOSTILE},
        {"id": "09-x", "state": "failed", "reason": ""},
    )
    text = junit.render(Result(hosts=HOSTS), replace(run(plan=plan, steps=steps), mode=mode))
    assert schemas.junit_complaints(text) == []
    root = ElementTree.fromstring(text.encode("utf-8"))
    assert case(root, "m1", "step 01-m1").find("failure") is None
    assert case(root, "m1", "step 01-m1").find("system-out").text == "/m.yaml"
    failure = case(root, "m1", "step 02-m1").find("failure")
    assert failure.get("message").startswith(words)
    assert failure.get("type") == "critical"
    assert "\\x1b" in failure.get("message")
    assert (
        case(root, "no proven cluster", "step 09-x")
        .find("failure")
        .get("message")
        .endswith("no reason is known")
    )
    assert not [item for item in root.iter("testcase") if "03-m1" in item.get("name")]
