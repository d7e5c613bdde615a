# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A defragmentation of etcd that k3s did not wait for."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    etcd_defragmentation,
)

AT = "2026-11-24T13:09:28+0000 m1 k3s[{}]: "
GAVE_UP = AT + (
    'time="2024-10-31T10:19:00Z" level=error msg="Failed to check local etcd status for learner'
    ' management: context deadline exceeded"'
)
FINISHED = AT + '{{"level":"info","msg":"finished defragmenting directory","path":"/x/db"}}'


@pytest.mark.parametrize(
    ("lines", "is_told"),
    [
        ([GAVE_UP.format(7), FINISHED.format(7)], True),
        ([FINISHED.format(7), GAVE_UP.format(7)], False),  # it had finished before
        ([GAVE_UP.format(7), FINISHED.format(8)], False),  # of the next start
        ([GAVE_UP.format(7)], False),
        ([FINISHED.format(7)], False),
    ],
)
def test_what_etcd_did_meanwhile(lines: list[str], is_told: bool) -> None:
    (line,) = [row for row in lines if "learner" in row] or [lines[0]]
    found = list(etcd_defragmentation.text(lines, line))
    assert len(found) == is_told
    assert all("deadline exceeded" in row and "finished" in row for row in found)
