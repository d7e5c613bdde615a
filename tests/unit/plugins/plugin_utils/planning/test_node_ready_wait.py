# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose kubelet a run brought back, and what the API still has of it."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    nodes as nodes_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import (
    node_ready_wait,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step

UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def nodes(items):
    return decode(nodes_answer.Nodes, {"items": items}).answer.items


def step(remedy, code="KM502", node="w1"):
    return Step(f"{node}-{remedy}", "h1", code, remedy, 2, "x", node=node)


@pytest.mark.parametrize(
    ("remedy", "code", "counts"),
    [
        ("start_kubelet", "KM502", True),
        ("start_runtime", "KM508", True),
        ("swap_off", "KM504", True),
        ("kernel_setting", "KM402", True),
        ("kernel_setting", "KM407", False),
        ("enable_kubelet", "KM501", False),
        ("static_pod", "KM101", False),
        ("swap_persistence", "KM504", False),
    ],
)
def test_which_steps_bring_a_kubelet_back(remedy, code, counts):
    one = step(remedy, code)
    assert node_ready_wait.nodes([one], [{"id": one.id, "state": "done"}]) == (
        {"w1"} if counts else set()
    )


def test_only_what_is_done_counts_and_only_a_node_that_is_proven():
    one, other = step("start_kubelet"), step("start_kubelet", node=None)
    assert (
        node_ready_wait.nodes(
            [one, other], [{"id": one.id, "state": "failed"}, {"id": other.id, "state": "done"}]
        )
        == set()
    )


@pytest.mark.parametrize(
    ("item", "left"),
    [
        ({"ready": "True", "taints": []}, None),
        ({"ready": "True"}, None),
        (
            {"ready": "True", "taints": [{"key": "caf", "value": "log", "effect": "NoExecute"}]},
            None,
        ),
        (
            {"ready": "Unknown", "taints": [UNREACHABLE, {**UNREACHABLE, "effect": "NoSchedule"}]},
            (
                "Ready is Unknown, node.kubernetes.io/unreachable:NoExecute,"
                " node.kubernetes.io/unreachable:NoSchedule"
            ),
        ),
        (
            {
                "ready": "True",
                "taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}],
            },
            "node.kubernetes.io/not-ready:NoSchedule",
        ),
        ({"ready": "\x1b[31m", "taints": 7}, "Ready is not known"),
        ({"taints": [7, {}]}, "Ready is not known"),
    ],
)
def test_what_is_not_back_yet(item, left):
    items = nodes([{"name": "w1", **item}, {"name": "w2", "ready": "False"}])
    found = node_ready_wait.waiting(items, ["w1"])
    assert found == ({"w1": left} if left else {})
    assert node_ready_wait.clause(found) == (f"w1: {left}" if left else "")


@pytest.mark.parametrize("items", [None, 7, "w1", [7, None, {"name": ["w1"]}], []])
def test_a_node_that_the_api_does_not_list_is_not_waited_for(items):
    assert node_ready_wait.waiting(nodes(items), ["w1"]) == {}
