# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The free space of the directories of logs and of the journal."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    space,
)
from tests.unit.support import answers

SPACE = answers.recorded("v1.18.4-inotify-watches", "m2", "space")


def test_the_directories_that_a_change_needs():
    folders = answers.typed(space.Spaces, SPACE).folders
    assert [folder.path for folder in folders] == [
        "/var/log/pods",
        "/var/log/journal",
        "/var/lib/kubemend",
    ]
    pods = folders[0]
    assert (pods.free_bytes, pods.total_bytes) == (58912522240, 270553174016)
    assert (pods.free_inodes, pods.error) == (16012640, None)


@pytest.mark.parametrize("field", ["free_bytes", "total_bytes", "free_inodes"])
@pytest.mark.parametrize("value", ["58912522240", 0.5, True])
def test_an_amount_of_another_type_is_unknown(field, value):
    decoded = answers.changed(space.Spaces, SPACE, "folders", 2, field, value=value)
    assert decoded.malformed == (f"folders[2].{field}",)
    assert getattr(decoded.answer.folders[2], field) is None
    assert decoded.answer.folders[2].path == "/var/lib/kubemend"


def test_a_directory_that_is_missing():
    raw = {"folders": [{"path": "/var/log/journal", "error": "missing"}]}
    (folder,) = answers.typed(space.Spaces, raw).folders
    assert (folder.error, folder.free_bytes, folder.free_inodes) == ("missing", None, None)
