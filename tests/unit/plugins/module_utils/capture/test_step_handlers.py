# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every level that a capture raised is restored by one step."""

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.capture import (
    level_window,
    step_handlers,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    level_target,
    raised_levels,
)


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> "dict[str, Any]":
    """Return what restore says of each run that raised a level."""
    answers = {}  # type: dict[str, Any]
    monkeypatch.setattr(level_target, "raised", lambda _root: [{"run_id": "r1"}])
    monkeypatch.setattr(journal, "run_ids", lambda _root: ["r1", "r2", "r3", "r4"])
    monkeypatch.setattr(raised_levels, "restorable_records", lambda run_id, _root: run_id == "r2")
    monkeypatch.setattr(
        raised_levels, "edited", lambda run_id, _root: [({}, (run_id == "r3", "by hand"))]
    )
    monkeypatch.setattr(level_window, "restore", lambda params: answers[params["run_id"]])
    return answers


def target(state: str, reason: str = "") -> "dict[str, Any]":
    return {"targets": [{"state": state, "reason": reason}], "error": None}


def test_runs_by_the_api_and_by_a_restart_are_restored(restored: "dict[str, Any]") -> None:
    restored.update(r1=target(level_window.RESTORED), r2=target(level_window.RESTORED))
    restored["r3"] = {"targets": [], "error": None}
    assert step_handlers.RestoreVerbosity().restore_all("r9", "/root", []) == (
        step_kinds.DONE,
        "",
        True,
    )


def test_each_reason_of_a_level_that_is_left_is_said(restored: "dict[str, Any]") -> None:
    restored["r1"] = {"targets": [], "error": "the lock is held"}
    restored["r2"] = target("failed", "it does not answer")
    restored["r3"] = target(level_window.RESTORED)
    assert step_handlers.RestoreVerbosity().restore_all("r9", "/root", []) == (
        step_kinds.FAILED,
        "the lock is held; it does not answer",
        True,
    )
