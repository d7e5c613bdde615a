# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is printed while one task reads all hosts."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet.display import (
    Lines,
)


def test_a_line_per_host_and_progress_not_too_often() -> None:
    told: list[str] = []
    now = [0.0]
    lines = Lines(3, tell=told.append, clock=lambda: now[0])
    lines.waiting({"m1": 0.0})
    lines.ended("w1", "ok", "")
    lines.ended("w2", "unreachable", "no answer")
    assert [text.count("w1") + text.count("w2") for text in told] == [1, 1]
    now[0] = 10.5
    lines.waiting({"m1": 0.0})
    lines.waiting({"m1": 0.0})
    assert len(told) == 3
    assert "1 of 3 hosts" in told[2]
    now[0] = 30.0
    lines.waiting({})
    assert len(told) == 3
