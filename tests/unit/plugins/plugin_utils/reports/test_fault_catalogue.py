# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue for programs: its schema, and that it says what the catalogue and the plan do."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    CATALOGUE,
    symptoms,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    REMEDIES,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    fault_catalogue,
)
from tests import schemas
from tests.docs import ROOT

ROWS = {row["code"]: row for row in fault_catalogue.rows()}


def test_the_document_is_as_its_schema_says_and_has_every_fault_once():
    document = schemas.checked("catalogue", fault_catalogue.document())
    assert [row["code"] for row in document["faults"]] == sorted(CATALOGUE)


def test_the_schema_refuses_a_field_that_it_does_not_know():
    document = fault_catalogue.document()
    document["faults"][0]["cost"] = 1
    assert schemas.complaints("catalogue", document)


def test_the_generated_file_is_that_document():
    text = (ROOT / "docs" / "catalogue.json").read_text(encoding="utf-8")
    assert json.loads(text) == fault_catalogue.document()


def test_causes_and_consequences_are_the_two_sides_of_one_relation():
    forward = {(cause, code) for code, row in ROWS.items() for cause in row["causes"]}
    back = {(code, effect) for code, row in ROWS.items() for effect in row["consequences"]}
    assert forward
    assert forward == back


def test_every_page_exists():
    assert [row["page"] for row in ROWS.values() if not (ROOT / row["page"]).is_file()] == []


@pytest.mark.parametrize("name", symptoms.SYMPTOMS)
def test_a_symptom_is_named_by_its_causes_and_signs(name):
    symptom = symptoms.SYMPTOMS[name]
    named = {code for code, row in ROWS.items() if name in row["symptoms"]}
    assert named == {*symptom.causes, *symptom.signs}


def test_only_faults_with_a_remedy_have_a_risk():
    assert {code for code, row in ROWS.items() if row["max_risk"]} == set(REMEDIES) & set(CATALOGUE)
    assert all(row["max_risk"] in (None, 1, 2, 3, 4) for row in ROWS.values())


def test_the_fields_of_a_fault_are_those_of_its_check():
    row = ROWS["KM101"]
    assert (row["severity"], row["scope"], row["tier"]) == ("critical", "cluster", "core")
    assert row["needs"] == {
        "host": list(CATALOGUE["KM101"].needs),
        "api": list(CATALOGUE["KM101"].cluster_needs),
    }
