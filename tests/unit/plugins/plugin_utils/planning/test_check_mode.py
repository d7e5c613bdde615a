# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps of a plan are asked in check mode.

A step that would find what a step before it left is never asked.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import (
    check_mode,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import phrases
from tests.unit.support.facts import facts

SCHEDULER, MANAGER = "kube-scheduler", "kube-controller-manager"


def step(remedy, host="m1", component=None, node=None, allowed=True, **more):
    made = {
        "id": f"{host}-{remedy}-{node or component or more.get('target', 'x')}",
        "target": "x",
        "note": "",
        **more,
    }
    return Step(
        host=host,
        code="KM101",
        remedy=remedy,
        risk=2,
        component=component,
        node=node,
        allowed=allowed,
        **made,
    )


def names(*steps):
    return [
        f"{one.remedy} {one.node or one.component or one.host}"
        for one in check_mode.askable_steps(steps)
    ]


@pytest.mark.parametrize(
    ("steps", "asked"),
    [
        (
            [step("edit_manifest", component=MANAGER), step("edit_manifest", component=SCHEDULER)],
            [f"edit_manifest {MANAGER}", f"edit_manifest {SCHEDULER}"],
        ),
        (
            [
                step("edit_manifest", component=SCHEDULER, allowed=False),
                step("restart", component=SCHEDULER),
            ],
            [f"restart {SCHEDULER}"],
        ),
        (
            [step("move_out", component=SCHEDULER), step("edit_manifest", component=SCHEDULER)],
            [f"move_out {SCHEDULER}"],
        ),
        (
            [
                step("move_out", component=SCHEDULER),
                step("edit_manifest", "m2", component=SCHEDULER),
            ],
            [f"move_out {SCHEDULER}", f"edit_manifest {SCHEDULER}"],
        ),
        ([step("recover"), step("edit_manifest", "m2", component=SCHEDULER)], []),
        (
            [step("enable_kubelet", "w1"), step("start_kubelet", "w1")],
            ["enable_kubelet w1", "start_kubelet w1"],
        ),
        (
            [step("start_runtime", "w1", "containerd"), step("start_kubelet", "w1", "kubelet")],
            ["start_runtime containerd"],
        ),
        (
            [
                step("unmask_kubelet", "w1"),
                step("start_kubelet", "w1"),
                step("start_kubelet", "w2"),
            ],
            ["unmask_kubelet w1", "start_kubelet w2"],
        ),
        (
            [step("swap_persistence", "w1"), step("swap_off", "w1"), step("start_kubelet", "w1")],
            ["swap_persistence w1", "swap_off w1"],
        ),
        (
            [step("kernel_setting", "w1"), step("file_limit", "w1"), step("kernel_setting", "w2")],
            ["kernel_setting w1", "kernel_setting w2"],
        ),
        # a drain is counted over all nodes:
        # not after one that brings another back, but after a reset
        # of a node that takes pods again
        (
            [
                step("drain", node="w1"),
                step("reset_state", "w1", node="w1", expect={"down": False}),
                step("uncordon", node="w1"),
                step("drain", node="w2"),
            ],
            ["drain w1", "drain w2"],
        ),
        ([step("start_kubelet", "w3", node="w3"), step("drain", node="w1")], ["start_kubelet w3"]),
        (
            [step("reset_state", "w1", node="w1", expect={"down": True}), step("drain", node="w2")],
            ["reset_state w1"],
        ),
        (
            [step("start_former", "w1", node="w1"), step("start_former", "w2", node="w2")],
            ["start_former w1"],
        ),
        # what only doing it shows
        ([step("probe"), step("clean_up"), step("restore_levels"), step("restart_leader")], []),
        (
            [
                step("kubeadm_config", target="a"),
                step("kubeadm_config", target="a"),
                step("patch_workload", target="b"),
            ],
            ["kubeadm_config m1", "patch_workload m1"],
        ),
    ],
)
def test_asked(steps, asked):
    assert names(*steps) == asked


def test_no_more_than_an_operator_waits_for():
    assert (
        len(check_mode.askable_steps(step("kernel_setting", f"w{number}") for number in range(500)))
        == check_mode.MOST
    )


PLAN = (
    step("edit_manifest", component=MANAGER),
    step("drain", node="w1", note="before"),
    step("reset_state", "w1", node="w1"),
    step(
        "edit_manifest",
        "m2",
        component=SCHEDULER,
        allowed=False,
        blocked_by="risk 2 needs -e kubemend_max_risk=2",
    ),
)


def said(number, state="skipped", reason=""):
    return {
        PLAN[number].id: {
            "id": PLAN[number].id,
            "host": PLAN[number].host,
            "state": state,
            "reason": reason,
        }
    }


def test_a_refusal_is_a_step_of_the_report_and_the_end_of_the_run():
    answers = {
        **said(0, "refused", "the kubelet of m1 is not healthy"),
        **said(1, reason="3 pods would be evicted from w1"),
    }
    (done,) = check_mode.refused(PLAN, answers)
    assert (done["id"], done["state"]) == (PLAN[0].id, "refused")
    code, reason, sentence = check_mode.outcome(PLAN, answers)
    assert (code, reason) == (2, "refused")
    facts(sentence, PLAN[0].id, "m1", "the kubelet of m1 is not healthy")
    assert phrases.state_of(PLAN[0], done, "plan") == (
        "would be refused",
        "the kubelet of m1 is not healthy",
    )
    assert phrases.state_of(PLAN[0], done, "verify")[0] == "refused"
    assert phrases.state_of(PLAN[2], None, "plan")[0] == "will be done"
    assert check_mode.outcome(PLAN, said(0, "failed", "x"))[1] == "failed"
    assert check_mode.outcome(PLAN, said(0)) is None
    assert check_mode.outcome(PLAN, {}) is None


def test_who_reads_is_told_what_was_asked_and_what_was_not():
    two, drain, rest = check_mode.notices(
        PLAN, {**said(0), **said(1, reason="3 pods would be evicted from w1")}
    )
    assert drain == f"{PLAN[1].id}: 3 pods would be evicted from w1"
    facts(two, "2 steps", "nothing")
    assert rest.startswith(f"Check mode predicts {PLAN[2].id} from the evidence.")
    assert PLAN[3].id not in rest
    (only,) = check_mode.notices(PLAN[:1], said(0))
    assert only.startswith("Check mode asked the host of one step what would refuse it now")
    assert check_mode.notices(PLAN, {})[0].startswith(
        "Check mode predicts the steps from the evidence."
    )
    assert check_mode.notices(PLAN[3:], {}) == ()
    many = tuple(step("kernel_setting", f"w{number}") for number in range(30))
    assert " and 19 more from" in check_mode.notices(many, {many[0].id: {"state": "skipped"}})[1]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("check mode: nothing was changed", ""),
        ("check mode: 3 pods would be evicted", "3 pods would be evicted"),
        ("why", "why"),
    ],
)
def test_the_words_of_check_mode_are_left_out(reason, told):
    assert check_mode.answer_text(reason) == told
