# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The trial start of containerd: which hosts are asked, and what becomes of the answer."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.action.containerd_trial import ActionModule
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import document
from tests.unit.plugins.plugin_utils.conftest import World

SERVED = {"state": "served", "cri": True, "lines": ["x"] * 50, "failures": ["y" * 5000]}
PLACE = {"path": "/etc/containerd/config.toml", "line": 3, "key": "grpc.gid"}
RUNS = {"name": "containerd", "pid": 77}


class Asked(ActionModule):
    """The action with a node's answer, and no connection."""

    def __init__(self, folder: Path, answer: Any, status: str = "ok", check: bool = False) -> None:
        self.folder, self.answer, self.status, self.asked = folder, answer, status, 0
        self._task = SimpleNamespace(check_mode=check)

    def _begun(self, tmp: Any, task_vars: Any, spec: Any) -> Any:
        return {}, {}, {"evidence_dir": str(self.folder), "timeout": 30}, "w1"

    def _ask(self, host: str, params: Any, task_vars: Any) -> Any:
        self.asked += 1
        assert params["timeout"] == 30
        if self.status == "ok":
            return "ok", "", {"trial": self.answer}
        return self.status, "no route to host", {}


@pytest.fixture
def evidence() -> dict[str, Any]:
    """Return the evidence of w1, of which a test writes the file."""
    world = World()
    world.data("w1", "next_start")["programs"] = [RUNS]
    return world.documents["w1"]


def tried(tmp_path: Path, evidence: dict[str, Any], *args: Any, **more: Any) -> Any:
    """Return (the result of the task, the trial in the evidence, how often the host was asked)."""
    document.write({"tool_version": "0.1.0", "duration_ms": 0, **evidence}, tmp_path)
    action = Asked(tmp_path, *args, **more)
    result = action.run()
    kept = json.loads((tmp_path / "w1.json").read_text(encoding="utf-8"))
    data = kept["collectors"]["next_start"]["data"] or {}
    assert not result.get("failed")
    return result, data.get("trial"), action.asked


def test_the_answer_becomes_evidence_within_bounds(tmp_path, evidence):
    result, trial, _asked = tried(tmp_path, evidence, {**SERVED, "place": PLACE, "more": {"a": 1}})
    assert (result["state"], result["changed"]) == ("served", False)
    assert (trial["state"], trial["cri"], trial["place"]) == ("served", True, PLACE)
    assert len(trial["lines"]) == 20
    assert len(trial["failures"][0]) <= 800
    assert "more" not in trial


def test_all_other_evidence_stays(tmp_path, evidence):
    before = json.loads(json.dumps(evidence["collectors"]))
    tried(tmp_path, evidence, SERVED)
    kept = json.loads((tmp_path / "w1.json").read_text(encoding="utf-8"))["collectors"]
    del kept["next_start"]["data"]["trial"]
    assert kept == before


@pytest.mark.parametrize(
    ("answer", "status"),
    [(SERVED, "unreachable"), ({"state": "made up"}, "ok"), (None, "ok"), ([1], "ok")],
)
def test_no_answer_is_a_trial_that_was_refused(tmp_path, evidence, answer, status):
    result, trial, _asked = tried(tmp_path, evidence, answer, status)
    assert result["state"] == trial["state"] == "refused"
    assert trial["reason"]


def test_check_mode_asks_nobody(tmp_path, evidence):
    result, trial, asked = tried(tmp_path, evidence, SERVED, check=True)
    assert (trial, asked) == (None, 0)
    assert "check mode" in result["reason"]


@pytest.mark.parametrize("lacks", ["unit", "process", "evidence"])
def test_a_host_without_a_containerd_that_runs_is_not_asked(tmp_path, evidence, lacks):
    record = evidence["collectors"]["next_start"]
    if lacks == "evidence":
        record.update(status="error", data=None)
    elif lacks == "unit":
        record["data"]["runtime_files"] = None
    else:
        record["data"]["programs"] = [{"name": "kubelet", "pid": 1}]
    result, trial, asked = tried(tmp_path, evidence, SERVED)
    assert (result["skipped"], trial, asked) == (True, None, 0)


def test_a_host_without_a_file(tmp_path):
    result = Asked(tmp_path, SERVED).run()
    assert "w1.json" in result["reason"]
    assert not result.get("failed")
