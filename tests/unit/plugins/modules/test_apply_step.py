# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module of a step: what it demands, hands on and packs."""

import pytest

from ansible_collections.kubemend.remediation.plugins.action.apply_step import ActionModule
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    argument_specs,
    step_kinds,
)
from ansible_collections.kubemend.remediation.plugins.modules import apply_step
from tests.unit.support import fake_module

WITH_HANDLER = [kind for kind in step_kinds.KINDS.values() if kind.handler]
STEP = {"id": "01-m1", "remedy": "edit_manifest"}
OPTIONS = {"id": "01-m1", "report_dir": "/r", "run_id": "r1", "step": STEP}
DONE = {"state": "done", "changed": True}


@pytest.fixture
def executor(monkeypatch):
    entry = fake_module.Entry(DONE)
    monkeypatch.setattr(apply_step.executor, "run", entry)
    return entry


@pytest.mark.parametrize(
    ("check_mode", "check", "expected"),
    [(False, False, False), (True, False, True), (False, True, True)],
)
def test_the_step_is_handed_on_with_the_check_mode(
    monkeypatch, executor, check_mode, check, expected
):
    ended = fake_module.run(monkeypatch, apply_step, check_mode, check=check, patience=5, **OPTIONS)
    (params,) = executor.calls
    assert (params["step"], params["run_id"], params["patience"]) == (STEP, "r1", 5.0)
    assert params["check"] is expected
    assert ended.result == {"changed": True, "document": DONE}


def test_a_step_that_changed_nothing(monkeypatch, executor):
    executor.answer = {"state": "refused", "changed": False}
    ended = fake_module.run(monkeypatch, apply_step, **OPTIONS)
    assert ended.result == {"changed": False, "document": executor.answer}


@pytest.mark.parametrize("missing", ["step", "run_id"])
def test_without_what_its_action_gives_it_nothing_is_done(monkeypatch, executor, missing):
    options = {name: value for name, value in OPTIONS.items() if name != missing}
    ended = fake_module.run(monkeypatch, apply_step, **options)
    assert ended.has_failed
    assert "action" in ended.result["msg"]
    assert executor.calls == []


def test_every_option_of_the_action_and_of_a_step_is_one_of_the_module(monkeypatch):
    options = fake_module.argument_spec(monkeypatch, apply_step)
    assert options == dict(argument_specs.STEP_OF_ACTION, **ActionModule.SPEC)
