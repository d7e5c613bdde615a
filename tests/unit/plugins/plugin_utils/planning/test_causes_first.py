# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No plan for a recorded cluster treats a consequence while its cause stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    REMEDIES,
)
from tests.cases import judge
from tests.unit.support.causes_first import causes_left

FOLDER = Path(__file__).resolve().parents[4] / "fixtures" / "recorded"
RECORDED = sorted(path.parent.name for path in FOLDER.glob("*/evidence"))
WITH_REJECTED = ["v1.18.4-gpu-held", "v1.36.3-gpu-readmitted", "v1.36.3-gpu-two-schedulers"]


def answer(name):
    documents = list(evidence_sources.stream([str(FOLDER / name / "evidence")]))
    by_host = {row["host"]: row for row in documents if row.get("kind") != "cluster"}
    result, clusters = fault_engine.evaluate_clusters(iter(documents), deep=True)
    steps = plan.plan(
        result.findings,
        clusters,
        by_host.__getitem__,
        judge.EVERYTHING,
        REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    return result.findings, steps


@pytest.mark.parametrize("name", RECORDED)
def test_no_step_treats_a_consequence_while_its_cause_stays(name):
    findings, steps = answer(name)
    assert causes_left(findings, steps) == []


@pytest.mark.parametrize("name", WITH_REJECTED)
def test_rejected_pods_of_these_clusters_would_be_such_a_consequence(name):
    findings, steps = answer(name)
    allowed = [replace(step, allowed=True) for step in steps if step.remedy == plan.CLEAN_UP]
    assert allowed
    assert {row[:2] for row in causes_left(findings, allowed)} == {("clean_up", "KM320")}
