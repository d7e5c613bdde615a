# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The changes of earlier runs, and the run that locks the node."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    journal,
)
from tests.unit.support import answers

INTERRUPTED = answers.recorded("v1.36.3-interrupted-change", "m2", "journal")
REVERTED = answers.recorded("v1.36.3-address-gone", "w1", "journal")
RUN = "20261121T112659Z-71414d"


def test_a_change_that_was_not_finished():
    (change,) = answers.typed(journal.Journal, INTERRUPTED).pending
    assert (change.run_id, change.state, change.error) == (RUN, "neither", None)
    assert change.entry == "001-01-m2-kube-scheduler-edit-config"
    assert change.path == change.real == "/etc/kubernetes/scheduler-config.yaml"
    assert (change.step, change.why) == ("01-m2-kube-scheduler-edit-config", "KM104")
    assert change.what.startswith("edit_config: ")
    assert change.at == "2026-11-21T11:27:03Z"
    assert (change.sha256_before[:4], change.sha256_after[:4]) == ("cf1e", "3890")
    assert (change.sha256, change.temp) == (None, None)


def test_the_runs_that_changed_the_node():
    answer = answers.typed(journal.Journal, INTERRUPTED)
    first, _second, last = answer.runs
    assert (first.entries, first.committed, first.pending) == (2, 2, 0)
    assert (first.first, first.last) == ("2026-11-21T11:15:41Z", "2026-11-21T11:16:01Z")
    assert len(first.paths) == 2
    assert (last.run_id, last.committed, last.pending) == (RUN, 0, 1)
    assert (last.not_done, last.superseded, last.unreadable) == (0, 0, 0)
    assert (answer.busy, answer.lock, answer.levels, answer.temp_files) == (False, None, None, ())


def test_a_run_that_reverts_another():
    runs = answers.typed(journal.Journal, REVERTED).runs
    assert runs[1].reverts == (runs[0].run_id,)
    assert runs[0].paths == ("enablement of kubelet.service",)


def test_a_component_that_does_not_run_after_a_step():
    step = {"run_id": RUN, "step": "s", "component": "kubelet", "path": "/p", "reason": "exit 1"}
    answer = answers.typed(journal.Journal, {**INTERRUPTED, "down": [step], "unproven": [step]})
    (failed,), (unproven,) = answer.down, answer.unproven
    assert (failed.run_id, failed.component, failed.reason) == (RUN, "kubelet", "exit 1")
    assert (unproven.run_id, unproven.step, unproven.running) == (RUN, "s", None)


def test_a_log_verbosity_that_was_not_restored():
    level = {
        "run_id": RUN,
        "entry": "proof-03",
        "path": "log level of kubelet",
        "real": "level:kubelet",
        "level": "4",
        "former": "0",
        "overdue": True,
        "restart": True,
        "by_hand": "the unit was edited",
    }
    (found,) = answers.typed(journal.Journal, {**INTERRUPTED, "levels": [level]}).levels
    assert (found.level, found.former, found.overdue) == ("4", "0", True)
    assert (found.real, found.restart, found.until) == ("level:kubelet", True, None)
    assert found.by_hand == "the unit was edited"


@pytest.mark.parametrize(
    ("field", "value", "default"),
    [("lock", RUN, None), ("busy", "no", None), ("levels", {}, None), ("pending", {}, ())],
)
def test_a_part_of_another_type_has_its_default(field, value, default):
    decoded = answers.changed(journal.Journal, INTERRUPTED, field, value=value)
    assert (decoded.malformed, getattr(decoded.answer, field)) == ((field,), default)
    assert len(decoded.answer.runs) == 3


def test_the_state_of_a_change_is_a_text():
    decoded = answers.changed(journal.Journal, INTERRUPTED, "pending", 0, "state", value=0)
    assert decoded.malformed == ("pending[0].state",)
    assert (decoded.answer.pending[0].state, decoded.answer.pending[0].run_id) == (None, RUN)
