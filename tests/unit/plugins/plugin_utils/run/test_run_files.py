# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a repairing run comes to: by its steps, then by what evidence says afterwards."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    result as model_result,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    run_files,
)
from tests.unit.support.facts import facts

STEPS = (
    Step(
        "01-m2-x",
        "m2",
        "KM101",
        "edit_manifest",
        2,
        "/a",
        cluster="k",
        allowed=True,
        change={"splices": [[1, 2, "", ""]]},
    ),
    Step("02-m3-x", "m3", "KM101", "edit_manifest", 2, "/a", cluster="k", allowed=True),
    Step("03-m1-y", "m1", "KM109", "move_out", 2, "/b", cluster="k", blocked_by="beyond doubt"),
)
CLEAR = model_result.Result(
    verdicts=(
        model_result.Verdict("KM101", "k", "clear"),
        model_result.Verdict("KM113", "k", "present"),
    )
)
PRESENT = model_result.Result(
    verdicts=(model_result.Verdict("KM101", "k", "present"),),
    findings=(model_result.Finding("KM101", "critical", "k", "m3", "kube-scheduler", "off"),),
)
UNKNOWN = model_result.Result(
    verdicts=(
        model_result.Verdict(
            "KM101", "k", "unknown", missing=(model_result.Missing("m1", "host", "unreachable"),)
        ),
    )
)
DONE = [{"id": "01-m2-x", "state": "done"}, {"id": "02-m3-x", "state": "done"}]


def test_a_plan_is_read_as_it_was_written(tmp_path):
    (tmp_path / "plan.json").write_text(
        run_files.plan_text("r", {"max_risk": 2}, STEPS), encoding="utf-8"
    )
    assert run_files.read_plan(str(tmp_path)) == STEPS


def test_a_line_that_a_kill_cut_is_passed_over(tmp_path):
    assert run_files.read_steps(str(tmp_path)) == ()
    (tmp_path / "steps.jsonl").write_text(
        json.dumps(DONE[0]) + "\n" + json.dumps(DONE[1])[:20], encoding="utf-8"
    )
    assert [step["id"] for step in run_files.read_steps(str(tmp_path))] == ["01-m2-x"]


@pytest.mark.parametrize(
    ("steps", "after", "reason", "words"),
    [
        (DONE, CLEAR, "ok", ""),
        (DONE, PRESENT, "failed", "KM101 is still present because of m3"),
        (DONE, UNKNOWN, "failed", "KM101 is still unknown because of m1"),
        (DONE[:1], CLEAR, "failed", "02-m3-x on m3 is failed: it was not begun"),
        (
            [DONE[0], {"id": "02-m3-x", "state": "rolled_back", "reason": "no new process"}],
            CLEAR,
            "failed",
            "rolled_back: no new",
        ),
        (
            [{"id": "01-m2-x", "state": "refused", "reason": "image gone"}],
            CLEAR,
            "refused",
            "01-m2-x on m2 is refused: image gone",
        ),
    ],
)
def test_outcome(steps, after, reason, words):
    code, found, sentence = run_files.outcome(STEPS[:2], steps, after)
    assert (code, found) == (0 if reason == "ok" else 2, reason)
    assert words in sentence


def test_a_fault_that_is_left_because_its_step_was_blocked_is_no_success():
    code, reason, sentence = run_files.outcome(STEPS, DONE, CLEAR)
    assert (code, reason) == (
        2,
        "refused",
    )
    assert "03-m1-y on m1 was not done: beyond doubt" in sentence
    asks = replace(STEPS[2], blocked_by="risk 2 needs kubemend_max_risk=2 (it is 1)")
    assert run_files.withheld([asks]) is None
    assert run_files.outcome([*STEPS[:2], asks], DONE, CLEAR)[0] == 0


def test_what_is_left_because_its_step_was_refused_is_said_with_the_reason():
    plan = (STEPS[0], replace(STEPS[1], allowed=False, blocked_by="pending changes"))
    code, reason, sentence = run_files.outcome(plan, DONE[:1], PRESENT)
    assert (code, reason) == (2, "refused")
    facts(sentence, "02-m3-x", "m3", "pending changes", "KM101", "m3")


def test_a_fault_of_another_cluster_says_nothing_of_this_one():
    other = model_result.Result(
        verdicts=(*CLEAR.verdicts, model_result.Verdict("KM101", "other", "present")),
        findings=(
            model_result.Finding("KM101", "critical", "other", "o1", "kube-scheduler", "off"),
        ),
    )
    assert run_files.outcome(STEPS[:2], DONE, other) == (0, "ok", "")
    # As it is judged now: an API server that answers again may have told that two keys are one
    # cluster.
    joined = replace(PRESENT, hosts=(model_result.HostRow("m2", "m2", "k", "control_plane", "ok"),))
    assert (
        run_files.outcome([replace(step, cluster="former") for step in STEPS[:2]], DONE, joined)[1]
        == "failed"
    )


@pytest.mark.parametrize(
    ("verdict", "host", "reason"),
    [("unknown", "w2", "ok"), ("present", "w2", "failed"), ("unknown", "w1", "failed")],
)
def test_a_silent_host_that_nothing_was_done_for_does_not_fail_the_repair_of_another(
    verdict, host, reason
):
    missing = (model_result.Missing(host, "host", "unreachable"),)
    after = model_result.Result(
        verdicts=(model_result.Verdict("KM401", "k", verdict, host, missing=missing),),
        hosts=(model_result.HostRow("w1", "node-1", "k", "worker", "ok"),),
    )
    for step in (
        Step("01-w1-z", "w1", "KM401", "sysctl", 1, "x", cluster="k", allowed=True),
        Step("01-w1-z", "m1", "KM401", "patch", 1, "x", node="node-1", cluster="k", allowed=True),
    ):
        assert run_files.outcome([step], [{"id": "01-w1-z", "state": "done"}], after)[1] == reason


def test_a_step_without_a_result_is_failed(tmp_path):
    assert (
        "02-m3-x on m3 is failed: it was begun, and its end is not known"
        in run_files.outcome(STEPS, DONE[:1], CLEAR, "02-m3-x")[2]
    )
    assert run_files.begun(str(tmp_path)) is None
    assert not run_files.unsettled(str(tmp_path))
    (tmp_path / "steps.jsonl").write_text(json.dumps(DONE[0]) + "\n", encoding="utf-8")
    assert not run_files.unsettled(str(tmp_path))
    (tmp_path / "step.begun").write_text("02-m3-x\n", encoding="utf-8")
    assert run_files.begun(str(tmp_path)) == "02-m3-x"
    assert run_files.unsettled(str(tmp_path))
    (tmp_path / "step.begun").unlink()
    (tmp_path / "steps.jsonl").write_text(
        json.dumps({"id": "x", "state": "failed", "lost": True}) + "\n", encoding="utf-8"
    )
    assert run_files.unsettled(str(tmp_path))
