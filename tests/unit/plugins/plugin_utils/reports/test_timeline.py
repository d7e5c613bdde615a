# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeline of a pod as a text: columns, siblings, days, and the times of entries."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import Result
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.timeline import (
    Entry,
    Timeline,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    text as report_text,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run

SECOND = 1795291262.0  # 20:01:02


def run(*timelines):
    return Run("r", "s", "f", "observe", "/r", "0.1.0", timelines=timelines)


def test_the_text_is_aligned_and_marks_siblings_and_days():
    entries = (
        Entry(SECOND, "s", "api", "x", "created", "api"),
        Entry(SECOND + 0.113402, "us", "w1 kubelet", "x", "ADD", "log"),
        Entry(SECOND + 86400, "s", "api", "b", "created \x1b[31m" + "word " * 12, "api"),
        Entry(None, "s", "", "", "more", "log"),
    )
    text = report_text.render(
        Result(), run(Timeline("n/x", "x", "u\u202e", "pod of Job n/j", entries))
    )
    assert text.endswith(
        "Timeline of n/x (uid u\\u202e), pod of Job n/j; times in UTC, 2026-11-21\n"
        "  20:01:02         api         created\n"
        "  20:01:02.113402  w1 kubelet  ADD\n"
        "  2026-11-22\n"
        "  20:01:02         api         b: created \\x1b[31mword word word word word word\n"
        "                   word word word word word word\n"
        "                               more\n\n"
        "kubemend: 0 hosts, 0 critical, 0 warning, 0 unknown; report: /r\n"
    )
    assert "nothing is known of it but its name" in report_text.render(
        Result(), run(Timeline("n/x", "x", "", "a", ()))
    )
