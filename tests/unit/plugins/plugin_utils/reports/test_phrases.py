# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Phrases that several reports share."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    Missing,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    phrases,
)

KEY = "0123456789abcdef"


def test_what_no_host_of_the_run_is_reads_as_that():
    assert (
        phrases.join_missing([Missing("w1", "inventory", "absent")]) == "w1 (no host of this run)"
    )
    assert "absent" not in phrases.join_missing(
        [Missing(phrases.CONTROL_PLANE, "inventory", "absent")]
    )


def test_a_replay_asks_for_no_consent():
    step = Step(
        "01-x", "w1", "KM101", "edit", 2, "t", blocked_by="risk 2 needs -e kubemend_max_risk=2"
    )
    assert phrases.state_of(step, None, "replay") == ("not done", phrases.OBSERVES["replay"])
    assert phrases.state_of(step, None, "observe") == ("not done", step.blocked_by)
    blocked = replace(step, blocked_by="risk 4 is never automatic: do this by hand")
    assert phrases.state_of(blocked, None, "replay") == ("not done", blocked.blocked_by)


def test_a_plan_that_only_needs_another_playbook_says_so():
    step = Step("01-x", "w1", "KM101", "edit", 2, "t", cluster=KEY, allowed=True)
    for mode in ("observe", "replay"):
        state, why = phrases.state_of(step, None, mode)
        assert state == "not done"
        assert "kubemend.remediation.remediate" in why
    assert phrases.state_of(step, None, "repair")[0] == "to do"
    assert phrases.state_of(step, None, "plan")[0] == "will be done"
