# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A precondition that does not hold is refused, whichever package raises it."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.capture import kubelet_level
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from ansible_collections.kubemend.remediation.plugins.module_utils.shared.errors import (
    PreconditionFailed,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor,
    preconditions,
    service_restart,
)


@pytest.mark.parametrize(
    "raised",
    [
        PreconditionFailed,
        preconditions.PreconditionFailed,
        service_restart.PreconditionFailed,
        kubelet_level.preconditions.PreconditionFailed,
    ],
)
def test_the_executor_answers_that_nothing_was_changed(monkeypatch, raised):
    class Failing:
        def __init__(self, _params):
            pass

        def run(self):
            raise raised("swap is on")

    monkeypatch.setattr(executor, "_Executor", Failing)
    answer = executor.work({})
    assert (answer["state"], answer["changed"], answer["reason"]) == (
        step_kinds.REFUSED,
        False,
        "swap is on",
    )
