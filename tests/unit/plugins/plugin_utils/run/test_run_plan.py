# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a run as its operator gets it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    result as model_result,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.cluster import Cluster
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import (
    plan,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    run_plan,
)


@pytest.mark.parametrize(
    ("code", "more"),
    [("KM402", ""), ("KM401", " -e kubemend_deep=true"), ("KM404", " -e kubemend_deep=true")],
)
def test_the_command_that_repairs_asks_for_what_its_fault_needs(code, more):
    found = model_result.Finding(code, "critical", None, "w1", None, "used up", "w1")
    step = plan.Step(
        "01-w1",
        "w1",
        code,
        "kernel_setting",
        1,
        "file",
        node="w1",
        blocked_by="risk 1 needs -e kubemend_max_risk=1",
    )
    said = (
        "ansible-playbook -i INVENTORY kubemend.remediation.remediate -e kubemend_faults={0}{1} -e"
        " kubemend_max_risk=1"
    )
    assert run_plan.with_command(found, (step,)).command == said.format(code, more)
    shared = replace(step, code="KM501", also=(code,))
    assert run_plan.with_command(found, (shared,)).command == said.format(code, more)
    assert not run_plan.with_command(found, (replace(step, code="KM501"),)).command


@pytest.mark.parametrize(
    ("node", "told"),
    [
        ({"name": "w1", "ready": "True", "taints": []}, None),
        (
            {
                "name": "w1",
                "ready": "Unknown",
                "taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}],
            },
            (
                "w1: Ready is Unknown, node.kubernetes.io/unreachable:NoExecute; the kubelet posts"
                " Ready, and the node lifecycle controller"
            ),
        ),
        ({"name": "w2", "ready": "False"}, None),
    ],
)
def test_a_node_that_was_brought_back_and_is_not_ready_is_told(node, told):
    step = plan.Step(
        "s", "w1", "KM502", "start_kubelet", 2, "kubelet.service", node="w1", allowed=True
    )
    answer = {"status": "ok", "data": {"items": [node]}}
    clusters = [Cluster("k", [], api={"nodes": answer}), Cluster("other", [])]
    found = run_plan.not_back((step,), ({"id": "s", "state": "done"},), clusters)
    assert len(found) == bool(told)
    assert not told or (told in found[0] and "removed by hand they come back" in found[0])


def test_one_command_does_every_step_that_waits_for_consent():
    step = plan.Step("01-w1", "w1", "KM402", "kernel_setting", 1, "file", node="w1")
    waiting = replace(step, blocked_by="risk 1 needs -e kubemend_max_risk=1")
    higher = replace(waiting, code="KM101", risk=2, blocked_by="risk 2 needs more")
    deep = replace(waiting, code="KM404")
    refused = replace(step, risk=3, blocked_by="the API is down: -e kubemend_allow=api_down")
    done = replace(step, allowed=True)
    command = "ansible-playbook -i INVENTORY kubemend.remediation.remediate "
    assert run_plan.repair_command((waiting, higher, refused), False) == (
        f"{command}-e kubemend_max_risk=2"
    )
    assert run_plan.repair_command((waiting, deep), False, " -i x") == (
        f"{command.replace('INVENTORY', 'x')}-e kubemend_deep=true -e kubemend_max_risk=1"
    )
    assert run_plan.repair_command((refused, done), False) == ""
    assert run_plan.repair_command((done,), True) == f"{command}-e kubemend_max_risk=1"
    assert run_plan.repair_command((replace(done, remedy=plan.CLEAN_UP),), True) == ""
