# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""report.sarif: the shape that SARIF 2.1.0 requires, and what each finding becomes in it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from urllib.parse import unquote, urlsplit

import jsonschema
import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    CATALOGUE,
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
    Waived,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import sarif
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import report_dir
from tests.unit.plugins.plugin_utils.faults.test_recorded import CASES, FOLDER

KEY = "0123456789abcdef"
TEXT = {"type": "string", "minLength": 1}
MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": TEXT}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
TIME = {"type": "string", "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"}


def closed(required, **properties):
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


def array(items, **more):
    return {"type": "array", "items": items, **more}


# The part of SARIF 2.1.0 that is written: what the standard requires, and no name that it lacks.
LOCATION = closed(
    "physicalLocation logicalLocations",
    physicalLocation=closed(
        "artifactLocation",
        artifactLocation=closed("uri uriBaseId", uri=TEXT, uriBaseId={"const": "HOSTS"}),
        region=closed("startLine", startLine={"type": "integer", "minimum": 1}),
    ),
    logicalLocations=array(closed("fullyQualifiedName", name=TEXT, fullyQualifiedName=TEXT)),
)
RESULT = closed(
    "ruleId ruleIndex level message locations partialFingerprints",
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level=LEVEL,
    message=MESSAGE,
    locations=array(LOCATION, minItems=1),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    suppressions=array(
        closed(
            "kind",
            kind={"enum": ["inSource", "external"]},
            status={"enum": ["accepted", "underReview", "rejected"]},
            justification=TEXT,
        )
    ),
)
RULE = closed(
    "id",
    id=TEXT,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    defaultConfiguration=closed("level", level=LEVEL),
    properties={"type": "object"},
)
INVOCATION = closed(
    "executionSuccessful",
    executionSuccessful={"type": "boolean"},
    exitCode={"type": "integer"},
    exitCodeDescription=TEXT,
    startTimeUtc=TIME,
    endTimeUtc=TIME,
    toolExecutionNotifications=array(closed("message", level=LEVEL, message=MESSAGE)),
)
DRIVER = closed(
    "name rules", name={"const": "kubemend"}, fullName=TEXT, semanticVersion=TEXT, rules=array(RULE)
)
SHAPE = closed(
    "version runs",
    **{"$schema": TEXT},
    version={"const": "2.1.0"},
    runs=array(
        closed(
            "tool results",
            tool=closed("driver", driver=DRIVER),
            automationDetails=closed("id", id=TEXT),
            originalUriBaseIds={"type": "object"},
            invocations=array(INVOCATION),
            results=array(RESULT),
        ),
        minItems=1,
        maxItems=1,
    ),
)


def run(**more):
    return Run(
        "20261121T090000Z-1a2b3c",
        "2026-11-21T09:00:00Z",
        "2026-11-21T09:01:09Z",
        "observe",
        "/r",
        "0.1.0",
        **more,
    )


def written(result, **more):
    """Return the only run of the file, which has the shape of the standard."""
    text = sarif.render(result, run(**more))
    assert report_dir.FACES["sarif"][1].match(text.encode()[: report_dir.HEAD])
    document = json.loads(text)
    jsonschema.Draft202012Validator(SHAPE).validate(document)
    return document["runs"][0]


def finding(code="KM101", host="m1", severity="critical", **more):
    return Finding(code, severity, KEY, host, "kube-scheduler", "election is off", **more)


def test_a_result_has_rule_level_place_and_identity():
    proof = EvidenceRef("file", "m1", path="/etc/kubernetes/manifests/a b.yaml", line=17)
    found = finding(evidence=(EvidenceRef("process", "m1", pid=1), proof), remedy="remove it")
    made = written(Result(findings=(found,)), cluster_names={KEY: "prod"})
    (result,) = made["results"]
    rules = made["tool"]["driver"]["rules"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "KM101"
    assert result["level"] == "error"
    assert result["message"]["text"].startswith("m1 kube-scheduler: election is off")
    assert result["message"]["text"].endswith("; fix: remove it")
    assert result["partialFingerprints"] == {"kubemend/v1": found.id}
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {
            "uri": "m1/etc/kubernetes/manifests/a%20b.yaml",
            "uriBaseId": "HOSTS",
        },
        "region": {"startLine": 17},
    }
    names = [item["fullyQualifiedName"] for item in location["logicalLocations"]]
    assert names == ["prod/m1/kube-scheduler"]


