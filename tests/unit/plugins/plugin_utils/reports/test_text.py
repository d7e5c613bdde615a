# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text report: what it says, in which order, and that nothing from a node is printed raw."""

from __future__ import annotations

import unicodedata

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    ClusterRow,
    EvidenceRef,
    Finding,
    HostRow,
    Missing,
    NotJudged,
    Result,
    Verdict,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    html,
    phrases,
    text,
    text_page,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import (
    Run,
    Symptom,
)
from tests.unit.plugins.plugin_utils.faults.test_recorded import CASES
from tests.unit.plugins.plugin_utils.faults.test_recorded import FOLDER as RECORDED

KEY = "0123456789abcdef"
FOLDER = "/etc/kubernetes/manifests"
ARGV = (
    "/usr/local/bin/kube-scheduler",
    "--kubeconfig=/etc/kubernetes/scheduler.conf",
    "--leader-elect=false",
)


def run(**more):
    return Run(
        run_id="20261121T090000Z-1a2b3c",
        started="2026-11-21T09:00:00Z",
        finished="2026-11-21T09:00:09Z",
        mode=more.pop("mode", "observe"),
        report_dir="/r",
        tool_version="0.1.0",
        **more,
    )


def row(host, role="control_plane", status="ok", reason="", judged=97):
    return HostRow(host, host, KEY, role, status, reason, judged)


def finding(code="KM101", host="m2", component="kube-scheduler", severity="critical", **more):
    return Finding(
        code, severity, KEY, host, component, more.pop("summary", "leader election is off"), **more
    )


def rendered(width=80, run_data=None, **parts):
    parts.setdefault("clusters", (ClusterRow(KEY, "v1.36.3", ("m1", "m2", "m3", "w1")),))
    parts.setdefault("hosts", (row("m1"), row("m2"), row("m3"), row("w1", "worker")))
    parts.setdefault("faults", 97)
    return text.render(Result(**parts), run_data or run(), width)


def test_a_finding_reads_as_the_interface_shows_it():
    report = rendered(
        findings=(
            finding(
                evidence=(
                    EvidenceRef(
                        "file",
                        "m2",
                        path=f"{FOLDER}/kube-scheduler.yaml",
                        line=17,
                        text="- --leader-elect=false",
                    ),
                    EvidenceRef("process", "m2", pid=1234, argv=ARGV),
                ),
                remedy=f"set {FOLDER}/kube-scheduler.yaml:17 to - --leader-elect=true",
            ),
        ),
        verdicts=(Verdict("KM101", KEY, "present", component="kube-scheduler"),),
    )
    assert (
        "CRITICAL KM101 m2 kube-scheduler: leader election is off\n"
        f"  evidence: {FOLDER}/kube-scheduler.yaml:17: - --leader-elect=false\n"
        "            pid 1234: kube-scheduler … --leader-elect=false\n"
        f"  fix (manual): set {FOLDER}/kube-scheduler.yaml:17 to\n    - --leader-elect=true\n"
        in report
    )
    assert "healthy: m1, m3, w1\n" in report
    assert report.endswith("\nkubemend: 4 hosts, 1 critical, 0 warning, 0 unknown; report: /r\n")


@pytest.mark.parametrize(
    ("evidence", "healthy"),
    [
        (
            [
                EvidenceRef("api", "m1", object="Node w1", text="carries a=b"),
                EvidenceRef("api", "m1", object="Pod a/b", text="0/4"),
            ],
            "m1, m2, m3, w1",
        ),
        (
            [
                EvidenceRef("api", "m1", object="Lease", text="1"),
                EvidenceRef("api", "m2", object="Lease", text="2"),
            ],
            "m3, w1",
        ),
        (
            [
                EvidenceRef("api", "m1", object="ConfigMap", text="none"),
                EvidenceRef("file", "w1", path="/s", text="static"),
            ],
            "m2, m3",
        ),
        ([], "m1, m2, m3, w1"),
    ],
)
def test_who_only_asked_the_api_is_healthy(evidence, healthy):
    report = rendered(
        findings=(finding("KM513", None, None, "warning", evidence=tuple(evidence)),),
        verdicts=(Verdict("KM513", KEY, "present"),),
    )
    assert f"healthy: {healthy}\n" in report


