# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence of an unexpected shape.

It costs its host or its fault, and the judgement of the others goes on.
"""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    contract,
    decode,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import timeline
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import Missing
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    maintenance,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import run_plan
from tests.unit.support.facts import facts_of_each

RECORDED = Path(__file__).parents[4] / "fixtures" / "recorded"
CASES = (
    "v1.18.4-two-leaders",
    "v1.36.3-two-leaders",
    "v1.18.4-gpu-held",
    "v1.36.3-interrupted-change",
    "v1.36.3-gpu-two-leaders",
    "v1.36.3-user-taint",
)
WRONG = (
    None,
    True,
    7,
    -1,
    10**400,
    "",
    "x" * 50,
    "\x1b[2J",
    [],
    [[]],
    ["x"],
    {},
    {"name": 3},
    [None],
    1.5,
)


def documents(case):
    where = RECORDED / case
    return [
        evidence_document.read(path)
        for path in sorted(where.rglob("*.json"))
        if path.name != "expected.json"
    ]


def places(value, path=()):
    """Yield every place in a document that holds something, as a path of keys."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value[:3]):
            found += places(item, (*path, index))
    return found


def spoil(document, path, wrong):
    found = document
    for key in path[:-1]:
        found = found[key]
    found[path[-1]] = copy.deepcopy(wrong)


@pytest.mark.parametrize("case", CASES)
def test_one_wrong_value_costs_no_more_than_its_host(case):
    chosen, sound = random.Random(case), documents(case)
    usual = {row.host: row.status for row in fault_engine.evaluate(sound).hosts}
    for _number in range(60):
        index = chosen.randrange(len(sound))
        path = chosen.choice(places(sound[index]["collectors"], ("collectors",)))
        spoiled = list(sound)
        spoiled[index] = copy.deepcopy(sound[index])
        spoil(spoiled[index], path, chosen.choice(WRONG))
        result, found = fault_engine.evaluate_clusters(spoiled)
        assert {
            row.host: row.status for row in result.hosts if row.host != sound[index]["host"]
        } == {host: status for host, status in usual.items() if host != sound[index]["host"]}, path
        timeline.of_clusters(found)
        planned(result, found, spoiled)


def planned(result, clusters, documents):
    by_host = {
        document["host"]: document for document in documents if document.get("kind") != "cluster"
    }
    consent = plan.Consent(3, wishes=frozenset({plan.CLEAN_UP, plan.PATCH}))
    return plan.plan(
        result.findings,
        clusters,
        by_host.__getitem__,
        consent,
        run_plan.REMEDIES,
        fault_engine.KEY_DIGITS,
        maintenance.probe,
    )


@pytest.mark.parametrize("case", CASES)
def test_one_wrong_value_counts_as_a_collector_that_failed_and_is_named(case):
    chosen, sound = random.Random(case), documents(case)
    refused = 0
    for _number in range(40):
        index = chosen.randrange(len(sound))
        path = chosen.choice(places(sound[index]["collectors"], ("collectors",)))
        spoiled, failed = list(sound), list(sound)
        spoiled[index] = copy.deepcopy(sound[index])
        spoil(spoiled[index], path, chosen.choice(WRONG))
        checked = contract.checked(spoiled[index])
        if checked is spoiled[index]:
            continue
        refused += 1
        record = checked["collectors"][path[1]]
        assert (record["status"], record["data"]) == ("error", None)
        named = decode.written(path[3:])
        assert f"another type than expected: {named}" in record["error"], path
        failed[index] = copy.deepcopy(sound[index])
        failed[index]["collectors"][path[1]] = {**record}
        result = fault_engine.evaluate(spoiled)
        assert result == fault_engine.evaluate(failed)
        reasons = {lack.reason for lack in result.lacks if lack.collector == path[1]}
        assert not reasons or any(named in reason for reason in reasons)
    assert refused > 10


