# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No report comforts without reason: healthy, no problems, what was left out, missing answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import node_hosts
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    UNPROVEN,
    ClusterRow,
    Coverage,
    EvidenceRef,
    Finding,
    HostRow,
    Lack,
    Missing,
    NotJudged,
    Result,
    Verdict,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    conclusion,
    html,
    json_report,
    text,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import (
    Run,
    Symptom,
)
from tests.unit.plugins.plugin_utils.faults.test_recorded import CASES, FOLDER
from tests.unit.support.facts import facts, facts_of_each

KEY = "0123456789abcdef"
CLEAN = Result(
    (ClusterRow(KEY, "v1.36.3", ("m1", "w1")),),
    tuple(HostRow(host, host, KEY, "worker", "ok", judged=97) for host in ("m1", "w1")),
    (Verdict("KM101", KEY, "clear"),),
    (NotJudged("KM404", None, "tier"),),
    faults=97,
    coverage=(Coverage(KEY, 2, 2),),
)


def run(mode="observe", **more):
    return Run("r", "2026-11-21T09:00:00Z", "2026-11-21T09:00:09Z", mode, "/r", "0.1.0", **more)


def about(result, run_data=None):
    return conclusion.about_hosts(result.hosts, result.findings, result, run_data or run())


def faces(result, run_data=None):
    run_data = run_data or run()
    return text.render(result, run_data, 500), html.render(result, run_data)


def test_a_clean_audit_says_so_in_every_face():
    sentence = conclusion.conclusion(CLEAN, run())
    facts(sentence, "No problems", "97 faults", "2 hosts")
    assert about(CLEAN) == {conclusion.HEALTHY: ["m1", "w1"]}
    assert all(sentence in face for face in faces(CLEAN))
    assert json_report.render(CLEAN, run())["conclusion"] == sentence


@pytest.mark.parametrize(
    "spoiled",
    [
        {
            "verdicts": (
                Verdict("KM101", KEY, "unknown", missing=(Missing("m1", "etcd", "error"),)),
            )
        },
        {"not_judged": (NotJudged("KM101", KEY, "tier"),)},
        {"not_judged": (NotJudged("KM101", None, "slice"),)},
        {"not_judged": (NotJudged("KM101", KEY, "limit"),)},
        {"coverage": (Coverage(KEY, 3, 2, (("w2", node_hosts.NO_HOST),)),)},
        {"coverage": (Coverage(KEY, None, 2),)},
        {"hosts": (replace(CLEAN.hosts[0], judged=96), CLEAN.hosts[1])},
        {
            "hosts": (
                CLEAN.hosts[0],
                HostRow("w1", None, KEY, "unknown", "unreachable", "timed out"),
            )
        },
        {"hosts": ()},
    ],
)
def test_what_is_not_known_takes_the_claim_away(spoiled):
    result = replace(CLEAN, **spoiled)
    sentence = conclusion.conclusion(result, run())
    assert sentence
    assert "No problems found" not in sentence
    assert all(
        "No problems found" not in face and sentence in face.replace("&#39;", "'")
        for face in faces(result)
    )


@pytest.mark.parametrize(
    "chosen", [{"faults": frozenset(["KM101"])}, {"symptom": Symptom("s", "S", ("KM101",))}]
)
def test_a_part_of_the_catalogue_makes_nobody_healthy(chosen):
    assert conclusion.conclusion(CLEAN, run(**chosen)) == ""
    assert conclusion.HEALTHY not in about(CLEAN, run(**chosen))
    assert all(
        "healthy" not in face and "No problems" not in face for face in faces(CLEAN, run(**chosen))
    )


def test_findings_for_information_are_no_problem_and_others_are():
    told = replace(CLEAN, findings=(Finding("KM410", "info", KEY, "w1", None, "s"),))
    assert conclusion.conclusion(told, run()).startswith("No problems found")
    assert about(told) == {conclusion.HEALTHY: ["m1"]}
    assert (
        conclusion.conclusion(
            replace(told, findings=(Finding("KM410", "warning", KEY, "w1", None, "s"),)), run()
        )
        == ""
    )


def test_a_critical_finding_of_the_whole_cluster_leaves_no_host_healthy():
    """As that the cluster accepts no writes: its API says it, and no host is at fault."""
    result = replace(
        CLEAN,
        findings=(
            Finding(
                "KM199",
                "critical",
                KEY,
                None,
                None,
                "s",
                evidence=(EvidenceRef("api", "m1", object="Lease"),),
            ),
        ),
    )
    facts_of_each(about(result), ("no finding", "97 of 97"))
    assert conclusion.HEALTHY in about(
        replace(result, findings=(replace(result.findings[0], severity="warning"),))
    )


