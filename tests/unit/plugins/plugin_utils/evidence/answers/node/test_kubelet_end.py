# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last log lines of a kubelet that exited or was restarted recently."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet_end,
)
from tests.unit.support import answers

END = answers.recorded("v1.36.3-kubelet-wrong-flag", "w1", "kubelet_end")


def test_the_lines_of_a_kubelet_that_does_not_start():
    answer = answers.typed(kubelet_end.KubeletEnd, END)
    assert answer.unit == "kubelet.service"
    assert "Started kubelet.service" in answer.lines[0]
    assert len(answer.lines) == len(END["lines"])


def test_a_line_that_is_no_text_is_dropped():
    decoded = answers.changed(kubelet_end.KubeletEnd, END, "lines", 0, value=7)
    assert decoded.malformed == ("lines[0]",)
    assert decoded.answer.lines == tuple(END["lines"][1:])


def test_lines_that_are_one_text_are_none():
    decoded = answers.changed(kubelet_end.KubeletEnd, END, "lines", value="one\ntwo")
    assert (decoded.malformed, decoded.answer.lines) == (("lines",), ())
    assert decoded.answer.unit == "kubelet.service"


def test_a_unit_of_another_type_is_unknown():
    decoded = answers.changed(kubelet_end.KubeletEnd, END, "unit", value=["kubelet.service"])
    assert (decoded.malformed, decoded.answer.unit) == (("unit",), None)