def test_a_command_is_never_wrapped():
    command = (
        "ansible-playbook -i inventory.yml kubemend.remediation.remediate "
        + "-e kubemend_max_risk=2 " * 5
    )
    for remedy in (None, "x"):
        report = rendered(findings=(finding(command=command.strip(), remedy=remedy),))
        assert f"\n            {command.strip()}\n" in report


def test_the_head_names_run_time_mode_cluster_and_roles():
    report = rendered(run_data=run(notices=("kubemend_max_risk=2 has no effect: x.",)))
    head = " ".join(report.split())
    assert head.startswith(
        "kubemend audit · cluster 01234567 · Kubernetes v1.36.3 · 4 of 4 hosts read · 9 s · nothing"
        " was changed run 20261121T090000Z-1a2b3c, 2026-11-21 09:00 UTC "
    )
    assert "note: kubemend_max_risk=2 has no effect: x." in head
    assert rendered(run_data=run(mode="replay")).startswith(
        "kubemend replay of recorded evidence ·"
    )
    named = rendered(run_data=run(cluster_names={KEY: "prod-a"}))
    assert named.startswith("kubemend audit · prod-a · Kubernetes v1.36.3")


def test_most_severe_first_and_then_by_code_and_place():
    report = rendered(
        findings=(
            finding("KM901", "w1", None, "warning"),
            finding("KM103", "m1", None, "info"),
            finding("KM102", "m3"),
            finding("KM101", "m3", summary="a"),
            finding("KM101", "m1", summary="b"),
        )
    )
    heads = [
        line.split(":")[0] for line in report.splitlines() if " KM" in line and line[0].isupper()
    ]
    assert heads[:5] == heads[5:]  # the list at the end
    assert heads[:5] == [
        "CRITICAL KM101 m1 kube-scheduler",
        "CRITICAL KM101 m3 kube-scheduler",
        "CRITICAL KM102 m3 kube-scheduler",
        "WARNING KM901 w1",
        "INFO KM103 m1",
    ]


def test_because_names_the_deeper_reason_that_is_no_finding():
    report = rendered(
        findings=(finding("KM108", summary="stale", because=("KM502",)),),
        run_data=run(titles={"KM502": "Kubelet does not run"}),
    )
    assert "  because of: KM502 Kubelet does not run\n" in report


def test_findings_that_differ_by_host_only_read_as_one_and_are_counted_each():
    silent = tuple(
        finding(
            "KM901",
            f"w{n:02}",
            None,
            "warning",
            summary="the host did not answer: timed out",
            evidence=(EvidenceRef("log", f"w{n:02}", text="timed out"),),
        )
        for n in range(30)
    )
    report = rendered(findings=silent)
    assert report.count("KM901") == 2  # one group, and its line at the end
    assert "WARNING KM901 w00-w29 (30 hosts): the host did not answer" in " ".join(report.split())
    assert "log: timed out" not in report  # the summary says it
    assert "0 critical, 30 warning" in report


def test_one_piece_of_evidence_stands_for_a_group_and_names_its_host():
    two = tuple(
        finding(host=host, evidence=(EvidenceRef("process", host, pid=pid, argv=ARGV),))
        for host, pid in (("m1", 7), ("m2", 8))
    )
    report = rendered(findings=two)
    assert "CRITICAL KM101 m1, m2 kube-scheduler" in report
    assert "  evidence: m1: pid 7: kube-scheduler … --leader-elect=false\n" in report
    assert "pid 8" not in report
    assert "+1 more host," in report


def test_sixty_workers_with_one_wrong_sysctl_fit_on_one_screen():
    workers = tuple(
        finding(
            "KM407",
            f"w{n}",
            "vm.swappiness",
            "warning",
            summary="1 now, 2 after the next boot",
            evidence=(EvidenceRef("file", f"w{n}", path="/etc/sysctl.d/a.conf", line=n),),
            remedy="write it",
        )
        for n in range(1, 61)
    )
    report = rendered(findings=workers, hosts=tuple(row(f"w{n}", "worker") for n in range(1, 61)))
    assert "WARNING KM407 w1-w60 (60 hosts) vm.swappiness" in report
    assert len(report.splitlines()) <= 24


def test_a_fault_with_many_different_texts_is_bounded():
    report = rendered(
        findings=tuple(finding(host=f"w{n}", summary=f"text {n * 7}") for n in range(500))
    )
    assert len(report.splitlines()) < 50
    assert "the other texts differ" in report
    assert "500 critical" in report