def test_hosts_that_were_judged_less_are_told_how_much():
    result = replace(CLEAN, hosts=(CLEAN.hosts[0], replace(CLEAN.hosts[1], judged=36)))
    groups = about(result)
    assert groups.pop(conclusion.HEALTHY) == ["m1"]
    ((text, hosts),) = groups.items()
    assert hosts == ["w1"]
    facts(text, "no finding", "36 of 97")


@pytest.mark.parametrize("case", CASES)
def test_no_recorded_cluster_is_healthy_by_one_fault(case):
    chosen = frozenset(["KM101"])
    result = fault_engine.evaluate(
        evidence_sources.stream([str(FOLDER / case / "evidence")]), chosen
    )
    assert conclusion.HEALTHY not in about(result, run("replay", faults=chosen))
    assert not conclusion.conclusion(result, run("replay", faults=chosen))


@pytest.mark.parametrize("key", [None, UNPROVEN])
def test_a_host_of_no_proven_cluster_is_not_healthy(key):
    hosts = tuple(replace(row, cluster=key) for row in CLEAN.hosts)
    result = replace(CLEAN, hosts=hosts, coverage=())
    assert conclusion.HEALTHY not in about(result)
    assert "No problems found" not in conclusion.conclusion(result, run())


def test_the_line_of_what_was_audited():
    one = Coverage(KEY, 6, 3, (("w1", node_hosts.NO_HOST), ("w2", "limit"), ("w3", "group")))
    line = conclusion.covered(one, run())
    assert line.startswith(
        "Nodes in the API: 6; audited: 3; not in this inventory: w1; not asked (--limit): w2; "
    )
    assert line.endswith(": w3")
    assert "inventory: w1" not in conclusion.covered(one, run("replay"))
    assert "w1" in conclusion.covered(one, run("replay"))
    assert conclusion.covered(replace(one, cluster=None, left=()), run()) == ""
    document = json_report.render(replace(CLEAN, coverage=(one,)), run(outside=(("lb1", "group"),)))
    assert document["coverage"][0]["left"][1] == {"name": "w2", "reason": "limit"}
    assert document["outside"] == [{"host": "lb1", "reason": "group"}]


def test_an_error_shows_its_text_and_the_way_out_once_for_each_host_and_collector():
    lacks = (
        Lack(KEY, "w1", "kubelet", "error", "no systemd"),
        Lack(KEY, "w2", "kubelet", "error", "no systemd"),
        Lack(KEY, "m1", "etcd", "denied", "EACCES"),
        Lack(KEY, "m1", "nodes", "timeout", ""),
        Lack(KEY, "m2", "instances", "starting", ""),
        Lack(KEY, "m1", "x", "absent", ""),
    )
    lines = conclusion.reasons(lacks)
    assert len(lines) == 4
    assert sum("no systemd" in line for line in lines) == 1
    assert all(
        conclusion.WAYS_OUT[status] in line
        for status, line in zip(("denied", "error", "starting", "timeout"), lines, strict=True)
    )
    result = replace(
        CLEAN,
        lacks=lacks,
        verdicts=(Verdict("KM101", KEY, "unknown", missing=(Missing("w1", "kubelet", "error"),)),),
    )
    shown, page = faces(result)
    assert shown.index("UNKNOWN") < shown.index("no systemd")
    assert "no systemd" in page
    document = json_report.render(result, run())["lacks"]
    assert [(one["host"], one["reason"], bool(one["way_out"])) for one in document][:2] == [
        ("w1", "no systemd", True),
        ("w2", "no systemd", True),
    ]


def test_judging_keeps_what_collectors_said(world):
    world.documents["w1"]["collectors"]["kubelet"] = {
        "status": "error",
        "error": "it is\non fire" + "e" * 1000,
        "data": None,
    }
    world.documents["w1"]["collectors"]["swap"] = {"status": "denied", "error": None, "data": None}
    world.api["collectors"]["nodes"] = {
        "status": "timeout",
        "error": "30 s were not enough",
        "data": None,
    }
    found = {(one.host, one.collector): one for one in world.judge().lacks}
    assert found["w1", "kubelet"].reason.startswith("it is on fire")
    assert len(found["w1", "kubelet"].reason) <= 300
    assert (found["m1", "nodes"].status, found["m1", "nodes"].reason) == (
        "timeout",
        "30 s were not enough",
    )
    assert conclusion.reasons([found["w1", "swap"]])
    world.api.update(status="error", reason="connection refused", collectors={})
    assert any(one.reason == "connection refused" for one in world.judge().lacks)


