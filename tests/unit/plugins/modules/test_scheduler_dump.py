# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module of a scheduler's cache: which states it takes, and when it sends the signal."""

import pytest

from ansible_collections.kubemend.remediation.plugins.action.scheduler_dump import ActionModule
from ansible_collections.kubemend.remediation.plugins.modules import scheduler_dump
from tests.unit.support import fake_module

OPTIONS = {"report_dir": "/r", "run_id": "r1"}
PROCESS = {"pid": 7}
OF_NODE = ("ready", "dumped")
STATES = ActionModule.SPEC["state"]["choices"]


@pytest.fixture
def dump(monkeypatch):
    entry = fake_module.Entry({"sent": True})
    monkeypatch.setattr(scheduler_dump.scheduler_dump, "run", entry)
    return entry


@pytest.mark.parametrize("state", OF_NODE)
def test_a_state_of_the_node_is_handed_on_and_changes_nothing(monkeypatch, dump, state):
    ended = fake_module.run(monkeypatch, scheduler_dump, state=state, process=PROCESS, **OPTIONS)
    (params,) = dump.calls
    assert (params["state"], params["process"]) == (state, PROCESS)
    assert ended.result == {"changed": False, "document": {"sent": True}}


@pytest.mark.parametrize("state", STATES)
def test_a_state_of_the_controller_or_without_a_process_is_refused(monkeypatch, dump, state):
    process = {} if state in OF_NODE else {"process": PROCESS}
    ended = fake_module.run(monkeypatch, scheduler_dump, state=state, **process, **OPTIONS)
    assert ended.has_failed
    assert state in ended.result["msg"]
    assert dump.calls == []


def test_check_mode_sends_no_signal(monkeypatch, dump):
    given = dict(OPTIONS, process=PROCESS)
    ended = fake_module.run(monkeypatch, scheduler_dump, True, state="dumped", **given)
    assert dump.calls == []
    assert (ended.result["changed"], ended.result["document"]["sent"]) == (False, False)
    fake_module.run(monkeypatch, scheduler_dump, True, state="ready", **given)
    assert [params["state"] for params in dump.calls] == ["ready"]


def test_every_option_of_the_action_is_one_of_the_module(monkeypatch):
    options = fake_module.argument_spec(monkeypatch, scheduler_dump)
    assert {name: options.get(name) for name in ActionModule.SPEC} == ActionModule.SPEC