def test_thirty_unknowns_of_one_silent_host_are_one_line():
    verdicts = tuple(
        Verdict(
            f"KM1{n:02}",
            KEY,
            "unknown",
            missing=(
                Missing("m2", "manifests", "unreachable"),
                Missing("m2", "instances", "unreachable"),
            ),
        )
        for n in range(30)
    )
    report = rendered(
        hosts=(row("m1"), row("m2", status="unreachable", reason="timed out")), verdicts=verdicts
    )
    assert report.count("UNKNOWN") == 1
    assert "UNKNOWN 30 faults, because evidence is missing" in report
    assert "  30 faults: missing m2 (unreachable)\n" in report
    assert "KM128" not in report
    assert "did not answer: m2 (timed out)\n" in report
    assert "30 unknown" in report
    assert "verdicts" not in report


def test_where_a_fault_is_unknown_in_several_places_the_verdicts_are_counted_too():
    lack = (Missing("m2", "instances", "error"),)
    verdicts = tuple(
        Verdict(f"KM10{n}", KEY, "unknown", component=component, missing=lack)
        for n in range(5)
        for component in ("kube-scheduler", "kube-controller-manager")
    )
    hosts = (row("m1"), row("m2", status="error", reason="no sudo"))
    report = " ".join(rendered(hosts=hosts, verdicts=verdicts).split())
    assert "UNKNOWN 5 faults, because evidence is missing (10 verdicts; " in report
    assert "10 unknown" in report
    assert "gave no evidence: m2 (no sudo)" in report


def test_unknown_names_hosts_and_collectors():
    report = rendered(
        verdicts=(
            Verdict(
                "KM106",
                KEY,
                "unknown",
                missing=(
                    Missing("m3", "component_http", "denied"),
                    Missing("m1", "component_http", "denied"),
                    Missing("m1", "etcd", "error"),
                ),
            ),
            Verdict(
                "KM101",
                KEY,
                "unknown",
                component="kube-scheduler",
                missing=(Missing("m9", "host", "not_asked"),),
            ),
            Verdict(
                "KM102",
                KEY,
                "unknown",
                component="kube-scheduler",
                missing=(Missing("m9", "host", "not_asked"),),
            ),
        )
    )
    assert "UNKNOWN KM101, KM102: missing m9 (not asked)\n" in report
    assert (
        "UNKNOWN KM106: missing component_http of m1, m3 (denied), etcd of m1 (error)\n" in report
    )


def test_clear_not_applicable_and_not_judged_are_numbers_and_lists_with_verbose():
    parts = {
        "verdicts": (
            Verdict("KM103", KEY, "clear", component="a"),
            Verdict("KM103", KEY, "not_applicable", component="b"),
            Verdict("KM102", KEY, "clear"),
            Verdict("KM110", KEY, "not_applicable"),
        ),
        "not_judged": (
            NotJudged("KM107", KEY, "limit"),
            NotJudged("KM108", KEY, "limit"),
            NotJudged("KM611", None, "tier"),
        ),
    }
    brief = " ".join(rendered(**parts).split())
    assert "3 faults checked; 1 only with -e kubemend_deep=true" in brief
    assert "2 on hosts that --limit left out" in brief
    assert "KM107 Manifest" not in brief
    titles = {"KM107": "Manifest does not parse"}
    report = rendered(run_data=run(verbose=True, titles=titles), **parts)
    assert "\nclear: KM102\nclear: KM103\n" in report
    assert "\nnot applicable: KM110\n" in report
    assert "\nnot judged: KM107 Manifest does not parse (--limit left their hosts out)\n" in report
    assert "\nnot judged: KM611 (needs -e kubemend_deep=true)\n" in report


def test_a_note_is_said_once():
    verdicts = tuple(
        Verdict(
            code,
            KEY,
            "clear",
            note="a foreign kube-controller-manager on w1 is not of this cluster",
        )
        for code in ("KM101", "KM102")
    )
    report = " ".join(rendered(verdicts=verdicts).split())
    assert (
        report.count("a foreign kube-controller-manager on w1 is not of this cluster (2 faults)")
        == 1
    )