def test_what_the_node_of_the_api_lacks_is_not_the_api_s_reason(world):
    world.api.update(status="error", reason="connection refused", collectors={})
    host = world.api["host"]
    running = world.data(host, "instances")["processes"]
    running[:] = [one for one in running if one["component"] != "kube-scheduler"]
    clock = world.data(host, "system")["clock"]
    world.manifest(host, "kube-scheduler", "--v=2", mtime=clock - 10)
    lacks = {one.collector: one for one in world.judge(faults={"KM114"}).lacks if one.host == host}
    assert (lacks["instances"].status, lacks["instances"].reason) == ("starting", "")


def test_advice_carries_a_risk_only_where_a_step_does_it():
    one = Finding(
        "KM312",
        "warning",
        KEY,
        "w1",
        None,
        "s",
        remedy="drain the node and reset its state",
        risk=0,
    )
    step = Step("01-x", "w1", "KM312", "reset", 3, "t", cluster=KEY)
    assert conclusion.remedy_risk(one, ()) == "manual"
    assert conclusion.remedy_risk(one, (step,)) == "risk 3"
    assert conclusion.remedy_risk(one, (replace(step, host="w2"),)) == "manual"
    refused = replace(step, blocked_by="which file is right is not known")
    assert conclusion.remedy_risk(one, (refused,)) == "manual"
    liftable = replace(step, blocked_by="allow it with -e kubemend_allow=fenced")
    assert conclusion.remedy_risk(one, (liftable,)) == "risk 3"
    assert conclusion.remedy_risk(one, (replace(refused, change={"kind": "reset"}),)) == "risk 3"
    result = replace(CLEAN, findings=(one,))
    plans = (Step("01-y", "w1", "KM312", "none", 0, "t", cluster=KEY, blocked_by="why"),)
    assert all(
        "risk 0" not in face for data in (run(), run(plan=plans)) for face in faces(result, data)
    )
    assert "(manual)" in faces(result)[1]


def test_labels_of_a_plan_are_those_of_each_finding():
    one = Finding("KM502", "critical", KEY, "w1", None, "s", hosts=("w1", "w2"))
    step = Step("1", "w2", "KM502", "start", 2, "kubelet", cluster=KEY)
    other = replace(step, code="KM501")
    shared = replace(other, also=("KM502",))
    assert conclusion.fix_label(one, (shared,)) == "fix (automatic, risk 2)"
    assert conclusion.fix_label(one, (other,)) == "fix (manual)"
    for steps in ((), (step,), (replace(step, host="w3"),), (other,), (shared,)):
        for finding in (one, replace(one, host=None, hosts=()), replace(one, cluster="other")):
            label = conclusion.fix_labels(steps)(finding)
            assert label == conclusion.fix_label(finding, steps)


def test_a_code_in_the_conclusion_has_its_title():
    result = replace(CLEAN, verdicts=(*CLEAN.verdicts, Verdict("KM101", KEY, "unknown")))
    sentence = conclusion.conclusion(result, run(titles={"KM101": "Election disabled"}))
    assert "unknown: KM101 Election disabled" in sentence


def test_the_refusal_of_the_api_is_printed_once():
    refusal = "/etc/kubernetes/admin.conf (https://192.0.2.1:6443): dial tcp: connection refused"
    blocked = f"no API server answers ({refusal}): manifests stay untouched"
    steps = [
        Step(
            f"0{n}", f"m{n}", "KM101", "edit_manifest", 2, f"manifest {n}", "x", blocked_by=blocked
        )
        for n in (1, 2)
    ]
    note = f"the API did not answer: {refusal}"
    result = Result(
        clusters=(ClusterRow("k", None, ("m1", "m2")),),
        verdicts=(Verdict("KM101", "k", "unknown", "m1", None, (), note),),
        lacks=tuple(Lack("k", "m1", name, "error", refusal) for name in ("nodes", "locks")),
    )
    words = " ".join(text.render(result, run(plan=tuple(steps))).split())
    assert words.count("connection refused") == 1
    assert words.count("no API server answers: manifests stay untouched") == 2
    assert "note: the API did not answer (KM101; m1)" in words


def test_a_short_reason_may_stand_twice():
    lacks = [Lack("k", "m1", "nodes", "error", "refused")]
    assert conclusion.without_reasons("no answer (refused)", lacks) == "no answer (refused)"
