# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The published schemas: every report and every file of evidence is as they say.

Everything else fails.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path

import jsonschema
import pytest

from ansible_collections.kubemend.remediation.plugins.action import diagnose
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    outcome as capture_outcome,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    scheduler as capture_scheduler,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    result as model_result,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.scheduling import (
    cache_dump,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    run_files,
    variables,
)
from tests import schemas
from tests.unit.plugins.plugin_utils.capture.test_scheduler import RUN, became, chosen, done, struck
from tests.unit.plugins.plugin_utils.conftest import World
from tests.unit.plugins.plugin_utils.faults.test_recorded import CASES, FOLDER
from tests.unit.plugins.plugin_utils.models.scheduling.test_cache_dump import of_1_14

EXAMPLES = Path(__file__).resolve().parents[5] / "examples"
CAPTURE = {
    "level": 4,
    "seconds": 60,
    "lines": 2,
    "path": "/r/capture/lines.txt",
    "levels": [
        {
            "host": "w1",
            "component": "kubelet",
            "through": "m1",
            "former": 0,
            "level": 4,
            "way": "run-time",
            "restarted": [],
            "log_until_then": None,
            "raised": True,
            "restored": None,
            "reason": "",
        }
    ],
}


def reported(where, folder, mode="replay", **more):
    """report.json as diagnose writes it, of this evidence."""
    args = {name: option.get("default") for name, option in diagnose.SPEC.items()}
    args.update(
        evidence=[str(where)],
        report_dir=str(folder),
        run_id="20261121T090000Z-1a2b3c",
        mode=mode,
        formats=["json"],
        deep=True,
        **more,
    )
    diagnose._diagnose(args, False)
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def captured(folder):
    """Write what the captures of schedulers came to where the run has it.

    One capture has a dump, and one came to nothing.
    """
    (one,), notes = chosen(struck(World()))
    found = [
        capture_scheduler.result(
            done(one),
            became("m1"),
            of_1_14("m1", "m2", "m3", "w1"),
            RUN,
            {"dump": "/r/d.txt", "lines": "/r/l.txt"},
        ),
        capture_scheduler.result(one, None, [], RUN, {}),
    ]
    capture_outcome.write(
        str(folder),
        capture_scheduler.DOCUMENT,
        {"captures": [one], "notes": notes, "results": found},
    )


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """Give a report with something in every list.

    Two leaders, whose repair went wrong, in the words of the schema's every object.
    """
    folder, where = tmp_path_factory.mktemp("rich"), FOLDER / "v1.18.4-two-leaders" / "evidence"
    captured(folder)
    reported(where, folder, "repair", max_risk=2)
    steps = run_files.read_plan(str(folder))
    (folder / "steps.jsonl").write_text(
        "".join(json.dumps({"id": step.id, "state": "done"}) + "\n" for step in steps[:1])
    )
    report = reported(where, folder, "verify", symptom="duplicate_pods")
    recorded = reported(FOLDER / "v1.36.3-wrong-master-unreachable" / "evidence", folder, "replay")
    entry = {"time": None, "where": "m1", "pod": "", "what": "w", "source": "log", "detail": ""}
    report.update(
        timelines=[{"pod": "n/a", "uid": None, "entries": [entry]}],
        capture=CAPTURE,
        verdicts=recorded["verdicts"],
        not_judged=[{"code": "KM101", "cluster": None, "reason": "limit"}],
    )
    return schemas.checked("report", report)


def objects(value, path=()):
    """Yield every mapping of a document with its path.

    Of a list it yields those of the first item that has any.
    """
    if isinstance(value, dict):
        yield path
        for name, item in value.items():
            yield from objects(item, (*path, name))
    elif isinstance(value, list):
        ranked = sorted(range(len(value)), key=lambda index: -len(json.dumps(value[index])))
        for index in ranked[:1]:
            yield from objects(value[index], (*path, index))


def at(document, path):
    for part in path:
        document = document[part]
    return document


@pytest.mark.parametrize("name", ["report", "evidence"])
def test_the_schemas_are_schemas(name):
    schema = schemas.schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert (schema["title"], schema["properties"]["schema"]["const"]) == (f"kubemend.{name}/1",) * 2


def test_their_words_are_those_of_the_code():
    properties, parts = (schemas.schema("report")[name] for name in ("properties", "$defs"))
    assert properties["schema"]["const"] == diagnose.json_report.SCHEMA
    assert set(parts["verdict"]["properties"]["verdict"]["enum"]) == set(model_result.VERDICTS)
    assert tuple(parts["finding"]["properties"]["severity"]["enum"]) == model_result.SEVERITIES
    # `shown` prints a report that another mode has written.
    choices = {*diagnose.SPEC["mode"]["choices"]} - {"shown"}
    modes = {name.replace("verify", "repair") for name in choices}
    assert set(properties["mode"]["enum"]) == modes | {"capture", "revert"}
    envelope = schemas.schema("evidence")
    assert set(envelope["properties"]["status"]["enum"]) == set(evidence_document.STATUSES)
    assert set(envelope["$defs"]["record"]["properties"]["status"]["enum"]) == set(
        evidence_document.COLLECTOR_STATUSES
    )
    assert set(evidence_document.ENVELOPE) <= set(envelope["properties"])
    assert set(evidence_document.REQUIRED) <= set(envelope["required"])


