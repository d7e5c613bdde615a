# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The largest directories and processes of what is nearly used up."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    largest,
)
from tests.unit.support import answers

LARGEST = {
    "filesystems": [
        {
            "name": "nodefs",
            "folders": [{"path": "/var/log/pods", "bytes": 42949672960, "files": 311}],
            "bytes": 48318382080,
            "files": 20112,
            "complete": False,
        }
    ],
    "memory": [{"pid": 4711, "comm": "java", "uid": 1000, "rss": 8589934592, "threads": 90}],
    "threads": [{"pid": 4712, "comm": "forker", "pod": "default/forker", "threads": 30000}],
}


def test_the_directories_of_a_full_file_system():
    (filesystem,) = answers.typed(largest.Largest, LARGEST).filesystems
    assert (filesystem.name, filesystem.complete) == ("nodefs", False)
    assert (filesystem.bytes, filesystem.files) == (48318382080, 20112)
    (folder,) = filesystem.folders
    assert (folder.path, folder.bytes, folder.files) == ("/var/log/pods", 42949672960, 311)


def test_the_processes_with_the_most_memory_and_threads():
    answer = answers.typed(largest.Largest, LARGEST)
    assert [(item.comm, item.rss) for item in answer.memory] == [("java", 8589934592)]
    assert [(item.pod, item.threads) for item in answer.threads] == [("default/forker", 30000)]


def test_a_size_is_a_number_of_bytes():
    place = ("filesystems", 0, "folders", 0, "bytes")
    decoded = answers.changed(largest.Largest, LARGEST, *place, value="40Gi")
    assert decoded.malformed == ("filesystems[0].folders[0].bytes",)
    folder = decoded.answer.filesystems[0].folders[0]
    assert (folder.bytes, folder.files) == (None, 311)


def test_whether_a_walk_is_complete_is_unknown_where_it_is_a_number():
    decoded = answers.changed(largest.Largest, LARGEST, "filesystems", 0, "complete", value=1)
    assert decoded.malformed == ("filesystems[0].complete",)
    assert decoded.answer.filesystems[0].complete is None


def test_processes_that_are_no_list_are_none():
    decoded = answers.changed(largest.Largest, LARGEST, "memory", value={"java": 1})
    assert (decoded.malformed, decoded.answer.memory) == (("memory",), ())
