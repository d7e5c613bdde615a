# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judging, situation by situation.

Exactly which faults are present, where, and what is unknown for want of whom.
"""

from __future__ import annotations

import copy
import gc
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.document import stub
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import CATALOGUE
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import (
    CheckResult,
    Detection,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.engine import evaluate
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import Missing
from tests.unit.support.verdicts import MANAGER, SCHEDULER, present, verdicts

ELECTION = ("KM101", "KM102", "KM103", "KM104", "KM105")


def test_healthy_cluster_has_no_finding_and_no_unknown(world):
    result = world.judge(deep=True)
    assert present(result) == set()
    assert {item.verdict for item in result.verdicts} <= {"clear", "not_applicable"}
    assert result.not_judged == ()
    assert [row.role for row in result.hosts] == ["control_plane"] * 3 + ["worker"]


def test_unreachable_master_hides_nothing_that_another_proves(world):
    world.silence("m3")
    world.manifest("m2", MANAGER, "--leader-elect=false")
    world.run("m2", MANAGER, "--leader-elect=false", elect=False)
    result = world.judge()
    assert present(result) == {("KM901", "m3", None), ("KM101", "m2", MANAGER)}
    assert verdicts(result, "KM101") == {SCHEDULER: "unknown", MANAGER: "present"}


def test_unreachable_worker_leaves_the_control_plane_clear(world):
    world.silence("w1")
    result = world.judge()
    assert present(result) == {("KM901", "w1", None)}
    assert set(verdicts(result, "KM101").values()) == {"clear"}


def test_limit_to_a_worker_judges_nothing_of_the_masters(world):
    for host in ("m1", "m2", "m3"):
        world.silence(host, "not_asked")
    result = world.judge()
    assert present(result) == set()
    assert set(ELECTION) <= {item.code for item in result.not_judged}
    assert {item.verdict for item in result.verdicts} <= {"clear", "not_applicable"}


def test_limit_to_the_wrong_master_still_proves_it(world):
    world.manifest("m2", MANAGER, "--leader-elect=false")
    world.run("m2", MANAGER, "--leader-elect=false", elect=False)
    for host in ("m1", "m3", "w1"):
        world.silence(host, "not_asked")
    assert present(world.judge()) == {("KM101", "m2", MANAGER)}


def test_api_down_leaves_node_evidence_judged(world):
    world.api.update(status="error", reason="connection refused", collectors={})
    world.manifest("m2", MANAGER, "--leader-elect=false")
    world.run("m2", MANAGER, "--leader-elect=false", elect=False)
    result = world.judge()
    assert present(result) == {("KM101", "m2", MANAGER)}
    assert set(verdicts(result, "KM113").values()) == {"unknown"}


def test_keys_with_one_kube_system_uid_are_one_cluster(world):
    world.documents["m3"]["cluster_key"] = "beef" + "0" * 60
    other = {**world.api, "host": "m3", "cluster_key": "beef" + "0" * 60}
    result = evaluate([*world.documents.values(), world.api, other])
    assert len(result.clusters) == 1
    assert present(result) == set()


def test_two_clusters_in_one_inventory_are_judged_apart(world):
    other = [
        {
            **copy.deepcopy(document),
            "host": f"other-{document['host']}",
            "cluster_key": "beef" + "0" * 60,
        }
        for document in world.documents.values()
    ]
    api = {
        **world.api,
        "host": "other-m1",
        "cluster_key": "beef" + "0" * 60,
        "collectors": {
            **world.api["collectors"],
            "server": {"status": "ok", "data": {"kube_system_uid": "second"}},
        },
    }
    world.manifest("m2", MANAGER, "--leader-elect=false")
    world.run("m2", MANAGER, "--leader-elect=false", elect=False)
    result = evaluate([*world.documents.values(), world.api, *other, api])
    assert {(item.code, item.host) for item in result.findings} == {("KM101", "m2")}
    assert len(result.clusters) == 2


def test_nobody_answers(world):
    for host in world.documents:
        world.silence(host)
    world.api = None
    result = world.judge()
    assert {item.code for item in result.findings} == {"KM901"}
    assert set(verdicts(result, "KM101").values()) == {"unknown"}


def test_only_the_codes_asked_for_are_judged(world):
    result = world.judge(faults=frozenset({"KM113"}))
    assert {item.code for item in result.verdicts} == {"KM113"}


def _places(result):
    return {(code, host) for code, host, _component in present(result)}


def test_a_check_that_fails_hides_no_deep_finding_of_a_plain_run(monkeypatch):
    folder = Path(__file__).parents[4] / "fixtures/recorded/v1.36.3-inotify-one-holder/evidence"
    documents = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    assert ("KM401", "w1") in _places(evaluate(documents))

    def failing(host, document):
        if document["collectors"]:
            raise ValueError("an answer that the check does not expect")
        return ()

    monkeypatch.setitem(CATALOGUE, "KM402", replace(CATALOGUE["KM402"], node=failing))
    result = evaluate(documents)
    assert ("KM401", "w1") in _places(result)
    assert {row.status for row in result.hosts} == {"error"}


def test_hosts_findings_and_verdicts_come_as_people_count():
    names = ["w10", "w2", "w1"]
    result = evaluate([stub(name, ("kubemend_workers",), "error", "it is so") for name in names])
    assert [row.host for row in result.hosts] == ["w1", "w2", "w10"]
    assert [item.host for item in result.findings] == ["w1", "w2", "w10"]
    hosts = [item.host for item in result.verdicts if item.code == "KM901"]
    assert hosts == ["w1", "w2", "w10"]


def test_what_judging_sets_of_the_garbage_collector_it_sets_back(world):
    former = gc.get_threshold()
    during = []

    def documents():
        for document in (*world.documents.values(), world.api):
            during.append(gc.get_threshold())
            yield document

    evaluate(documents())
    assert during[0][0] >= 10_000
    assert gc.get_threshold() == former


def _told(monkeypatch, world, outcome):
    """Return the result of a run whose only check, of each node, gives this outcome for w1."""

    def check(host, _document):
        return (outcome,) if host.host == "w1" else ()

    monkeypatch.setitem(CATALOGUE, "KM562", replace(CATALOGUE["KM562"], node=check))
    return evaluate([*world.documents.values(), world.api], faults=frozenset({"KM562"}))


@pytest.mark.parametrize(
    ("outcome", "row"),
    [
        (CheckResult(), ("w1", "kernel", "")),
        (CheckResult(note="why"), ("w1", "kernel", "why")),
        (CheckResult(component="etcd"), ("w1", "etcd", "")),
        (CheckResult(host="other"), ("other", "kernel", "")),
        (CheckResult(host="other", note="why"), ("other", "kernel", "why")),
    ],
)
def test_a_result_without_hits_keeps_what_it_says(monkeypatch, world, outcome, row):
    monkeypatch.setitem(CATALOGUE, "KM562", replace(CATALOGUE["KM562"], component="kernel"))
    (one,) = _told(monkeypatch, world, outcome).verdicts
    assert (one.host, one.component, one.note) == row
    assert one.verdict == "clear"


@pytest.mark.parametrize(
    ("missing", "reasons"),
    [
        (Missing("w1", "host", "not_asked"), {"limit"}),
        (Missing("w1", "etcd", "not_asked"), {"tier"}),
        (Missing("w1", "etcd", "error"), set()),
    ],
)
def test_why_nothing_was_judged(monkeypatch, world, missing, reasons):
    result = _told(monkeypatch, world, CheckResult(missing=(missing,)))
    assert {row.reason for row in result.not_judged} == reasons
    assert [row.missing for row in result.verdicts] == ([] if reasons else [(missing,)])


def test_what_is_missing_is_told_of_a_hit_too_and_not_of_what_is_clear(monkeypatch, world):
    missing = (Missing("w1", "etcd", "error"),)
    hit = Detection("it is so", (), "do", host="w1", risk=0)
    (one,) = _told(monkeypatch, world, CheckResult((hit,), missing)).verdicts
    assert (one.verdict, one.missing) == ("present", missing)
    (one,) = _told(monkeypatch, world, CheckResult(missing=missing, applies=False)).verdicts
    assert (one.verdict, one.missing) == ("not_applicable", ())


def test_a_garbage_collector_that_is_off_stays_off(world):
    former = gc.get_threshold()
    during = []

    def documents():
        for document in (*world.documents.values(), world.api):
            during.append(gc.get_threshold()[0])
            yield document

    try:
        gc.set_threshold(0)
        evaluate(documents())
    finally:
        gc.set_threshold(*former)
    assert set(during) == {0}
