# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The scheduler, without a cluster."""

from __future__ import annotations

import json

from tests.lab.support import incident, results
from tests.lab.support.runner import Case, differences, plan_rounds

OLD, NEW = "v1.18.4", "v1.36.3"
WORKERS = ("w1", "w2", "w3")


def worker(name, k8s=NEW, target=None, **more):
    return Case(name, k8s, target, "worker", **more)


def shape(rounds):
    return [(one.k8s, [(case.incident, case.target) for case in one.cases]) for one in rounds]


def test_worker_cases_share_a_round_on_different_workers():
    assert shape(plan_rounds([worker("a"), worker("b")], WORKERS)) == [
        (NEW, [("a", "w1"), ("b", "w2")])
    ]


def test_more_worker_cases_than_workers_make_another_round():
    rounds = plan_rounds([worker(name) for name in "abcd"], WORKERS)
    assert [len(one.cases) for one in rounds] == [3, 1]


def test_a_chosen_worker_is_respected_and_taken_by_nobody_else():
    rounds = plan_rounds([worker("a"), worker("b", target="w1")], WORKERS)
    assert shape(rounds) == [(NEW, [("b", "w1"), ("a", "w2")])]


def test_two_cases_that_choose_the_same_worker_follow_each_other():
    assert len(plan_rounds([worker("a", target="w1"), worker("b", target="w1")], WORKERS)) == 2


def test_the_same_incident_is_never_twice_in_a_round():
    assert len(plan_rounds([worker("a"), worker("a")], WORKERS)) == 2


def test_what_occupies_more_than_a_worker_is_alone_and_the_kernel_is_last():
    cases = [
        Case("k", NEW, None, "kernel"),
        Case("c", NEW, None, "cluster"),
        Case("m", NEW),
        worker("a"),
        worker("b"),
    ]
    assert [[case.incident for case in one.cases] for one in plan_rounds(cases, WORKERS)] == [
        ["a", "b"],
        ["m"],
        ["c"],
        ["k"],
    ]


def test_a_case_with_an_audit_of_its_own_shares_with_nobody_but_gets_a_worker():
    assert shape(plan_rounds([worker("a", alone=True), worker("b")], WORKERS)) == [
        (NEW, [("b", "w1")]),
        (NEW, [("a", "w1")]),
    ]


def test_rounds_of_one_version_follow_each_other():
    cases = [Case("a", OLD), Case("a", NEW), Case("b", OLD), worker("w", OLD), worker("w", NEW)]
    assert [one.k8s for one in plan_rounds(cases, WORKERS)] == [OLD, OLD, OLD, NEW, NEW]


def test_every_case_is_planned_once():
    cases = [worker(str(n)) for n in range(10)] + [Case(str(n), OLD) for n in range(5)]
    planned = [(c.incident, c.k8s) for one in plan_rounds(cases, WORKERS) for c in one.cases]
    assert sorted(planned) == sorted((c.incident, c.k8s) for c in cases)


REPORT = {
    "findings": [
        {"code": "KM101", "host": "m2", "component": "kube-scheduler", "summary": "two lead"},
        {"code": "KM113", "host": None},
    ],
    "verdicts": [
        {"code": "KM106", "component": None, "verdict": "unknown"},
        {"code": "KM101", "component": "kube-scheduler", "verdict": "present"},
    ],
}
EXPECTED = {("KM101", "m2", "kube-scheduler"), ("KM113", None, None)}


def test_the_exact_findings_differ_in_nothing():
    assert differences(REPORT, EXPECTED, set()) == []


def test_too_few_and_too_many_findings_are_both_told_with_their_host():
    wrong = differences(REPORT, {("KM109", "m3", None), ("KM113", None, None)}, set())
    assert wrong == [
        ("m3", "not found: KM109 m3 None"),
        ("m2", "found but not there: KM101 m2 kube-scheduler: two lead"),
    ]


def test_a_consequence_may_be_there_or_not_yet():
    consequence = {("KM101", "m2", "kube-scheduler")}
    assert differences(REPORT, {("KM113", None, None)}, set(), False, consequence) == []
    assert differences(REPORT, EXPECTED, set(), False, consequence | {("KM114", "m1", None)}) == []


def test_an_unknown_that_was_expected_must_be_there():
    assert differences(REPORT, EXPECTED, {("KM106", None)}) == []
    assert differences(REPORT, EXPECTED, {("KM102", None)}) == [(None, "not unknown: KM102 None")]


def test_certainty_is_demanded_only_where_it_is_promised():
    assert differences(REPORT, EXPECTED, set(), nothing_unknown=True) == [
        (None, "unknown: KM106 None")
    ]


def test_resume_skips_what_passed_last_on_these_bytes(tmp_path):
    book = results.Book(tmp_path / "results.jsonl")
    book.add(Case("a", NEW), "short", 1, "passed", "")
    book.add(Case("b", NEW), "short", 1, "passed", "")
    book.add(Case("b", NEW), "short", 1, "failed", "later")
    book.add(Case("c", NEW), "default", 1, "passed", "")
    assert book.passed("short") == {(NEW, "a")}
    book.tree = {**book.tree, "commit": "another"}
    assert book.passed("short") == set()


def test_a_half_written_line_is_no_result(tmp_path):
    path = tmp_path / "results.jsonl"
    book = results.Book(path)
    book.add(Case("a", NEW), "short", 1, "passed", "")
    path.write_text(path.read_text() + json.dumps({"commit": "x"})[:8])
    assert len(book.entries()) == 1


def test_every_incident_file_is_discovered_and_says_what_it_is():
    found = incident.discover()
    assert "two-leaders" in found
    assert all(one.title for one in found.values())
