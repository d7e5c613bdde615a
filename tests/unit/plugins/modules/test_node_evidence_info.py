# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module of a node's evidence: what it hands on and packs."""

import pytest

from ansible_collections.kubemend.remediation.plugins.action.node_evidence_info import ActionModule
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import registry
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import argument_specs
from ansible_collections.kubemend.remediation.plugins.modules import node_evidence_info
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program
from tests.unit.support import fake_module

DOCUMENT = {"collectors": {"system": {"status": "ok", "data": {}}}}


@pytest.mark.parametrize("check_mode", [False, True])
def test_the_collectors_run_in_check_mode_too_and_change_nothing(monkeypatch, check_mode):
    gather = fake_module.Entry(DOCUMENT)
    monkeypatch.setattr(node_evidence_info.runner, "gather", gather)
    ended = fake_module.run(
        monkeypatch, node_evidence_info, check_mode, collectors=["system"], deep=True, timeout=7
    )
    (params,) = gather.calls
    assert (params["collectors"], params["deep"], params["timeout"]) == (["system"], True, 7)
    assert ended.result == {"changed": False, "document": DOCUMENT}


def test_every_option_of_the_action_and_of_a_document_is_one_of_the_module(monkeypatch):
    options = fake_module.argument_spec(monkeypatch, node_evidence_info)
    assert options == dict(argument_specs.DOCUMENT, **ActionModule.SPEC)


def test_the_packer_of_ansible_sees_every_collector():
    """Where it is no program on standard input, Ansible packs what the module imports."""
    shipped = [module.__name__.rpartition(".")[2] for module in node_evidence_info.SHIPPED]
    assert sorted(shipped) == sorted(registry.BY_NAME)


def test_it_packs_what_the_program_of_the_action_ships():
    program = node_program._sources(ActionModule.ENTRY.partition(":")[0], ActionModule.SHIP)
    packed = node_program._sources("plugins.modules.node_evidence_info", ())
    assert set(program) - set(packed) == set()
