# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps for a control plane and its container runtime."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    control_plane as remedies,
)
from tests.unit.support.runtime_evidence import (
    DOCKER_UNIT,
    DOWN,
    NOT_ASKED,
    UP,
    Node,
)


@pytest.fixture
def node(world):
    return Node(world)


@pytest.mark.parametrize(
    ("unit", "remedies"),
    [
        ({**DOWN}, ["start_runtime"]),
        ({"unit_file_state": "disabled"}, ["enable_runtime"]),
        (
            {**DOWN, "unit_file_state": "disabled", "wanted_by": ["kubelet.service"]},
            ["start_runtime"],
        ),
        (
            {**DOWN, "unit_file_state": "disabled", "brought_by": ["multi-user.target"]},
            ["start_runtime"],
        ),
        ({"unit_file_state": "disabled", "brought_by": ["multi-user.target"]}, []),
        ({"unit_file_state": "disabled", "brought_by": None}, ["enable_runtime"]),
        (
            {"active_state": "failed", "sub_state": "failed", "result": "start-limit-hit"},
            ["start_runtime"],
        ),
        ({"active_state": "activating", "sub_state": "auto-restart", "result": "exit-code"}, []),
        ({"load_state": "masked", "unit_file_state": "masked"}, []),
        ({**DOWN, "load_state": "masked", "unit_file_state": "masked"}, []),
    ],
)
def test_which_steps_bring_it_back(node, unit, remedies):
    node.set(unit, **(NOT_ASKED if unit.get("active_state") else {}))
    assert [step.remedy for step in node.steps("fenced")] == remedies


def test_cri_dockerd_as_kubespray_names_it(node):
    held = {
        **UP,
        **DOWN,
        "name": "cri-dockerd.service",
        "trigger": {
            "name": "cri-dockerd.socket",
            "active_state": "active",
            "unit_file_state": "enabled",
        },
    }
    node.set([{**DOCKER_UNIT}, held], kind="cri-docker", path="/run/cri-dockerd.sock", **NOT_ASKED)
    assert node.verdict() == "clear"
    node.set(
        [{**DOCKER_UNIT}, {**held, "trigger": None}],
        kind="cri-docker",
        path="/run/cri-dockerd.sock",
        **NOT_ASKED,
    )
    (step,) = node.steps()
    assert (step.target, step.component, step.allowed) == (
        "cri-dockerd.service",
        "cri-dockerd",
        True,
    )
    assert step.component in remedies.BELOW
