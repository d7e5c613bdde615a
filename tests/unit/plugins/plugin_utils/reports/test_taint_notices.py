# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node_unreachable says of each Node that is not Ready.

Its condition, its lease, and whose its taints are.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    taint_notices,
)

RECORDED = Path(__file__).resolve().parents[4] / "fixtures" / "recorded"
UNREACHABLE = [
    {"key": "node.kubernetes.io/unreachable", "effect": effect}
    for effect in ("NoSchedule", "NoExecute")
]
CAF = {"key": "caf", "value": "log", "effect": "NoExecute"}


def told(documents, symptom="node_unreachable"):
    return taint_notices.render_sentences(fault_engine.evaluate_clusters(documents)[1], symptom)


def node(world, name="w1", ready="Unknown", **more):
    item = next(one for one in world.data("api", "nodes")["items"] if one["name"] == name)
    item.update(
        ready=ready,
        conditions=[{"type": "Ready", "status": ready, "since": "2027-01-15T07:50:00Z"}],
        **more,
    )
    return [*world.documents.values(), world.api]


def test_a_controllers_taint_and_somebodys_own_are_told_apart(world):
    (sentence,) = told(node(world, taints=[*UNREACHABLE, CAF], lease="2027-01-15T07:49:20Z"))
    state, _dummy, rest = sentence.partition(". ")
    assert state.startswith("w1: Ready is Unknown since 2027-01-15T07:50:00Z; ")
    assert state.endswith(" 2027-01-15T07:49:20Z")
    owned, _dummy, command = rest.partition(". See: ")
    theirs, _dummy, own = owned.partition(": ")[2].rpartition(", ")
    assert theirs.startswith("node.kubernetes.io/unreachable (NoSchedule, NoExecute) ")
    assert theirs.endswith(" the node lifecycle controller")
    assert own.startswith("caf=log (NoExecute) ")
    assert own.endswith(" a user of this cluster")
    assert command == "kubectl describe node w1"
    assert len(sentence) < 350


def test_a_node_that_is_ready_and_has_a_controllers_taint_still(world):
    (sentence,) = told(node(world, ready="True", taints=UNREACHABLE[:1]))
    assert sentence.startswith("w1: Ready is True since")
    assert "lease" not in sentence
    assert "the node lifecycle controller" in sentence


@pytest.mark.parametrize(
    "taints", [[], [CAF], [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]]
)
def test_of_a_node_that_is_well_nothing_is_said(world, taints):
    assert told(node(world, ready="True", taints=taints)) == ()


def test_of_another_symptom_and_of_an_audit_nothing_is_said(world):
    documents = node(world, taints=UNREACHABLE)
    assert told(documents, None) == told(documents, "duplicate_pods") == ()


def test_a_fleet_is_told_by_its_first_nodes(world):
    items = world.data("api", "nodes")["items"]
    items += [
        {**items[-1], "name": f"x{number}", "ready": "False", "taints": []} for number in range(9)
    ]
    sentences = told([*world.documents.values(), world.api])
    assert len(sentences) == 6
    assert "it carries no taint" in sentences[0]
    assert sentences[-1].endswith("are x5, x6, x7, x8 too")


def test_what_nobody_foresaw_ends_no_run(world, monkeypatch):
    documents = node(world, taints=UNREACHABLE)
    monkeypatch.setattr(taint_notices, "views", lambda cluster: [None])
    assert told(documents)[0].startswith("nothing can be determined of the taints of nodes: ")


def test_a_real_node_that_is_down():
    (sentence,) = told(evidence_sources.stream([str(RECORDED / "v1.36.3-node-down" / "evidence")]))
    assert sentence.startswith("w1: Ready is Unknown since 2026-11-22T22:20:24Z; ")
    assert "2026-11-22T22:20:09Z" in sentence
    assert sentence.endswith(". See: kubectl describe node w1")
