# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What evidence holds of kubemend's own journal."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    journal_entry,
    step_claim,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    registry,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    journal as node_journal,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    json_line,
)
from tests.unit.support.fake_file_change import BEFORE, NEXT, RUN, Node, sha


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def _collect(node: Node, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(node_journal, "ROOT", str(node.root))
    context = registry.Context({}, [], {})
    return json.loads(json_line.dumps(node_journal.collect(context))), context


@pytest.mark.parametrize(
    ("later", "runs", "told"),
    [(None, [], True), (None, [(7, "kube-scheduler")], False), (step_record.PROVEN, [], False)],
)
def test_a_node_tells_of_a_component_that_is_down_since_a_step_failed(
    node: Node, monkeypatch: pytest.MonkeyPatch, later: "str | None", runs: "list[Any]", told: bool
) -> None:
    """It does not where the component runs again, or where a later step of it went well."""
    for run_id, state in ((RUN, step_record.FAILED), (NEXT, later)):
        if state:
            step_claim.claim(
                journal_entry.StepContext(
                    run_id, "01-m1-x", "edit", "KM101", str(node.root), False, False
                ),
                {"component": "kube-scheduler", "path": "/a"},
            )
            step_claim.end(
                run_id, "01-m1-x", state, "component down: it ends at once", str(node.root)
            )
    monkeypatch.setattr(node_journal, "ROOT", str(node.root))
    down = node_journal.collect(registry.Context({}, runs, {}))["down"]
    assert [(one["run_id"], one["component"], one["reason"]) for one in down] == [
        (RUN, "kube-scheduler", "component down: it ends at once")
    ] * told


def test_a_node_tells_of_its_newest_runs(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_journal, "MAX_RUNS", 2)
    texts = [BEFORE, b"1", b"2", b"3"]
    for number, (old, new) in enumerate(itertools.pairwise(texts)):
        file_change.replace(
            str(node.file), sha(old), new, node.step(f"2026112{number}T090000Z-1a2b3c")
        )
    data, context = _collect(node, monkeypatch)
    assert [run["run_id"][7] for run in data["runs"]] == ["1", "2"]
    assert context.truncated
    assert [run["run_id"] for run in node.runs()] == journal.run_ids(str(node.root))
