# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What cannot end on a node."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    hangs,
)
from tests.unit.support import answers

RAW = {
    "tasks": [{"pid": 7, "name": "ls", "wchan": "rpc_wait_bit_killable", "pod_uid": None}],
    "mounts": [{"point": "/a", "type": "nfs4", "source": "s:/", "answers": False}],
    "devices": [
        {"name": "dm-0", "mapped": "a", "suspended": True, "in_flight": 0, "points": ["/a"]}
    ],
    "zombies": [{"pid": 2, "name": "init", "zombies": 30}],
}


def test_tasks_mounts_devices_and_zombies():
    answer = answers.typed(hangs.Hangs, RAW)
    assert answer.tasks[0].wchan == "rpc_wait_bit_killable"
    assert (answer.devices[0].suspended, answer.devices[0].points) == (True, ("/a",))
    assert (answer.mounts[0].answers, answer.zombies[0].zombies) == (False, 30)


def test_a_mount_of_which_nothing_is_known():
    decoded = answers.changed(hangs.Hangs, RAW, "mounts", 0, "answers", value=None)
    assert (decoded.malformed, decoded.answer.mounts[0].answers) == ((), None)


def test_a_value_of_another_type_is_refused():
    decoded = answers.changed(hangs.Hangs, RAW, "mounts", 0, "answers", value="no")
    assert decoded.malformed == ("mounts[0].answers",)
