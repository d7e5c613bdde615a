# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The revert of a run, host by host: what is asked of each, what forbids it, what is reported."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.action import revert_run as action_module
from ansible_collections.kubemend.remediation.plugins.action.revert_run import ActionModule
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_of_node,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    cluster_lock as run_cluster_lock,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    revert as run_revert,
)
from tests import schemas
from tests.unit.plugins.plugin_utils.run import test_revert

RUN, FORMER = "20261121T120000Z-1a2b3c", test_revert.OLD
DONE = {"paths": [test_revert.file("restored", "result")], "components": [], "changed": True}
REFUSED = {"paths": [], "components": [], "changed": False, "error": "the lock is gone"}
LOST = ("unreachable", "timed out", {})


class Answered(ActionModule):
    """The action on one host, with the host's answer and no connection."""

    def __init__(self, args: dict[str, Any], host: str, check_mode: bool, answer: Any) -> None:
        self.args, self.host, self.answer = args, host, answer
        self.asked: list[dict[str, Any]] = []
        self._task = SimpleNamespace(check_mode=check_mode)

    def _begun(
        self, tmp: Any, task_vars: Any, spec: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]:
        defaults = {name: option.get("default") for name, option in spec.items()}
        return {}, task_vars or {}, {**defaults, **self.args}, self.host

    def _ask(
        self, host: str, params: dict[str, Any], task_vars: Any
    ) -> tuple[str, str, dict[str, Any]]:
        assert host == self.host
        self.asked.append(params)
        return self.answer if isinstance(self.answer, tuple) else ("ok", "", self.answer)