@pytest.mark.parametrize(
    ("fields", "uri"),
    [({}, "m1"), ({"host": None, "node": "n1"}, "n1"), ({"host": None}, KEY)],
)
def test_without_a_file_the_place_is_the_host_or_the_cluster(fields, uri):
    (result,) = written(Result(findings=(replace(finding(), **fields),)))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


@pytest.mark.parametrize(
    ("severity", "level"), [("critical", "error"), ("warning", "warning"), ("info", "note")]
)
def test_levels_are_those_of_the_standard(severity, level):
    (result,) = written(Result(findings=(finding(severity=severity),)))["results"]
    assert result["level"] == level


def test_a_waived_finding_is_suppressed_with_its_reason():
    waived = finding(waived=Waived("known", "platform", "2027-01-31"))
    result, other = written(Result(findings=(waived, finding())))["results"]
    (suppression,) = result["suppressions"]
    assert (suppression["kind"], suppression["status"]) == ("external", "accepted")
    assert suppression["justification"] == "waived until 2027-01-31 by platform: known"
    assert "suppressions" not in other


def test_times_are_those_of_the_report():
    found = replace(finding(), summary="off since 2026-11-24T07:42:17Z")
    (result,) = written(Result(findings=(found,)))["results"]
    assert "off since 2026-11-24 07:42 UTC" in result["message"]["text"]


def test_rules_are_the_catalogue_once_each():
    rules = written(Result())["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(CATALOGUE)
    levels = {rule["id"]: rule["defaultConfiguration"]["level"] for rule in rules}
    assert levels == {code: sarif.LEVELS[fault.severity] for code, fault in CATALOGUE.items()}


def test_unknown_is_a_notification_and_a_failed_run_is_not_successful():
    lack = Verdict("KM103", KEY, "unknown", missing=(Missing("m2", "manifests", "denied"),))
    result = Result(hosts=(HostRow("m2", None, KEY, "worker", "ok"),), verdicts=(lack,))
    (invocation,) = written(result, notices=("by hand",))["invocations"]
    texts = [item["message"]["text"] for item in invocation["toolExecutionNotifications"]]
    assert "KM103" in texts[0]
    assert "manifests of m2 (denied)" in texts[0]
    assert texts[1:] == ["by hand"]
    assert invocation["executionSuccessful"]
    (failed,) = written(result, outcome=(2, "failed", "x"))["invocations"]
    assert (failed["executionSuccessful"], failed["exitCode"]) == (False, 2)


def test_hostile_text_is_no_link_no_placeholder_and_no_path_above_its_host():
    text = "[open](https://evil.example) {0} \x1b[31m\u202e\ud800"
    proof = EvidenceRef("file", "m1", path="/../../../etc/x:y?z#\udcff")
    hostile = replace(finding(), summary=text, component=text, evidence=(proof,))
    (result,) = written(Result(findings=(hostile,)))["results"]
    shown = result["message"]["text"]
    assert shown.isprintable()
    assert "](" not in shown
    assert re.search(r"(?<!\{)\{0\}", shown) is None
    uri = urlsplit(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
    assert (uri.scheme, uri.netloc, uri.query, uri.fragment) == ("", "", "", "")
    assert unquote(uri.path).startswith("m1/etc/x:y?z#")


@pytest.mark.parametrize("case", CASES[::9])
def test_every_finding_of_a_recording_is_a_result(case):
    folder = str(FOLDER / case / "evidence")
    result = fault_engine.evaluate(evidence_sources.stream([folder]), deep=True)
    made = written(result)
    assert [item["ruleId"] for item in made["results"]] == [item.code for item in result.findings]
