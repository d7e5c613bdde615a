# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node calls kills as the controller expects them, and sends no more than it expects."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs.memory_kills import (
    MemoryKills,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import memory_kills


@pytest.mark.parametrize(
    ("reason", "scope"),
    [
        (b"Memory cgroup out of memory", memory_kills.CGROUP),
        (b"Out of memory", memory_kills.MACHINE),
    ],
)
def test_a_node_calls_what_had_no_memory_left_as_the_controller_does(reason, scope):
    kills = MemoryKills()
    for number in range(memory_kills.MAX_KILLS + 1):
        line = reason + b": Killed process %d (java) total-vm:9kB" % (number + 1)
        kills.take(float(number), line)
    assert len(kills.rows) == memory_kills.MAX_KILLS
    assert {row["scope"] for row in kills.rows} == {scope}
