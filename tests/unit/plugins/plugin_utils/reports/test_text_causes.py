# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The possible causes of a symptom: each by name, or many with one reason as a number."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    text_causes,
    text_page,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Symptom
from tests.unit.support.report_result import run

SYMPTOM = Symptom("api_down", "The API does not answer", ())
SILENT = "missing m1 (unreachable)"


def lines(rows, **more):
    page = text_page.Page(79, text_page.plain)
    text_causes.write(page, run(**more), SYMPTOM, rows)
    return [line.strip() for line in page.text().splitlines()[1:]]


@pytest.mark.parametrize("verdict", ["unknown", "clear", "not_applicable"])
def test_many_for_one_reason_are_a_number_unless_the_run_is_verbose(verdict):
    rows = [(verdict, f"KM10{number}", SILENT) for number in range(5)]
    counted = lines([*rows, (verdict, "KM501", "missing w1 (error)")])
    assert "5 faults: missing m1" in counted[0]
    assert "KM501" in counted[1]
    assert "-v" in counted[-1]
    named = lines(rows, verbose=True)
    assert [line.split("KM")[1][:3] for line in named] == ["100", "101", "102", "103", "104"]


def test_a_few_and_present_ones_are_named():
    few = [("clear", f"KM10{number}", "") for number in range(4)]
    present = [("present", f"KM50{number}", "w1") for number in range(6)]
    assert ["KM" in line for line in lines([*present, *few])] == [True] * 10
