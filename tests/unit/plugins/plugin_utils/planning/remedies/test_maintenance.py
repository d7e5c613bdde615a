# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps that serve a run itself: ends of earlier runs, probes and names."""

from __future__ import annotations

import copy

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    result as model_result,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    maintenance,
)
from tests.unit.support.election_plan import MANAGER, SCHEDULER, break_election, cordon, planned


def test_what_a_run_of_ours_left_is_ended_on_a_node_that_is_cordoned(world):
    world.documents["m2"]["collectors"]["journal"] = {
        "status": "ok",
        "data": {"unproven": [{"component": MANAGER}]},
    }
    cordon(world, "m2")
    document = copy.deepcopy(world.documents["m2"])
    of = fault_engine.evaluate_clusters([*world.documents.values(), world.api])[1][0]
    finding = model_result.Finding("KM902", "critical", of.key, "m2", MANAGER, "interrupted", "m2")
    assert (
        maintenance.recover(plan.RemedyContext(finding, of, document, plan.Consent(2))).blocked_by
        is None
    )


def test_a_probe_comes_last_and_only_behind_a_repair_that_is_allowed(world):
    def probed(max_risk):
        return planned(world, max_risk, probe=maintenance.probe)

    assert probed(2) == ()
    break_election(world, "m2", SCHEDULER)
    step = probed(2)[-1]
    assert (step.remedy, step.risk, step.allowed, step.host, step.cluster) == (
        "probe",
        1,
        True,
        world.api["host"],
        probed(2)[0].cluster,
    )
    assert "nothing to prove" in probed(1)[-1].blocked_by
    assert "kubemend_max_risk=1" in probed(0)[-1].blocked_by
    assert [item.remedy for item in planned(world, max_risk=2)] == ["edit_manifest"]


def test_the_name_of_a_step_is_one_word_whatever_the_inventory_calls_its_host(world):
    break_election(world, "m2", MANAGER)
    world.api["host"] = "m 1/../x"
    steps = planned(world, max_risk=2, probe=maintenance.probe)
    assert [step.id for step in steps] == [
        "01-m2-kube-controller-manager-edit-manifest",
        "02-m-1-..-x-probe",
    ]
