# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module of a revert: which states it takes, and what it packs."""

import pytest

from ansible_collections.kubemend.remediation.plugins.action.revert_run import ActionModule
from ansible_collections.kubemend.remediation.plugins.modules import revert_run
from tests.unit.support import fake_module

OPTIONS = {"report_dir": "/r", "run_id": "r2", "reverts": "r1"}


@pytest.fixture
def revert(monkeypatch):
    entry = fake_module.Entry({"runs": []})
    monkeypatch.setattr(revert_run.revert_run, "run", entry)
    return entry


@pytest.mark.parametrize("check_mode", [False, True])
def test_runs_are_listed_in_check_mode_too(monkeypatch, revert, check_mode):
    ended = fake_module.run(monkeypatch, revert_run, check_mode, **OPTIONS)
    (params,) = revert.calls
    assert (params["state"], params["reverts"], params["host"]) == ("listed", "r1", None)
    assert ended.result == {"changed": False, "document": {"runs": []}}


@pytest.mark.parametrize("changed", [True, False])
def test_a_run_is_taken_back_for_the_host_that_the_action_names(monkeypatch, revert, changed):
    revert.answer = {"paths": [], "changed": changed}
    ended = fake_module.run(
        monkeypatch,
        revert_run,
        state="reverted",
        host="w1",
        lock={"seconds": 60},
        allow=["fenced"],
        **OPTIONS,
    )
    (params,) = revert.calls
    assert (params["host"], params["lock"], params["allow"]) == ("w1", {"seconds": 60}, ["fenced"])
    assert ended.result == {"changed": changed, "document": revert.answer}


@pytest.mark.parametrize(
    ("state", "host", "check_mode"),
    [
        ("chosen", "w1", False),
        ("reported", "w1", False),
        ("reverted", None, False),
        ("reverted", "w1", True),
    ],
)
def test_what_its_action_does_or_keeps_from_it_is_refused(
    monkeypatch, revert, state, host, check_mode
):
    given = dict(OPTIONS, state=state, **({"host": host} if host else {}))
    ended = fake_module.run(monkeypatch, revert_run, check_mode, **given)
    assert ended.has_failed
    assert "action" in ended.result["msg"]
    assert revert.calls == []


def test_every_option_of_the_action_is_one_of_the_module(monkeypatch):
    options = fake_module.argument_spec(monkeypatch, revert_run)
    assert {name: options.get(name) for name in ActionModule.SPEC} == ActionModule.SPEC
