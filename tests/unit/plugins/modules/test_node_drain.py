# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module of a drain: what it demands, hands on and packs."""

import pytest

from ansible_collections.kubemend.remediation.plugins.action.node_drain import (
    REMEDIES,
    ActionModule,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import argument_specs
from ansible_collections.kubemend.remediation.plugins.modules import node_drain
from tests.unit.support import fake_module

STEP = {"id": "drain", "remedy": "drain"}
OPTIONS = {"name": "w1", "run_id": "r1", "step": STEP}
DONE = {"state": "done", "changed": True}


@pytest.fixture
def executor(monkeypatch):
    entry = fake_module.Entry(DONE)
    monkeypatch.setattr(node_drain.executor, "run", entry)
    return entry


@pytest.mark.parametrize(
    ("check_mode", "check", "expected"),
    [(False, False, False), (True, False, True), (False, True, True)],
)
def test_the_step_is_handed_on_with_the_check_mode(
    monkeypatch, executor, check_mode, check, expected
):
    ended = fake_module.run(monkeypatch, node_drain, check_mode, check=check, **OPTIONS)
    (params,) = executor.calls
    assert (params["step"], params["run_id"], params["check"]) == (STEP, "r1", expected)
    assert ended.result == {"changed": True, "document": DONE}


def test_a_drain_that_is_refused_changed_nothing(monkeypatch, executor):
    executor.answer = {"state": "refused", "changed": False}
    ended = fake_module.run(monkeypatch, node_drain, **OPTIONS)
    assert ended.result == {"changed": False, "document": executor.answer}


@pytest.mark.parametrize("missing", ["step", "run_id"])
def test_without_what_its_action_gives_it_nothing_is_done(monkeypatch, executor, missing):
    options = {name: value for name, value in OPTIONS.items() if name != missing}
    ended = fake_module.run(monkeypatch, node_drain, **options)
    assert ended.has_failed
    assert "action" in ended.result["msg"]
    assert executor.calls == []


@pytest.mark.parametrize("options", [{"state": "deleted"}, {"allow": ["force_reset"]}])
def test_a_value_that_no_drain_knows_is_refused(monkeypatch, executor, options):
    assert fake_module.run(monkeypatch, node_drain, **dict(OPTIONS, **options)).has_failed
    assert executor.calls == []


def test_every_option_of_the_action_and_of_a_step_is_one_of_the_module(monkeypatch):
    options = fake_module.argument_spec(monkeypatch, node_drain)
    assert options == dict(argument_specs.STEP_OF_ACTION, **ActionModule.SPEC)


def test_each_state_has_a_kind_of_step():
    states = argument_specs.NODE_DRAIN["state"]["choices"]
    assert set(states) == set(REMEDIES)
