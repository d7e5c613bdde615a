# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""examples/awx: what a survey asks is what the playbooks take, as AWX passes it on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import symptoms
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import variables

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "awx"
TEMPLATES = yaml.safe_load((FOLDER / "templates.yml").read_text(encoding="utf-8"))
SURVEYS = sorted((FOLDER / "surveys").glob("*.json"))
SYMPTOM = "symptom"
# What AWX knows of a question; the first ones it refuses to miss.
NEEDED = {"question_name", "question_description", "variable", "type", "default", "required"}
OPTIONAL = {"choices", "min", "max"}


def questions(path: Path) -> list[dict]:
    survey = json.loads(path.read_text(encoding="utf-8"))
    assert set(survey) == {"name", "description", "spec"}
    return survey["spec"]


def answers(question: dict) -> list[str]:
    return [*question.get("choices", []), question["default"]]


@pytest.mark.parametrize("path", SURVEYS, ids=lambda path: path.stem)
def test_each_answer_is_a_value_that_the_variable_takes(path):
    for question in questions(path):
        assert set(question) >= NEEDED
        assert set(question) <= NEEDED | OPTIONAL
        # AWX passes an answer that was left out as an empty text, which no variable takes.
        assert question["required"]
        if question["variable"] != SYMPTOM:
            kind = variables.VARIABLES[question["variable"]].kind
            for answer in answers(question):
                kind.parse(answer)


@pytest.mark.parametrize("path", SURVEYS, ids=lambda path: path.stem)
def test_a_default_is_an_answer_that_awx_takes(path):
    for question in questions(path):
        default = question["default"]
        if question["type"] == "multiplechoice":
            assert default in question["choices"]
        else:
            assert question["min"] <= len(default) <= question["max"]


def test_the_survey_of_symptoms_has_all_of_them():
    (question,) = questions(FOLDER / "surveys" / "diagnose.json")
    assert question["choices"] == sorted(symptoms.SYMPTOMS)


def test_templates_name_playbooks_and_surveys_that_exist():
    names = [template["name"] for template in TEMPLATES]
    assert len(set(names)) == len(names)
    for template in TEMPLATES:
        assert (FOLDER / template["playbook"]).is_file()
        if "survey" in template:
            assert FOLDER / "surveys" / f"{template['survey']}.json" in SURVEYS
    assert {template.get("survey") for template in TEMPLATES} - {None} == {
        path.stem for path in SURVEYS
    }


def test_only_a_template_that_says_so_repairs():
    repairs = [
        template["name"]
        for template in TEMPLATES
        if template["playbook"] == "repair.yml" and template.get("job_type", "run") == "run"
    ]
    assert repairs == ["kubemend: repair"]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yml")), ids=lambda path: path.stem)
def test_a_playbook_imports_one_that_exists(path):
    for play in yaml.safe_load(path.read_text(encoding="utf-8")):
        imported = play.get("ansible.builtin.import_playbook")
        if imported is not None:
            name = imported.removeprefix("kubemend.remediation.").replace(
                "{{ symptom }}", next(iter(symptoms.SYMPTOMS))
            )
            assert (ROOT / "playbooks" / f"{name}.yml").is_file()


def test_a_symptom_of_the_survey_chooses_the_playbook(operator):
    done = operator.run(str(FOLDER / "diagnose.yml"), "-e", f"{SYMPTOM}=node_unreachable")
    assert done.rc == 0, done.output
    assert done.report()["symptom"]["name"] == "node_unreachable"
