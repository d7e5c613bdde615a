# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which check proved a finished step."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    result as model_result,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import (
    CLEAN_UP,
    Step,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import verification

READ = "2026-11-28T14:03:12Z"


def step(**more):
    return Step("01-x", "m2", "KM101", more.pop("remedy", "manifest"), 2, "a file", **more)


def verdict(name, host=None, code="KM101", component=None):
    return model_result.Verdict(code, "c", name, host, component)


def finding(host, code="KM101"):
    return model_result.Finding(code, "critical", "c", host, None, "x")


def checks(planned, verdicts, findings=(), state="done"):
    after = model_result.Result(verdicts=tuple(verdicts), findings=tuple(findings))
    rows = [{"id": "01-x", "state": state, "reason": "it runs"}]
    (row,) = verification.with_checks([planned], rows, after, lambda host: READ)
    return row


@pytest.mark.parametrize("name", ["clear", "present", "unknown", "not_applicable"])
def test_a_finished_step_has_what_was_found_of_its_fault(name):
    row = checks(step(), [verdict(name, "m2"), verdict("clear", "m2", "KM102")])
    assert row["verified"] == [{"code": "KM101", "verdict": name, "at": READ}]
    assert row["reason"] == "it runs"


def test_each_fault_that_asked_for_the_step_has_its_check():
    found = checks(
        step(also=("KM102",)), [verdict("clear", "m2"), verdict("present", code="KM102")]
    )
    assert [(row["code"], row["verdict"]) for row in found["verified"]] == [
        ("KM101", "clear"),
        ("KM102", "present"),
    ]


def test_the_worst_answer_of_its_places_counts():
    row = checks(step(), [verdict("clear", "m2"), verdict("unknown"), verdict("present", "m3")])
    assert row["verified"][0]["verdict"] == "unknown"


def test_a_fault_that_is_left_on_another_host_is_gone_from_this_one():
    row = checks(step(), [verdict("present")], [finding("m3")])
    assert row["verified"][0]["verdict"] == "clear"
    row = checks(step(), [verdict("present")], [finding("m3"), finding("m2")])
    assert row["verified"][0]["verdict"] == "present"


def test_of_another_component_nothing_is_taken():
    parts = [
        verdict("present", "m2", component="kube-scheduler"),
        verdict("clear", "m2", component="etcd"),
    ]
    assert checks(step(component="etcd"), parts)["verified"][0]["verdict"] == "clear"


def test_a_fault_that_was_not_evaluated_again_is_not_judged():
    assert checks(step(), [])["verified"][0]["verdict"] == "not_judged"


@pytest.mark.parametrize(
    "own", [{"remedy": step_kinds.PROBE}, {"remedy": CLEAN_UP}, {"expect": {"later": True}}]
)
def test_a_step_that_verifies_itself_has_no_check(own):
    assert "verified" not in checks(step(**own), [verdict("clear", "m2")])


@pytest.mark.parametrize("state", ["failed", "refused", "rolled_back"])
def test_a_step_that_is_not_done_has_no_check(state):
    assert "verified" not in checks(step(), [verdict("clear", "m2")], state=state)
