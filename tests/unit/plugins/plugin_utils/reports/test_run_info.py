# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a report says of its run: symptoms and the threshold of failure."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    Result,
    Verdict,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    json_report,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import (
    Symptom,
    exit_of,
)
from tests.unit.support.report_result import RESULT, run


def test_the_symptom_names_its_causes():
    report = json_report.render(
        RESULT, run(symptom=Symptom("duplicate_pods", "Twice", ("KM101", "KM102")))
    )
    assert report["symptom"]["name"] == "duplicate_pods"
    assert report["symptom"]["causes"] == ["KM101", "KM102"]


CLEAN = Result(verdicts=(Verdict("KM101", "k", "clear"),), findings=RESULT.findings[2:])
UNKNOWN = Result(verdicts=RESULT.verdicts[2:3])
WARNING = Result(verdicts=RESULT.verdicts[:1], findings=RESULT.findings[1:2])


@pytest.mark.parametrize(
    ("result", "reached"),
    [
        (CLEAN, ()),
        (UNKNOWN, ("unknown",)),
        (WARNING, ("unknown", "warning")),
        (RESULT, ("unknown", "warning", "critical")),
    ],
)
@pytest.mark.parametrize("fail_on", ["never", "unknown", "warning", "critical"])
def test_the_threshold_counts_what_it_names_and_worse(result, reached, fail_on):
    expected = (2, "threshold") if fail_on in reached else (0, "ok")
    assert exit_of(result, run(fail_on)) == expected
    report = json_report.render(result, run(fail_on))
    assert (report["exit_code"], report["exit_reason"]) == expected
