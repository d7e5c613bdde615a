# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs of kubemend recorded on a node."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    kubemend_journal,
)
from tests.unit.support import answers

RUN = "20261121T112659Z-71414d"
LOCK = {
    "schema": "kubemend.lock/1",
    "run_id": RUN,
    "controller": {"host": "ops1", "pid": 4711, "user": "root"},
    "boot_id": "0b264f45-3e3e-472c-a9ab-99998b1819d0",
    "granted_uptime": 4763.37,
    "granted_at": "2026-11-21T11:27:03Z",
    "seconds": 900,
    "held": True,
    "remaining": 612.5,
}
STEP = {
    "run_id": RUN,
    "step": "02-m1-kube-scheduler-restart",
    "component": "kube-scheduler",
    "path": "/etc/kubernetes/manifests/kube-scheduler.yaml",
    "running": False,
}


def test_the_run_that_locks_a_node():
    lock = answers.typed(kubemend_journal.Lock, LOCK)
    assert (lock.run_id, lock.held, lock.error) == (RUN, True, None)
    assert lock.controller == {"host": "ops1", "pid": 4711, "user": "root"}
    assert lock.boot_id == "0b264f45-3e3e-472c-a9ab-99998b1819d0"
    assert (lock.granted_uptime, lock.granted_at) == (4763.37, "2026-11-21T11:27:03Z")
    assert (lock.seconds, lock.remaining) == (900, 612.5)


def test_a_lock_that_cannot_be_read_is_of_no_run():
    lock = answers.typed(kubemend_journal.Lock, {"error": "the lock cannot be read"})
    assert (lock.run_id, lock.held) == (None, None)
    assert lock.error == "the lock cannot be read"


@pytest.mark.parametrize(
    ("field", "value"), [("held", "true"), ("run_id", 7), ("remaining", "612"), ("seconds", True)]
)
def test_a_field_of_another_type_is_unknown(field, value):
    decoded = answers.changed(kubemend_journal.Lock, LOCK, field, value=value)
    assert (decoded.malformed, getattr(decoded.answer, field)) == ((field,), None)


def test_facts_of_a_controller_are_scalars():
    decoded = answers.changed(kubemend_journal.Lock, LOCK, "controller", "pid", value=[4711])
    assert decoded.malformed == ("controller.pid",)
    assert decoded.answer.controller == {"host": "ops1", "user": "root"}


def test_a_step_that_was_not_verified():
    step = answers.typed(kubemend_journal.OpenStep, STEP)
    assert (step.run_id, step.step) == (RUN, "02-m1-kube-scheduler-restart")
    assert (step.component, step.path, step.running) == (
        "kube-scheduler",
        "/etc/kubernetes/manifests/kube-scheduler.yaml",
        False,
    )
    decoded = answers.changed(kubemend_journal.OpenStep, STEP, "running", value=0)
    assert (decoded.malformed, decoded.answer.running) == (("running",), None)
