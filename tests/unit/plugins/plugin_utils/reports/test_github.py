# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Annotations of a GitHub workflow, and what nodes cannot make of them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    Finding,
    Result,
    Waived,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import github
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run

RUN = Run("r", "s", "f", "observe", "/r", "0.1.0", titles={"KM101": "Election: off, again"})


def finding(code="KM101", host="m1", severity="critical", summary="it is so", **more):
    return Finding(code, severity, "k", host, None, summary, **more)


def lines(*findings):
    return github.render(Result(findings=findings), RUN).splitlines()


@pytest.mark.parametrize(
    ("severity", "command"), [("critical", "error"), ("warning", "warning"), ("info", "notice")]
)
def test_the_severity_is_the_command(severity, command):
    (line,) = lines(finding(severity=severity, remedy="do it"))
    assert line == f"::{command} title=KM101 m1%3A Election%3A off%2C again::it is so; fix: do it"


def test_findings_of_one_fault_are_one_line_and_the_worst_is_first():
    found = lines(
        finding("KM514", "w1", "info"),
        *(finding(host=f"m{n}", summary=f"m{n} has it off") for n in range(1, 4)),
    )
    assert [line.split("::")[1].split(" ")[0] for line in found] == ["error", "notice"]
    assert "m1, m2, m3" in found[0].replace("%2C", ",")


def test_a_waived_finding_is_a_notice_that_says_so():
    (line,) = lines(finding(waived=Waived("known, 100%", "ops", "2027-01-31"), remedy="do it"))
    assert line.startswith("::notice title=waived%3A KM101 m1")
    assert "::waived until 2027-01-31 by ops: known, 100%25; it is so" in line
    assert "do it" not in line


def test_times_are_those_of_the_report():
    (line,) = lines(finding(summary="off since 2026-11-24T07:42:17Z"))
    assert line.endswith("off since 2026-11-24 07:42 UTC")


def test_nothing_found_is_no_line():
    assert github.render(Result(), RUN) == ""


def test_hostile_text_stays_one_annotation():
    text = "a\n::error::b\r::set-env name=x::y%0A::stop \u2028\u202e\x1b[31m"
    (line,) = lines(finding(host=text, summary=text))
    command, title, *rest = line.split("::")
    assert (command, title.split("=")[0]) == ("", "error title")
    assert rest
    assert line.isprintable()
    assert "%0A" not in line
    assert "%250A" in line


def test_a_report_within_the_fence_gives_no_command():
    word = "0f" * 16
    text = github.fence("report\n  ::error::a node said this\n", word)
    assert text.splitlines() == [
        f"::stop-commands::{word}",
        "report",
        "  ::error::a node said this",
        f"::{word}::",
    ]
