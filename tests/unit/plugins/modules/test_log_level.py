# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module of raised log levels: which states it takes, and what it packs."""

import pytest

from ansible_collections.kubemend.remediation.plugins.action.log_level import ActionModule
from ansible_collections.kubemend.remediation.plugins.modules import log_level
from tests.unit.support import fake_module

OPTIONS = {"report_dir": "/r", "run_id": "r1", "targets": [{"real": "level:kubelet/w1"}]}
STATES = ActionModule.SPEC["state"]["choices"]
OF_NODE = ("probed", "raised", "restored")


@pytest.fixture
def levels(monkeypatch):
    entry = fake_module.Entry({"targets": []})
    monkeypatch.setattr(log_level.level_window, "run", entry)
    return entry


@pytest.mark.parametrize("state", OF_NODE)
def test_a_state_of_the_node_is_handed_on(monkeypatch, levels, state):
    ended = fake_module.run(monkeypatch, log_level, state=state, halt="w0", **OPTIONS)
    (params,) = levels.calls
    assert (params["state"], params["targets"], params["halt"]) == (
        state,
        OPTIONS["targets"],
        "w0",
    )
    assert ended.result == {"changed": False, "document": {"targets": []}}


@pytest.mark.parametrize("state", [state for state in STATES if state not in OF_NODE])
def test_a_state_of_the_controller_is_refused(monkeypatch, levels, state):
    ended = fake_module.run(monkeypatch, log_level, state=state, **OPTIONS)
    assert ended.has_failed
    assert state in ended.result["msg"]
    assert levels.calls == []


@pytest.mark.parametrize(("state", "count"), [("probed", 1), ("raised", 0), ("restored", 0)])
def test_check_mode_looks_and_writes_nothing(monkeypatch, levels, state, count):
    ended = fake_module.run(monkeypatch, log_level, check_mode=True, state=state, **OPTIONS)
    assert len(levels.calls) == count
    assert ended.result == {"changed": False, "document": {"targets": []}}


@pytest.mark.parametrize(
    ("states", "changed"),
    [
        (["raised"], True),
        (["refused", "restored"], True),
        (["refused", "absent"], False),
        ([None], False),
    ],
)
def test_it_changed_something_where_a_level_is_another_one(monkeypatch, levels, states, changed):
    levels.answer = {"targets": [{"state": state} if state else {} for state in states]}
    ended = fake_module.run(monkeypatch, log_level, state="raised", **OPTIONS)
    assert ended.result == {"changed": changed, "document": levels.answer}


def test_every_option_of_the_action_is_one_of_the_module(monkeypatch):
    options = fake_module.argument_spec(monkeypatch, log_level)
    assert {name: options.get(name) for name in ActionModule.SPEC} == ActionModule.SPEC
