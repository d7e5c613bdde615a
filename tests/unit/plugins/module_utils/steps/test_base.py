# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The frame around a step: recorded before it writes, and each end recorded once."""

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import journal_entry
from ansible_collections.kubemend.remediation.plugins.module_utils.shared.errors import (
    PreconditionFailed,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import step_record
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import base

RUN = "20261121T090000Z-1a2b3c"


class Handler(base.StepHandler):
    """A step that fails where a test wants it to."""

    def __init__(self, **wrong: Any) -> None:
        self.wrong = wrong
        self.calls = []  # type: list[str]

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if isinstance(self.wrong.get(name), Exception):
            raise self.wrong[name]

    def check(self, step: Any) -> "dict[str, Any]":
        self._call("check")
        return {"component": "kubelet"}

    def apply(self, step: Any, record: Any) -> str:
        self._call("apply")
        return "former"

    def verify(self, _step: Any, _record: Any) -> Any:
        self._call("verify")
        return self.wrong.get("reason")

    def explain_unwritten(self, step: Any, error: Any) -> str:
        return f"not written: {error}"

    def describe(self, _step: Any, _record: Any, applied: Any) -> "dict[str, Any]":
        return {"applied": applied}

    def roll_back(self, _step: Any, _record: Any, applied: Any, reason: str) -> Any:
        self._call("roll_back")
        return step_record.ROLLED_BACK, reason + ", undone", {"applied": applied}


@pytest.fixture
def step(tmp_path: Path) -> base.Step:
    context = journal_entry.StepContext(RUN, "01-x", "what", "why", root=str(tmp_path / "own"))
    plan = {"remedy": "edit_config", "change": {"path": "/etc/a"}}
    return base.Step(context, plan, "m1")


def recorded(step: base.Step) -> Any:
    return step_record.read(RUN, "01-x", step.context.root)


def test_a_step_that_is_verified(step: base.Step) -> None:
    handler = Handler()
    state, _reason, seen = handler.run(step)
    assert (state, seen) == (step_record.PROVEN, {"applied": "former"})
    assert handler.calls == ["check", "apply", "verify"]
    record = recorded(step)
    assert (record["state"], record["component"], record["path"], record["host"]) == (
        step_record.PROVEN,
        "kubelet",
        "/etc/a",
        "m1",
    )


@pytest.mark.parametrize("error", [PreconditionFailed("swap is on"), ChangeError("swap is on")])
def test_a_step_that_is_refused_leaves_no_record(step: base.Step, error: Exception) -> None:
    handler = Handler(check=error)
    assert handler.run(step) == (step_record.NOT_DONE, "swap is on", {})
    assert handler.calls == ["check"]
    assert recorded(step) is None


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (ChangeError("full"), step_record.NOT_DONE),
        (OSError("full"), step_record.NOT_DONE),
        (ChangeError("full", changed=True), step_record.FAILED),
    ],
)
def test_a_write_that_fails_is_recorded_by_what_it_changed(
    step: base.Step, error: Exception, state: str
) -> None:
    handler = Handler(apply=error)
    assert handler.run(step)[:2] == (state, "not written: full")
    assert handler.calls == ["check", "apply"]
    assert recorded(step)["state"] == state


def test_what_is_not_verified_is_rolled_back(step: base.Step) -> None:
    handler = Handler(reason="no effect")
    state, reason, seen = handler.run(step)
    assert (state, reason, seen) == (
        step_record.ROLLED_BACK,
        "no effect, undone",
        {"applied": "former"},
    )
    assert recorded(step)["state"] == step_record.ROLLED_BACK


def test_a_step_is_begun_once(step: base.Step) -> None:
    Handler().run(step)
    handler = Handler()
    assert handler.run(step) == (step_record.FAILED, base.BEGUN_BEFORE, {})
    assert handler.calls == ["check"]
    assert recorded(step)["state"] == step_record.PROVEN


def test_the_allowed_words_come_from_the_guard(step: base.Step) -> None:
    assert step.allow == []
    plan = dict(step.plan, guard={"allow": ["fenced"]})
    assert base.Step(step.context, plan, "m1").allow == ["fenced"]
    assert base.Step(step.context, dict(step.plan, guard={"allow": None}), "m1").allow == []