def test_the_differential_shows_every_cause_with_its_verdict():
    symptom = Symptom(
        "duplicate_pods", "Pods are created twice", ("KM101", "KM102", "KM103", "KM104", "KM105")
    )
    report = rendered(
        run_data=run(
            symptom=symptom,
            titles={
                "KM101": "Election is off",
                "KM102": "Two",
                "KM103": "Three",
                "KM104": "Four",
                "KM105": "Five",
            },
        ),
        verdicts=(
            Verdict("KM102", KEY, "clear"),
            Verdict("KM101", KEY, "clear", component="kube-controller-manager"),
            Verdict("KM101", KEY, "present", "m2", "kube-scheduler"),
            Verdict("KM103", KEY, "not_applicable"),
            Verdict("KM104", KEY, "unknown", missing=(Missing("m1", "instances", "error"),)),
        ),
        not_judged=(NotJudged("KM105", KEY, "limit"),),
    )
    at = report.index("Pods are created twice: possible causes\n")
    assert [line.rstrip() for line in report[at:].splitlines()[1:6]] == [
        "  present        KM101 Election is off: m2 kube-scheduler",
        "  unknown        KM104 Four: missing instances of m1 (error)",
        "  clear          KM102 Two",
        "  not applicable KM103 Three",
        "  not judged     KM105 Five (--limit left their hosts out)",
    ]
    # The differential says it already.
    assert all(
        again not in report
        for again in ("UNKNOWN", "\nclear:", "\nnot applicable:", "\nnot judged:")
    )


def test_two_clusters_and_hosts_of_none_have_sections_of_their_own():
    report = rendered(
        clusters=(
            ClusterRow(KEY, "v1.36.3", ("m1",)),
            ClusterRow("f" * 16, None, ("a1",)),
            ClusterRow("unproven", None, ("b1",)),
        ),
        hosts=(
            row("m1"),
            HostRow("a1", None, "f" * 16, "worker", "ok"),
            HostRow("b1", None, None, "unknown", "ok"),
        ),
        findings=(finding(), finding("KM102", "a1", None), finding("KM901", "b1", None)),
    )
    assert (
        report.index("\ncluster 01234567 · Kubernetes v1.36.3")
        < report.index("\ncluster ffffffff · Kubernetes version unknown · 1 of 1 host read")
        < report.index("\nHosts not assigned to a cluster")
    )
    assert report.startswith("kubemend audit · 2 clusters · 3 of 3 hosts read")


def test_long_lists_of_hosts_are_cut_and_the_rest_is_counted():
    report = rendered(hosts=tuple(row(f"w{n * 2:05}", "worker") for n in range(5000)))
    assert "and 4992 more" in " ".join(report.split())
    assert len(report) < 2000
    report = rendered(hosts=tuple(row(f"w{n}", "worker") for n in range(5000)))
    assert "healthy: w0-w4999\n" in report


def test_a_whole_argv_is_shown_when_no_flag_is_in_question_and_text_picks_otherwise():
    own = EvidenceRef("process", "m2", pid=7, argv=("kubelet", "--config=/x", "-v=2"))
    assert "pid 7: kubelet --config=/x -v=2\n" in rendered(findings=(finding(evidence=(own,)),))
    picked = EvidenceRef(
        "process", "m2", pid=7, argv=ARGV, text="--kubeconfig=/etc/kubernetes/scheduler.conf"
    )
    assert "pid 7: kube-scheduler … --kubeconfig=/etc/kubernetes/scheduler.conf\n" in rendered(
        findings=(finding(evidence=(picked,)),)
    )


def test_proofs_of_every_kind():
    report = rendered(
        findings=(
            finding(
                evidence=(
                    EvidenceRef(
                        "api",
                        object="ConfigMap kube-system/kubeadm-config",
                        path="ClusterConfiguration",
                        line=3,
                        text="a: b",
                    ),
                    EvidenceRef("http", "m1", pid=9, text="leader election is not checked"),
                    EvidenceRef("unit", "m2", object="kubelet", text="inactive"),
                    EvidenceRef("log", "m2", text="other words"),
                )
            ),
        )
    )
    for line in (
        "  evidence: ConfigMap kube-system/kubeadm-config ClusterConfiguration:3: a: b\n",
        " m1: pid 9: answers leader election is not checked\n",
        " kubelet: inactive\n",
        " log: other words\n",
    ):
        assert line in report


