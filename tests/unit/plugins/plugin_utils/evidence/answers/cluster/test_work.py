# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs of kubemend that may change the node which asked the API."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    work,
)
from tests.unit.support import answers

RUN = "20261121T112659Z-71414d"
WORK = {
    "lock": {"run_id": RUN, "controller": {"host": "ops1", "pid": 4711}, "held": True},
    "unproven": [
        {"run_id": RUN, "step": "02-m1-kubelet-restart", "component": "kubelet", "running": False}
    ],
}


def test_a_node_that_no_run_changes():
    recorded = answers.recorded("v1.18.4-component-ends", "m1.cluster", "work")
    assert answers.typed(work.Work, recorded) == work.Work(lock=None, unproven=())


def test_a_run_that_locks_the_node_and_verified_nothing_yet():
    answer = answers.typed(work.Work, WORK)
    assert (answer.lock.run_id, answer.lock.held) == (RUN, True)
    assert answer.lock.controller == {"host": "ops1", "pid": 4711}
    (step,) = answer.unproven
    assert (step.run_id, step.component, step.running) == (RUN, "kubelet", False)


def test_a_lock_of_another_type_is_malformed():
    decoded = answers.changed(work.Work, WORK, "lock", value=RUN)
    assert (decoded.malformed, decoded.answer.lock) == (("lock",), None)
    assert len(decoded.answer.unproven) == 1


def test_whether_a_component_runs_after_a_step_is_no_text():
    decoded = answers.changed(work.Work, WORK, "unproven", 0, "running", value="no")
    assert decoded.malformed == ("unproven[0].running",)
    assert (decoded.answer.unproven[0].running, decoded.answer.unproven[0].run_id) == (None, RUN)


def test_steps_that_are_no_list_are_malformed():
    decoded = answers.changed(work.Work, WORK, "unproven", value={})
    assert (decoded.malformed, decoded.answer.unproven) == (("unproven",), ())
    assert decoded.answer.lock.run_id == RUN
