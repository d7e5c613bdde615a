# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup faults, alone and in a playbook."""

from __future__ import annotations

import importlib
import json

import pytest
import yaml
from ansible.errors import AnsibleLookupError

from ansible_collections.kubemend.remediation.plugins.lookup import faults
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    CATALOGUE,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    fault_catalogue,
)

PLAY = """
- hosts: localhost
  gather_facts: false
  connection: local
  tasks:
    - keep_result:
        value:
          all: "{{ query('kubemend.remediation.faults') }}"
          one: "{{ lookup('kubemend.remediation.faults', 'KM101') }}"
        path: "{{ lookup('env', 'RESULT') }}"
"""


@pytest.fixture
def look(monkeypatch):
    lookup = faults.LookupModule()
    monkeypatch.setattr(lookup, "set_options", lambda **_more: None)
    return lookup.run


@pytest.mark.parametrize(
    ("terms", "codes"),
    [
        ([], list(CATALOGUE)),
        (["KM101"], ["KM101"]),
        (["KM502", "KM101", "KM10[1]"], ["KM101", "KM502"]),
        (["KM4*"], [code for code in CATALOGUE if code.startswith("KM4")]),
    ],
)
def test_terms_choose_faults_each_once(look, terms, codes):
    assert [row["code"] for row in look(terms)] == codes


@pytest.mark.parametrize(("term", "near"), [("KM101x", "KM101"), ("km502", "KM502")])
def test_a_code_that_does_not_exist_names_the_nearest_one(look, term, near):
    with pytest.raises(AnsibleLookupError, match=near):
        look([term])


def test_every_field_is_documented():
    module = importlib.import_module(faults.__name__)
    fields = yaml.safe_load(module.RETURN)["_list"]["contains"]
    assert set(fields) == set(fault_catalogue.rows(["KM101"])[0])


def test_a_playbook_gets_the_catalogue(operator):
    operator.write("play.yml", PLAY)
    path = operator.folder / "result.json"
    done = operator.run(
        str(operator.folder / "play.yml"),
        inventory=None,
        report_dir=None,
        env={"RESULT": str(path)},
    )
    assert done.rc == 0, done.output
    result = json.loads(path.read_text(encoding="utf-8"))
    assert result["all"] == fault_catalogue.rows()
    assert result["one"] == fault_catalogue.rows(["KM101"])[0]
