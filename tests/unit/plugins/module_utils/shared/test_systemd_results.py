# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exit statuses that systemd itself gives a process."""

import shutil
import subprocess

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    systemd_results,
)
from tests.unit.support.failed_unit import failed, only_refusal


@pytest.mark.parametrize("status", range(200, 246))
@pytest.mark.parametrize("result", ["exit-code", "start-limit", "start-limit-hit"])
def test_each_status_of_systemds_own_is_named(status, result):
    found = only_refusal(failed(status, result))
    name = systemd_results.STEPS.get(status, ("",))[0]
    assert str(status) in found.what
    assert name in found.what
    assert (found.now, found.past) == (True, True)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="this machine has no systemd")
def test_the_names_are_those_of_this_machines_systemd():
    done = subprocess.run(
        ["systemd-analyze", "exit-status"], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    # 255 is also how klog ends a program.
    own = {int(row[1]): row[0] for row in rows if row[-1] == "systemd"}
    named = {status: name for status, name in own.items() if status <= systemd_results.LAST}
    assert len(named) > 40
    assert {status: systemd_results.STEPS[status][0] for status in named} == named