def test_no_field_reaches_the_page_raw():
    evil = "x\x1b[31m\u202e\nkubemend: 0 hosts"
    proof = EvidenceRef(
        "file", evil, path=evil, line=1, pid=1, argv=(evil, evil), object=evil, text=evil
    )
    missing = (Missing(evil, evil, evil),)
    symptom = Symptom("s", evil, ("KM101", "KM102"))
    report = text.render(
        Result(
            clusters=(ClusterRow(evil, evil, (evil,)),),
            hosts=(
                HostRow(evil, evil, evil, "worker", "ok"),
                HostRow("m2", None, evil, "worker", "unreachable", evil),
            ),
            verdicts=(
                Verdict("KM101", evil, "unknown", evil, evil, missing, evil),
                Verdict("KM102", evil, "present", evil, evil),
                Verdict("KM103", evil, "unknown", None, None, missing),
            ),
            not_judged=(NotJudged(evil, evil, evil),),
            findings=(
                Finding(evil, evil, evil, evil, evil, evil, evil, (evil,), (proof,), evil, 0, evil),
            ),
        ),
        run(symptom=symptom, notices=(evil,), titles={"KM101": evil}),
    )
    for char in report.replace("\n", ""):
        assert unicodedata.category(char) not in ("Cc", "Cf", "Cs"), ascii(char)
    assert sum(line.startswith("kubemend: 0") for line in report.splitlines()) == 0


def test_colour_touches_labels_only_and_plain_text_has_none():
    seen = []

    def paint(label, kind):
        seen.append((label, kind))
        return f"<{label}>"

    result = Result(clusters=(ClusterRow(KEY, None, ()),), findings=(finding(remedy="do it"),))
    painted = text.render(result, run(), 80, paint)
    assert "<CRITICAL> KM101" in painted
    assert ("CRITICAL", "critical") in seen
    assert painted.replace("<", "").replace(">", "") == text.render(result, run(), 80)


def test_prose_keeps_to_the_width():
    report = rendered(
        width=60,
        findings=(finding(summary="word " * 60, remedy="other " * 60),),
        run_data=run(notices=("n " * 80,)),
    )
    assert max(len(line) for line in report.splitlines()) <= 60 + len("; report: /r")


def test_an_endless_line_is_cut():
    report = rendered(
        findings=(
            finding(evidence=(EvidenceRef("file", "m2", path="/x", line=1, text="y" * 10_000),)),
        )
    )
    assert max(len(line) for line in report.splitlines()) < 2_200
    assert "more characters in report.json" in report


@pytest.mark.parametrize("case", CASES[::8])
def test_recorded_incidents_fit_into_80_columns(case):
    """Text that is copied or compared as a whole may be wider.

    It is evidence, commands, and words that are longer.
    """
    result = fault_engine.evaluate(
        evidence_sources.stream([str(RECORDED / case / "evidence")]), deep=True
    )
    report = text.render(
        result, run(titles={code: fault.title for code, fault in fault_engine.CATALOGUE.items()})
    )
    whole = {
        text_page.escape(line)
        for item in result.findings
        for named in (False, True)
        for line in phrases.proof_lines(item, named)
    }
    long = [
        line
        for line in report.splitlines()
        if len(line) > 79 and line.replace("  evidence: ", "").strip(" ") not in whole
    ]
    assert [line for line in long if max(map(len, line.split())) < 60] == []


def test_where_the_command_is_in_use_it_explains_the_faults():
    used = run(pages="/c/docs/faults", explain="kubemend explain")
    report = rendered(findings=(finding(),), run_data=used)
    assert "explained by kubemend explain KM101 (or another code), and in report.html\n" in report
    assert "/c/docs/faults" not in report
    assert "kubemend explain" not in rendered(run_data=used)


def test_the_pages_of_faults_are_named_once_where_they_are_installed_and_something_was_found():
    told = rendered(findings=(finding(), finding(host="m3")), run_data=run(pages="/c/docs/faults"))
    assert told.count("explained in /c/docs/faults/<code>.md, and in report.html\n") == 1
    assert finding().docs == "docs/faults/KM101.md"
    assert "explained in" not in rendered(findings=(finding(),)) + rendered(
        run_data=run(pages="/c/docs/faults")
    )


def test_a_consequence_stands_below_its_cause_whatever_their_severities():
    report = rendered(
        findings=(
            finding("KM108", summary="stale", because=("KM902",)),
            finding("KM101", summary="first"),
            finding("KM902", "m1", None, "info", summary="interrupted"),
            finding("KM114", "m1", "kube-apiserver", summary="no server"),
            finding("KM114", "m1", "kube-scheduler", summary="no lock", because=("KM114",)),
        )
    )
    told = ["first", "interrupted", "stale", "no server", "no lock"]
    assert sorted(told, key=report.index) == told