@pytest.mark.parametrize("case", CASES)
def test_every_recorded_incident_is_reported_as_the_schema_says(case, tmp_path):
    report = reported(
        FOLDER / case / "evidence", tmp_path, "plan", max_risk=3, allow=list(variables.REFUSALS)
    )
    assert schemas.complaints("report", report) == []
    assert report["verdicts"]
    assert len(report["summary"]) == 6


def test_a_run_that_captured_schedulers(tmp_path):
    captured(tmp_path)
    report = schemas.checked(
        "report", reported(FOLDER / "v1.36.3-healthy" / "evidence", tmp_path, "observe")
    )
    assert [one["verdict"] for one in report["scheduler_captures"]] == [
        cache_dump.SHORT,
        cache_dump.UNKNOWN,
    ]
    assert set(
        schemas.schema("report")["$defs"]["scheduler_capture"]["properties"]["verdict"]["enum"]
    ) == set(capture_scheduler.ORDER)


def test_a_run_of_a_slice(tmp_path):
    report = schemas.checked(
        "report", reported(FOLDER / "v1.36.3-two-leaders" / "evidence", tmp_path, part=True)
    )
    assert "slice" in {item["reason"] for item in report["not_judged"]}


def test_something_of_every_kind_was_reported(rich):
    assert rich["steps"]
    assert rich["plan"]
    assert rich["symptom"]
    assert rich["findings"][0]["evidence"]
    assert any(verdict["missing"] for verdict in rich["verdicts"])


def test_a_field_that_is_new_or_missing_or_misspelt_fails(rich):
    seen = list(objects(rich))
    assert len(seen) >= 13
    for path in seen:
        changed = copy.deepcopy(rich)
        at(changed, path)["brandnew"] = 1
        assert schemas.complaints("report", changed), f"{path}: one more field"
        for name in at(rich, path):
            optional = (
                ((), "capture"),
                ((), "scheduler_captures"),
                (("clusters", 0), "name"),
                (("findings", 0), "since"),
                (("steps", 0), "verified"),
            )
            if (path, name) in optional or path[-1:] == ("files",):
                continue
            changed = copy.deepcopy(rich)
            del at(changed, path)[name]
            assert schemas.complaints("report", changed), f"{path}: without {name}"
    assert schemas.complaints(
        "report", {**{name: rich[name] for name in rich if name != "verdicts"}, "verdict": []}
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "kubemend.report/2"),
        (("mode",), "verify"),
        (("exit_code",), 4),
        (("exit_reason",), "lost"),
        (("findings", 0, "code"), "KM1010"),
        (("findings", 0, "severity"), "bad"),
        (("findings", 0, "risk"), 5),
        (("verdicts", 0, "verdict"), "maybe"),
        (("steps", 0, "state"), "begun"),
        (("hosts", 0, "status"), "not_asked"),
        (("summary", "critical"), "2"),
        (("plan", 0, "allowed"), "yes"),
    ],
)
def test_a_value_that_is_none_of_the_known_fails(rich, path, value):
    changed = copy.deepcopy(rich)
    assert at(changed, path[:-1])[path[-1]] != value
    at(changed, path[:-1])[path[-1]] = value
    assert schemas.complaints("report", changed)


def test_all_evidence_that_was_recorded_is_in_the_envelope():
    files = [*FOLDER.glob("*/evidence/*.json"), *EXAMPLES.glob("*/evidence/*.json")]
    assert len(files) > 200
    for path in files:
        assert schemas.complaints("evidence", json.loads(path.read_text(encoding="utf-8"))) == [], (
            path
        )


def test_evidence_of_who_was_not_asked_and_of_who_did_not_answer(tmp_path):
    evidence_document.write_stub(tmp_path, "m1", ["control_plane"], "192.0.2.1")
    schemas.checked("evidence", json.loads((tmp_path / "m1.json").read_text()))
    schemas.checked(
        "evidence",
        evidence_document.finalise(
            evidence_document.envelope("m1", "unreachable", "timed out\x1b"), ["node"]
        ),
    )


def test_evidence_with_a_field_that_is_new_or_missing_fails():
    document = json.loads((FOLDER / CASES[0] / "evidence" / "m1.json").read_text())
    name = next(iter(document["collectors"]))
    for path in ((), ("collectors", name)):
        changed = copy.deepcopy(document)
        at(changed, path)["brandnew"] = 1
        assert schemas.complaints("evidence", changed)
        for field in at(document, path):
            changed = copy.deepcopy(document)
            del at(changed, path)[field]
            assert bool(schemas.complaints("evidence", changed)) is (
                field not in ("address", "python", "euid")
            ), field
    free = copy.deepcopy(document)
    free["collectors"][name]["data"] = {"whatever": [1]}
    assert schemas.complaints("evidence", free) == []


def test_every_fault_code_is_one_of_the_schemas():
    pattern = schemas.schema("report")["$defs"]["code"]
    assert all(
        jsonschema.Draft202012Validator(pattern).is_valid(code) for code in fault_engine.CATALOGUE
    )
