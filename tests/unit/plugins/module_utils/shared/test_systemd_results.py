# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exit statuses that systemd itself gives a process."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    systemd_results,
)
from tests.unit.support.failed_unit import failed, only_refusal


@pytest.mark.parametrize("status", sorted(systemd_results.STEPS))
@pytest.mark.parametrize("result", ["exit-code", "start-limit", "start-limit-hit"])
def test_each_status_of_systemds_own_is_named(status, result):
    found = only_refusal(failed(status, result))
    name = systemd_results.STEPS.get(status, ("",))[0]
    assert str(status) in found.what
    assert name in found.what
    assert (found.now, found.past) == (True, True)


@pytest.mark.parametrize(
    ("result", "status", "is_killed"),
    [
        ("oom-kill", 0, True),
        ("oom-kill", None, True),
        ("signal", 9, True),
        ("signal", 15, False),
        ("exit-code", 9, False),
        ("success", 0, False),
        (None, None, False),
    ],
)
def test_a_unit_that_was_killed_is_protected(result, status, is_killed):
    advice = systemd_results.after_kill("containerd.service", result, status)
    assert ("systemctl edit containerd.service" in advice) is is_killed
    assert ("OOMScoreAdjust=-999" in advice) is is_killed