class Controller:
    """The report directory of a run that reverts FORMER, on hosts that listed it."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.hosts = ["w1", "w2"]

    def action(
        self,
        state: str,
        host: str = "w1",
        answer: Any = None,
        check_mode: bool = False,
        **more: Any,
    ) -> Answered:
        args = {
            "state": state,
            "report_dir": self.folder,
            "run_id": RUN,
            "reverts": FORMER,
            "hosts": self.hosts,
            "locked": False,
            "terminal": False,
            **more,
        }
        return Answered(args, host, check_mode, DONE if answer is None else answer)

    def run(self, *args: Any, **more: Any) -> dict[str, Any]:
        return self.action(*args, **more).run(task_vars={"hostvars": {}})

    def list(self, *hosts: str, state: str = "restore") -> None:
        for host in hosts:
            answer = {"runs": [test_revert.run(FORMER, test_revert.file(state))]}
            self.run("listed", host, answer)

    def kept(self, host: str, suffix: str) -> Any:
        return run_revert._read(self.folder, host, suffix)

    def report(self) -> dict[str, Any]:
        text = Path(self.folder, "report.json").read_text(encoding="utf-8")
        return schemas.checked("report", json.loads(text))


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(tmp_path)


def test_a_list_is_kept_and_only_counts_are_returned(controller: Controller) -> None:
    answer = {"runs": [test_revert.run(FORMER, test_revert.file(), test_revert.file())]}
    result = controller.run("listed", answer=answer)
    assert (result["changed"], result["status"]) == (False, "ok")
    assert (result["runs"], result["files"]) == (1, 2)
    assert controller.kept("w1", run_revert.LISTED)["answer"] == answer
    assert test_revert.MANIFEST not in json.dumps(result)


@pytest.mark.parametrize(
    ("check_mode", "reverts", "named"),
    [(False, FORMER, False), (True, None, False), (True, FORMER, True)],
)
def test_only_check_mode_asks_for_the_preconditions_of_the_run(
    controller: Controller, check_mode: bool, reverts: str | None, named: bool
) -> None:
    action = controller.action(
        "listed", answer={"runs": []}, check_mode=check_mode, reverts=reverts, allow=["fenced"]
    )
    action.run()
    (params,) = action.asked
    assert params["state"] == "listed"
    assert ("reverts" in params) is named
    assert params.get("allow") == (["fenced"] if named else None)


def test_hosts_with_a_part_of_the_run_are_chosen(controller: Controller) -> None:
    controller.list("w1", "w2")
    result = controller.run("chosen", asked=["w1", "w2"])
    assert (result["run"], result["hosts"]) == (FORMER, ["w1", "w2"])
    assert result["seconds"] >= 2 * revert_of_node.budget(1)


def test_check_mode_chooses_no_host(controller: Controller) -> None:
    controller.list("w1", "w2")
    result = controller.run("chosen", asked=["w1", "w2"], check_mode=True)
    assert (result["run"], result["hosts"], result["seconds"]) == (None, [], 0)


def test_a_host_that_was_asked_and_has_no_list_is_silent(controller: Controller) -> None:
    controller.list("w1")
    result = controller.run("chosen", reverts="last", asked=["w1", "w2"])
    assert result["hosts"] == []
    assert controller.kept("w2", run_revert.LISTED)["status"] == "error"


def test_a_host_is_reverted_within_its_time(controller: Controller) -> None:
    controller.list("w1", "w2")
    run_cluster_lock.note(
        controller.folder, run_cluster_lock.Held("w1", None, "ok", held=True, by=RUN)
    )
    action = controller.action("reverted", locked=True, ttl=100, allow=["fenced"])
    result = action.run()
    (params,) = action.asked
    assert (params["state"], params["reverts"], params["host"]) == ("reverted", FORMER, "w1")
    assert params["allow"] == ["fenced"]
    assert params["timeout"] >= revert_of_node.budget(1)
    assert params["lock"] == {"seconds": 100 + params["timeout"]}
    assert (result["changed"], result["state"], result["restored"]) == (True, "done", 1)
    assert not result.get("failed")
    assert controller.kept("w1", run_revert.BEGUN) == {"run_id": RUN}
    assert controller.kept("w1", run_revert.DONE)["answer"] == DONE


def test_check_mode_asks_no_host_to_revert(controller: Controller) -> None:
    controller.list("w1", "w2")
    action = controller.action("reverted", check_mode=True)
    result = action.run()
    assert (result["changed"], result["skipped"], action.asked) == (False, True, [])
    assert controller.kept("w1", run_revert.BEGUN) is None


def refused(controller: Controller, host: str = "w1", **more: Any) -> str:
    """Return why a host is not begun."""
    action = controller.action("reverted", host, **more)
    before = controller.kept(host, run_revert.BEGUN)
    result = action.run()
    assert (result["failed"], result["changed"], result["state"]) == (True, False, "refused")
    assert action.asked == []
    assert controller.kept(host, run_revert.BEGUN) == before
    return str(result["msg"])


def test_a_host_without_a_part_of_the_run_is_refused(controller: Controller) -> None:
    controller.list("w1")
    assert FORMER in refused(controller, "w2")


def test_without_the_lock_no_host_is_begun(controller: Controller) -> None:
    controller.list("w1", "w2")
    refused(controller, locked=True)
    run_cluster_lock.note(
        controller.folder, run_cluster_lock.Held("w1", None, "ok", held=False, by=FORMER)
    )
    assert FORMER in refused(controller, locked=True)


def test_no_host_is_begun_twice(controller: Controller) -> None:
    controller.list("w1", "w2")
    controller.run("reverted")
    assert "already" in refused(controller)


@pytest.mark.parametrize("answer", [REFUSED, LOST])
def test_after_a_host_that_is_not_done_none_is_begun(controller: Controller, answer: Any) -> None:
    controller.list("w1", "w2")
    result = controller.run("reverted", answer=answer)
    assert result["failed"]
    assert result["state"] in ("refused", "failed")
    assert "w1" in refused(controller, "w2")


def test_foreign_content_of_a_file_stops_no_other_host(controller: Controller) -> None:
    controller.list("w1", "w2")
    file = {**test_revert.file("refused", "result"), "state": "conflict"}
    controller.run("reverted", answer={"paths": [file], "components": [], "changed": False})
    assert controller.run("reverted", "w2")["state"] == "done"


def test_after_ansible_was_ended_no_host_is_begun(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller.list("w1", "w2")
    monkeypatch.setattr(action_module, "orphaned", lambda: True)
    refused(controller)


def test_a_revert_that_is_done_is_reported_as_ok(controller: Controller) -> None:
    controller.list("w1", "w2")
    for host in controller.hosts:
        controller.run("reverted", host)
    result = controller.run("reported")
    assert (result["changed"], result["exit_reason"], result["run"]) == (False, "ok", FORMER)
    assert not result.get("failed")
    report = controller.report()
    assert (report["started"], report["exit_code"], report["exit_reason"]) == (
        "2026-11-21T12:00:00Z",
        0,
        "ok",
    )
    assert FORMER in Path(controller.folder, "report.txt").read_text(encoding="utf-8")


def test_a_revert_that_is_incomplete_fails_the_task(controller: Controller) -> None:
    controller.list("w1", "w2")
    controller.run("reverted")
    result = controller.run("reported")
    assert (result["failed"], result["exit_reason"]) == (True, "failed")
    assert "w2" in result["msg"]


def test_a_lock_that_was_not_obtained_is_the_reason(controller: Controller) -> None:
    controller.list("w1", "w2")
    result = controller.run("reported", locked=True)
    assert (result["failed"], result["exit_reason"]) == (True, "locked")
    assert controller.report()["exit_reason"] == "refused"


def test_only_the_requested_formats_are_written(controller: Controller) -> None:
    controller.list("w1", "w2")
    controller.run("reported", check_mode=True, formats=["junit"])
    names = {path.name for path in Path(controller.folder).iterdir() if path.is_file()}
    assert names == {"report.txt", "report.json", "junit.xml"}


@pytest.mark.parametrize("state", ["listed", "reported"])
def test_a_folder_that_is_gone_is_bad_input(controller: Controller, state: str) -> None:
    controller.folder += "/gone"
    result = controller.run(state, answer={"runs": []})
    assert (result["failed"], result["exit_reason"], result["changed"]) == (True, "input", False)
    assert controller.folder in result["msg"]
