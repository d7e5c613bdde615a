# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The free space, memory and process ids of a node."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    pressure,
)
from tests.unit.support import answers

PRESSURE = {
    "filesystems": [
        {
            "name": "nodefs",
            "path": "/var/lib/kubelet",
            "mount": "/",
            "type": "ext4",
            "device": "254:0",
            "total": 270553174016,
            "free": 20401094656,
            "inodes": 16777216,
            "inodes_free": 16012640,
            "error": None,
        },
        {"name": "imagefs", "path": "/var/lib/containerd", "error": "denied"},
    ],
    "memory": {"total": 25276502016, "available": 104857600},
    "pids": {"threads": 1812, "max": 192730},
    "used_up": ["nodefs.available", "memory.available"],
}


def test_the_space_of_the_kubelets_directories():
    nodefs, imagefs = answers.typed(pressure.Pressure, PRESSURE).filesystems
    assert (nodefs.name, nodefs.path, nodefs.mount) == ("nodefs", "/var/lib/kubelet", "/")
    assert (nodefs.type, nodefs.device) == ("ext4", "254:0")
    assert (nodefs.total, nodefs.free) == (270553174016, 20401094656)
    assert (nodefs.inodes, nodefs.inodes_free) == (16777216, 16012640)
    assert (imagefs.error, imagefs.free, imagefs.mount) == ("denied", None, None)


def test_memory_threads_and_what_is_used_up():
    answer = answers.typed(pressure.Pressure, PRESSURE)
    assert (answer.memory.total, answer.memory.available) == (25276502016, 104857600)
    assert (answer.pids.threads, answer.pids.max) == (1812, 192730)
    assert answer.used_up == ("nodefs.available", "memory.available")


@pytest.mark.parametrize("field", ["total", "free", "inodes", "inodes_free"])
def test_an_amount_of_a_file_system_of_another_type_is_unknown(field):
    decoded = answers.changed(pressure.Pressure, PRESSURE, "filesystems", 0, field, value="20Gi")
    assert decoded.malformed == (f"filesystems[0].{field}",)
    assert getattr(decoded.answer.filesystems[0], field) is None
    assert decoded.answer.filesystems[0].device == "254:0"


def test_memory_of_another_type_is_unknown():
    decoded = answers.changed(pressure.Pressure, PRESSURE, "memory", "available", value="100Mi")
    assert decoded.malformed == ("memory.available",)
    assert (decoded.answer.memory.available, decoded.answer.memory.total) == (None, 25276502016)


def test_signals_that_are_one_text_are_none():
    decoded = answers.changed(pressure.Pressure, PRESSURE, "used_up", value="memory.available")
    assert (decoded.malformed, decoded.answer.used_up) == (("used_up",), ())
    assert decoded.answer.pids.max == 192730
