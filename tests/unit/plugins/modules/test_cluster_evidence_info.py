# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module of a cluster's evidence: what it hands on and packs, and what is documented."""

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.action.cluster_evidence_info import (
    ActionModule,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    argument_specs,
    collector_names,
)
from ansible_collections.kubemend.remediation.plugins.modules import cluster_evidence_info
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program
from tests.unit.support import fake_module

DOCUMENT = {"status": "ok", "collectors": {}}


@pytest.mark.parametrize("check_mode", [False, True])
def test_the_collector_runs_in_check_mode_too_and_changes_nothing(monkeypatch, check_mode):
    collect = fake_module.Entry(DOCUMENT)
    monkeypatch.setattr(cluster_evidence_info, "collect", collect)
    ended = fake_module.run(
        monkeypatch,
        cluster_evidence_info,
        check_mode,
        collectors=["nodes"],
        skip_clusters=["k1"],
        timeout=7,
    )
    (params,) = collect.calls
    assert (params["collectors"], params["skip_clusters"]) == (["nodes"], ["k1"])
    assert (params["timeout"], params["deep"]) == (7, False)
    assert ended.result == {"changed": False, "document": DOCUMENT}


def test_a_collector_that_nobody_knows_is_refused(monkeypatch):
    collect = fake_module.Entry(DOCUMENT)
    monkeypatch.setattr(cluster_evidence_info, "collect", collect)
    ended = fake_module.run(monkeypatch, cluster_evidence_info, collectors=["pods"])
    assert ended.has_failed
    assert collect.calls == []


def test_every_option_of_the_action_and_of_a_document_is_one_of_the_module(monkeypatch):
    options = fake_module.argument_spec(monkeypatch, cluster_evidence_info)
    assert options == dict(argument_specs.DOCUMENT, **ActionModule.SPEC)


def test_the_documentation_lists_the_collectors_of_the_api():
    options = yaml.safe_load(cluster_evidence_info.DOCUMENTATION)["options"]
    assert options["collectors"]["choices"] == list(collector_names.CLUSTER)


def test_it_packs_what_the_program_of_the_action_ships():
    program = node_program._sources(ActionModule.ENTRY.partition(":")[0], ActionModule.SHIP)
    packed = node_program._sources("plugins.modules.cluster_evidence_info", ())
    assert set(program) - set(packed) == set()
