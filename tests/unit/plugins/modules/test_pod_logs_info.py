# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module of components' logs: what it hands on and packs, and which defaults it has."""

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.action.pod_logs_info import ActionModule
from ansible_collections.kubemend.remediation.plugins.module_utils.logs import (
    components as log_components,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import argument_specs
from ansible_collections.kubemend.remediation.plugins.modules import pod_logs_info
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program
from tests.unit.support import fake_module

DOCUMENT = {"lines": ["x"], "truncated": False}


@pytest.fixture
def read(monkeypatch):
    entry = fake_module.Entry(DOCUMENT)
    monkeypatch.setattr(pod_logs_info.log_components, "read", entry)
    return entry


@pytest.mark.parametrize("check_mode", [False, True])
def test_logs_are_read_in_check_mode_too_and_nothing_changes(monkeypatch, read, check_mode):
    ended = fake_module.run(
        monkeypatch, pod_logs_info, check_mode, components=["kubelet"], seconds_back=5, match="x"
    )
    (params,) = read.calls
    assert (params["components"], params["seconds_back"], params["match"]) == (
        ["kubelet"],
        5.0,
        "x",
    )
    assert ended.result == {"changed": False, "document": DOCUMENT}


def test_what_its_defaults_ask_for_can_be_read(monkeypatch, read):
    fake_module.run(monkeypatch, pod_logs_info)
    assert log_components.refusal(read.calls[0]) is None


def test_a_component_that_has_no_logs_is_refused(monkeypatch, read):
    assert fake_module.run(monkeypatch, pod_logs_info, components=["etcd"]).has_failed
    assert read.calls == []


def test_every_option_of_the_action_and_of_a_document_is_one_of_the_module(monkeypatch):
    options = fake_module.argument_spec(monkeypatch, pod_logs_info)
    assert options == dict(argument_specs.DOCUMENT, **ActionModule.SPEC)


def test_the_documentation_has_the_same_defaults():
    documented = {
        name: option.get("default")
        for name, option in yaml.safe_load(pod_logs_info.DOCUMENTATION)["options"].items()
    }
    spec = {name: option.get("default") for name, option in ActionModule.SPEC.items()}
    assert documented == dict(spec, evidence_dir=None, timeout=log_components.DEFAULTS["timeout"])


def test_it_packs_what_the_program_of_the_action_ships():
    program = node_program._sources(ActionModule.ENTRY.partition(":")[0], ActionModule.SHIP)
    packed = node_program._sources("plugins.modules.pod_logs_info", ())
    assert set(program) - set(packed) == set()
