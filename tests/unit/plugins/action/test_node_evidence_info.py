# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the action of a node's evidence adds to the answer, keeps of it and packs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.action.node_evidence_info import ActionModule
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import registry
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program

SCHEDULER = {"component": "kube-scheduler", "static": True, "host_network": True}
ANSWER = {
    "collected_at": "2026-11-21T09:00:00Z",
    "duration_ms": 12,
    "python": "3.9.2",
    "euid": 0,
    "collectors": {"instances": {"status": "ok", "data": {"processes": [SCHEDULER]}}},
}


class Answered(ActionModule):
    """The action with a node's answer, and no connection."""

    def __init__(self, folder: Path, answer: dict[str, Any], status: str = "ok") -> None:
        self.folder, self.answer, self.status = folder, answer, status
        self.params: dict[str, Any] = {}
        self._play_context = SimpleNamespace(remote_addr="192.0.2.1")

    def _begun(
        self, tmp: Any, task_vars: Any, spec: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]:
        args = {name: option.get("default") for name, option in spec.items()}
        return {}, {}, {**args, "evidence_dir": str(self.folder), "groups": ["node"]}, "w1"

    def _ask(
        self, host: str, params: dict[str, Any], task_vars: Any
    ) -> tuple[str, str, dict[str, Any]]:
        self.params = params
        if self.status == "ok":
            return "ok", "", self.answer
        return self.status, "no route to host", {}


def written(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "w1.json").read_text(encoding="utf-8"))
    return document


def test_the_document_has_the_node_s_answer_and_the_groups_of_the_inventory(
    tmp_path: Path,
) -> None:
    result = Answered(tmp_path, ANSWER).run()
    document = written(tmp_path)
    assert (result["changed"], result["status"], result["role"]) == (False, "ok", "control_plane")
    own = ("collected_at", "duration_ms", "python", "euid")
    assert {name: document[name] for name in own} == {name: ANSWER[name] for name in own}
    assert document["collectors"]["instances"]["data"] == {"processes": [SCHEDULER]}
    assert (document["host"], document["groups"]) == ("w1", ["node"])


@pytest.mark.parametrize(
    ("field", "value"),
    [("host", "m1"), ("status", "skipped"), ("groups", ["control_plane"]), ("address", "::1")],
)
def test_what_the_controller_knows_is_not_taken_from_the_node(
    tmp_path: Path, field: str, value: Any
) -> None:
    Answered(tmp_path, {**ANSWER, field: value}).run()
    assert written(tmp_path)[field] != value


def test_an_answer_of_another_shape_is_an_error_of_its_host(tmp_path: Path) -> None:
    result = Answered(tmp_path, {**ANSWER, "collectors": ["instances"]}).run()
    assert (result["status"], result["role"]) == ("error", "unknown")
    assert written(tmp_path)["collectors"] == {}


def test_a_host_that_is_silent_has_a_document_too(tmp_path: Path) -> None:
    result = Answered(tmp_path, {}, "unreachable").run()
    assert (result["status"], result["role"]) == ("unreachable", "unknown")
    assert not result.get("failed")
    assert written(tmp_path)["groups"] == ["node"]


def test_every_option_but_the_folder_goes_to_the_node(tmp_path: Path) -> None:
    action = Answered(tmp_path, ANSWER)
    action.run()
    assert set(action.params) == {*ActionModule.SPEC, "timeout"}


def test_the_program_ships_every_collector() -> None:
    sources = node_program._sources(ActionModule.ENTRY.partition(":")[0], ActionModule.SHIP)
    folder = f"{node_program.PACKAGE}plugins.module_utils.collectors.node."
    assert {folder + name for name in registry.BY_NAME} <= set(sources)
