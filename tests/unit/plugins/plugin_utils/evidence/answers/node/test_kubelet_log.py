# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log lines of kubelet and runtime that matter for faults."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet_log,
)
from tests.unit.support import answers

LOG = answers.recorded("v1.18.4-inotify-watches", "m2", "kubelet_log")


def test_the_lines_keep_their_order():
    lines = answers.typed(kubelet_log.KubeletLog, LOG).lines
    assert len(lines) == 7
    assert all(line.startswith("2026-11-24T12:56:1") for line in lines[:3])
    assert "kubelet[242]" in lines[0]


def test_a_line_that_is_no_text_is_dropped():
    decoded = answers.changed(kubelet_log.KubeletLog, LOG, "lines", 1, value=7)
    assert decoded.malformed == ("lines[1]",)
    assert decoded.answer.lines == (LOG["lines"][0], *LOG["lines"][2:])


def test_lines_that_are_one_text_are_none():
    decoded = answers.changed(kubelet_log.KubeletLog, LOG, "lines", value="one line")
    assert (decoded.malformed, decoded.answer.lines) == (("lines",), ())