@pytest.mark.parametrize(("number", "entry"), [(1, "the Node object of w1"), (3, "of HOST is")])
def test_steps_that_differ_only_in_their_host_are_one_entry_of_the_plan(number, entry):
    steps = tuple(
        Step(
            f"{n:02}-w{n}-kernel-setting",
            f"w{n}",
            "KM407",
            "kernel_setting",
            1,
            "/etc/sysctl.d/99-zz-kubemend.conf",
            blocked_by=f"the Node object of w{n} is gone",
        )
        for n in range(1, number + 1)
    )
    report = " ".join(rendered(run_data=run(plan=steps)).split())
    assert report.count("/etc/sysctl.d/99-zz-kubemend.conf") == 1
    assert entry in report


@pytest.mark.parametrize(
    ("remedy", "state", "undo", "shown"),
    [
        ("kernel_setting", "done", "undo it", True),
        ("kernel_setting", "rolled_back", "undo it", False),
        ("start_kubelet", "done", "undo it", False),
        ("kernel_setting", "done", "", False),
    ],
)
def test_a_repair_that_can_be_undone_ends_its_plan_with_the_command(remedy, state, undo, shown):
    steps = (Step("01-w1", "w1", "KM407", remedy, 1, "/etc/sysctl.d/99-zz-kubemend.conf"),)
    became = ({"id": "01-w1", "state": state, "reason": ""},)
    data = run(mode="verify", plan=steps, steps=became, undo=undo)
    assert ("\nundo: undo it\n" in rendered(run_data=data)) == shown


@pytest.mark.parametrize(
    ("commands", "count"), [((None, None), 1), (("do a", "do b"), 1), (("do a", None), 0)]
)
def test_the_command_for_all_steps_is_there_once_unless_a_finding_has_it(commands, count):
    findings = [
        Finding(code, "critical", None, "w1", None, "used up", "w1", command=command)
        for code, command in zip(("KM401", "KM402"), commands, strict=True)
    ]
    report = rendered(findings=findings, run_data=run(repair="do all"))
    assert report.count("\nrepair: do all\n") == count
    assert "do all" not in rendered(findings=findings)


@pytest.mark.parametrize(
    ("verdicts", "lines"),
    [
        (["clear", "clear"], ["KM407 Files run out: no longer found at 14:03:13 UTC"]),
        (
            ["clear", "present"],
            [
                "KM407 Files run out: no longer found at 14:03:12 UTC on w0",
                "KM407 Files run out: still found at 14:03:13 UTC on w1",
            ],
        ),
        (["unknown", None], ["KM407 Files run out: could not be judged at 14:03:12 UTC"]),
        ([None, None], []),
    ],
)
def test_a_finished_step_shows_which_check_proved_it(verdicts, lines):
    steps, became = [], []
    for number, verdict in enumerate(verdicts):
        host = f"w{number}"
        steps.append(Step(f"0{number}-{host}", host, "KM407", "kernel_setting", 1, "a file"))
        row = {"id": steps[-1].id, "state": "done", "reason": ""}
        if verdict:
            at = f"2026-11-28T14:03:1{2 + number}Z"
            row["verified"] = [{"code": "KM407", "verdict": verdict, "at": at}]
        became.append(row)
    titles = {"KM407": "Files run out"}
    data = run(mode="verify", plan=tuple(steps), steps=tuple(became), titles=titles)
    lines_shown = rendered(160, run_data=data).split("\n")
    found = [line.strip() for line in lines_shown if "verified: " in line]
    assert found == [f"verified: {line}" for line in lines]
    assert html.render(Result(), data).count("verified: ") == len([row for row in verdicts if row])


@pytest.mark.parametrize(
    ("mode", "verdict", "shown"),
    [
        ("observe", "clear", True),
        ("plan", "unknown", True),
        ("observe", "present", False),
        ("verify", "clear", False),
        ("replay", "clear", False),
    ],
)
def test_where_no_cause_of_a_symptom_is_proven_the_audit_of_all_faults_is_named(
    mode, verdict, shown
):
    symptom = Symptom("api_down", "The API does not answer", ("KM101",))
    data = run(mode=mode, symptom=symptom)
    report = rendered(run_data=data, verdicts=(Verdict("KM101", KEY, verdict),))
    assert ("the playbook audit checks all faults\n" in report) == shown
    assert "the playbook audit" not in rendered(run_data=run(mode=mode))
