# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of the action that asks all hosts."""

from __future__ import annotations

import yaml

from ansible_collections.kubemend.remediation.plugins.action.fleet_evidence_info import SPEC
from ansible_collections.kubemend.remediation.plugins.doc_fragments import collectors
from ansible_collections.kubemend.remediation.plugins.modules import fleet_evidence_info


def test_the_options_are_those_of_the_action() -> None:
    shared = yaml.safe_load(collectors.ModuleDocFragment.DOCUMENTATION)["options"]
    documented = {**shared, **yaml.safe_load(fleet_evidence_info.DOCUMENTATION)["options"]}
    assert set(documented) == set(SPEC)
    for name, option in SPEC.items():
        assert documented[name]["type"] == option["type"]
        assert documented[name].get("default") == option.get("default")
        assert documented[name].get("choices") == option.get("choices")
        assert documented[name].get("required", False) == option.get("required", False)


def test_the_example_and_the_results_are_yaml() -> None:
    assert yaml.safe_load(fleet_evidence_info.EXAMPLES)
    assert {"hosts", "broken", "workers", "left"} == set(yaml.safe_load(fleet_evidence_info.RETURN))