def spoiled_variable(odd):
    """Return (sound documents, those with an odd variable of a unit, the place of that host)."""
    sound = documents("v1.36.3-pinning-policy-changed")
    spoiled = copy.deepcopy(sound)
    at = next(place for place, item in enumerate(spoiled) if item["host"] == "w1")
    spoiled[at]["collectors"]["kubelet"]["data"]["unit"]["split_variables"][0] = odd
    return sound, spoiled, at


@pytest.mark.parametrize("odd", ["x" * 50, 7])
def test_what_a_remedy_alone_stumbles_over_costs_its_step_and_not_the_plan(odd, monkeypatch):
    def stumble(scene):
        dict([odd])

    sound, _spoiled, _at = spoiled_variable(odd)
    monkeypatch.setitem(run_plan.REMEDIES, "KM301", stumble)
    step = planned(*fault_engine.evaluate_clusters(sound), sound)[0]
    assert (step.host, step.code, step.remedy, step.allowed) == (
        "w1",
        "KM301",
        "none",
        False,
    )
    assert "unexpected shape" in step.blocked_by


@pytest.mark.parametrize("odd", ["x" * 50, 7])
def test_no_step_is_planned_of_what_was_spoiled_behind_the_evaluation(odd):
    sound, spoiled, at = spoiled_variable(odd)
    spoiled[at] = contract.checked(spoiled[at])
    steps = planned(*fault_engine.evaluate_clusters(sound), spoiled)
    assert [(step.host, step.code, step.allowed) for step in steps][:1] == [("w1", "KM301", False)]
    assert not any(step.allowed for step in steps if step.host == "w1")


def test_it_is_said_whose_evidence_it_was_and_what_is_unknown_for_it():
    sound = documents("v1.36.3-two-leaders")
    at = next(
        index
        for index, document in enumerate(sound)
        if document["host"] == "m1" and document.get("kind") != "cluster"
    )
    sound[at] = json.loads(json.dumps(sound[at]))
    sound[at]["groups"] = 7
    result = fault_engine.evaluate(sound)
    row = next(row for row in result.hosts if row.host == "m1")
    assert row.status == "error"
    assert "unexpected shape" in row.reason
    assert {finding.host for finding in result.findings if finding.code == "KM901"} == {"m1"}
    assert {finding.host for finding in result.findings if finding.code == "KM101"} == {"m2"}
    assert "m1" in {
        missing.host
        for verdict in result.verdicts
        if verdict.code == "KM101"
        for missing in verdict.missing
    }


def test_a_value_of_another_type_is_named_and_its_host_is_judged():
    sound = documents("v1.36.3-two-leaders")
    document = next(item for item in sound if item["host"] == "m1" and "kind" not in item)
    document["collectors"]["instances"]["data"]["processes"] = [7]
    result = fault_engine.evaluate(sound)
    assert next(row.status for row in result.hosts if row.host == "m1") == "ok"
    assert {finding.host for finding in result.findings if finding.code == "KM101"} == {"m2"}
    assert Missing("m1", "instances", "error") in {
        missing
        for verdict in result.verdicts
        if verdict.code == "KM101"
        for missing in verdict.missing
    }
    facts_of_each(
        (lack.reason for lack in result.lacks if lack.host == "m1"),
        ("another type", "processes[0]"),
    )


def test_a_fault_of_a_cluster_that_cannot_be_judged_is_unknown_and_the_others_are_judged():
    sound = [json.loads(json.dumps(document)) for document in documents("v1.36.3-two-leaders")]
    api = next(document for document in sound if document.get("kind") == "cluster")
    api["collectors"]["jobs"]["data"] = {"items": [7], "namespaces": 3, "pods": "x"}
    before = {
        verdict.code: verdict.verdict
        for verdict in fault_engine.evaluate(documents("v1.36.3-two-leaders")).verdicts
        if verdict.code != "KM113"
    }
    after = {verdict.code: verdict.verdict for verdict in fault_engine.evaluate(sound).verdicts}
    assert after.pop("KM113") == "unknown"
    assert after == before
