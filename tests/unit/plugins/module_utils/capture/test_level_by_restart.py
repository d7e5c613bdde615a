# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service that takes back the levels which a restart raised."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.capture import (
    kubelet_level,
    level_by_restart,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    journal_entry,
    step_claim,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    registry,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import devices
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    journal as node_journal,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_times
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    lock,
    raised_levels,
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    recovery,
)
from tests.unit.support.facts import facts
from tests.unit.support.fake_kubelet_verbosity import NEXT, RUN, Node, clean_node
from tests.unit.support.waiting import Clock


class Sleeper(Clock):
    """Time that passes as somebody sleeps, with every nap written down."""

    def __init__(self, slept: list[float]) -> None:
        super().__init__()
        self.slept = slept

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        super().sleep(seconds)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    yield from clean_node(tmp_path, monkeypatch)


def test_the_service_takes_it_back_once_and_under_the_lock(node: Node) -> None:
    node.raise_level()
    step = journal_entry.StepContext(RUN, "restore", "levels", "asked for", node.root)
    assert level_by_restart.take_back(step, 1) == [("kubelet", "restored", "")]
    assert level_by_restart.take_back(step, 2) == []
    assert node.argv[-1] == "--v=2"


def levels(node: Node, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Tell what evidence says is still raised."""
    monkeypatch.setattr(node_journal, "ROOT", node.root)
    return [
        (one["overdue"], one["by_hand"])
        for one in node_journal.collect(registry.Context({}, [], {}))["levels"]
    ]


def edit(node: Node, old: str, new: str, restarts: bool) -> None:
    node.env.write_text(node.env.read_text().replace(old, new))
    if restarts:
        node._systemctl("restart")


@pytest.mark.parametrize("restarts", [True, False])
def test_a_file_that_was_edited_meanwhile_keeps_the_level_up_and_says_so(
    node: Node, monkeypatch: pytest.MonkeyPatch, restarts: bool
) -> None:
    """Neither of kubemend's bytes are there any more; the edit kept the argument.

    Every later question has that in its answer, and the service ends all the same.
    """
    node.raise_level()
    edit(node, "OTHER=1", "OTHER=2", restarts)
    step = journal_entry.StepContext(RUN, "restore", "levels", "asked for", node.root)
    ((component, state, why),) = level_by_restart.take_back(step, 1)
    assert (component, state) == ("kubelet", "by_hand")
    facts(why, str(node.env), "--v=4", "by hand", "--v=2")
    assert node.left() == []
    assert lock.read(node.root) is None
    assert levels(node, monkeypatch) == [(True, why)]
    assert "OTHER=2" in node.env.read_text()
    done = step_executor.work(
        {
            "run_id": NEXT,
            "root": node.root,
            "lock": None,
            "step": {"id": "restore", "remedy": "restore_levels", "host": "w1"},
        }
    )
    assert (done["state"], done["reason"]) == ("failed", why)
    edit(node, "--v=4", "--v=2", True)
    assert levels(node, monkeypatch) == []


def test_only_the_last_run_that_raised_it_is_named(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was down when that one raised it.

    What the one before left is no trouble any more, and none while the other is at work.
    """
    node.raise_level()
    edit(node, '--v=4"\nOTHER=1', '--v=2"\nOTHER=2', True)
    step = node.step()
    assert (
        kubelet_level.raise_level(
            journal_entry.StepContext(NEXT, step["id"], "level", "asked for", node.root), step, "w1"
        )[0]
        == "proven"
    )
    assert raised_levels.edited(RUN, node.root) == []
    assert len(levels(node, monkeypatch)) == 1
    level_by_restart.take_back(
        journal_entry.StepContext(NEXT, "restore", "levels", "asked for", node.root), 1
    )
    assert levels(node, monkeypatch) == []


def test_an_edit_that_took_the_level_out(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.raise_level()
    edit(node, "--v=4", "--v=7", False)
    step = journal_entry.StepContext(RUN, "restore", "levels", "asked for", node.root)
    ((component, state, why),) = level_by_restart.take_back(step, 1)
    assert (component, state) == (
        "kubelet",
        "by_hand",
    )
    assert "kubelet still runs with it: restart it by hand" in why
    node._systemctl("restart")
    ((component, state, why),) = level_by_restart.take_back(step, 2)
    assert (component, state) == ("kubelet", "restored")
    facts(why, str(node.env), "kubelet", "7")
    assert levels(node, monkeypatch) == []


def test_one_of_two_files_that_was_edited_does_not_keep_the_level_up(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.raise_level(node.beside())
    (node.path / "one" / "made").write_text("theirs, --v=4\n")
    step = journal_entry.StepContext(RUN, "restore", "levels", "asked for", node.root)
    ((component, state, why),) = level_by_restart.take_back(step, 1)
    assert (component, state) == ("kubelet", "restored")
    assert "runs at level 2 now" in why
    assert node.argv[-1] == "--v=2"
    assert levels(node, monkeypatch) == []


def test_the_service_finishes_first_what_was_interrupted(node: Node) -> None:
    node.raise_level()
    node.forget_proof()
    step = journal_entry.StepContext(RUN, "restore", "levels", "asked for", node.root)
    assert level_by_restart.take_back(step, 1) == [("kubelet", "restored", "")]
    assert node.argv[-1] == "--v=2"
    assert node.left() == []
    assert step_record.unproven(node.root) == []


def test_an_end_that_was_not_recorded_is_not_waited_for(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk was full when the way back had ended.

    The service lives on, but is not at work on that step: it waited for itself, each time again.

    The level is down, so that nothing else is said; the service goes on until that is recorded,
    too.
    """
    node.raise_level()
    end, slept = step_claim.end, list[float]()

    def refused(*dummy: Any, **more: Any) -> None:
        raise ChangeError("how step revert-kubelet-1 ended was not recorded")

    for module in (level_by_restart, recovery):
        monkeypatch.setattr(module, "time", Sleeper(slept))
    monkeypatch.setattr(step_claim, "end", refused)
    step = journal_entry.StepContext(RUN, "restore", "levels", "asked for", node.root)
    ((component, state, why),) = level_by_restart.take_back(step, 1)
    assert (component, state) == ("kubelet", "restored")
    assert why.startswith("how step revert-kubelet-1 ended was not recorded")
    assert "KM902" in why
    assert node.argv[-1] == "--v=2"
    assert node.left() == ["kubelet"]
    monkeypatch.setattr(step_claim, "end", end)
    assert level_by_restart.take_back(step, 2)[0][1] == "restored"
    assert not slept
    assert node.argv[-1] == "--v=2"
    assert node.left() == []
    assert step_record.unproven(node.root) == []


def test_a_program_that_is_at_work_is_waited_for(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.raise_level()
    node.forget_proof()
    slept: list[float] = []
    monkeypatch.setattr(level_by_restart, "time", Sleeper(slept))
    path = Path(node.root) / "journal" / RUN / "proof-raise-kubelet.json"
    other = os.getppid()
    by = {
        "pid": other,
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "ticks": step_record.ticks(other),
    }
    path.write_text(json.dumps({**json.loads(path.read_text()), "by": by}))
    level_by_restart._wait(
        journal_entry.StepContext(RUN, "restore", "levels", "asked for", node.root)
    )
    assert len(slept) == step_times.BACK_OFF / 0.5


def test_the_service_says_why_it_could_not_and_holds_no_lock_for_it(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.raise_level()
    monkeypatch.setattr(devices, "running", lambda: {"uid-1"})
    step = journal_entry.StepContext(RUN, "restore", "levels", "asked for", node.root)
    ((component, state, why),) = level_by_restart.take_back(step, 1)
    assert (component, state) == ("kubelet", "failed")
    assert "pods with devices run" in why
    assert node.left() == ["kubelet"]
    assert lock.read(node.root) is None
    assert level_by_restart.take_back(step, 2, allow=["kubelet_restart"]) == [
        ("kubelet", "restored", "")
    ]


def test_what_did_not_come_up_again_is_told_to_whoever_asks_later(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service came first, its restart failed.

    The controller, which finds nothing more to do, hears of it.
    """
    node.raise_level()
    node.deaf = True
    step = journal_entry.StepContext(RUN, "restore", "levels", "asked for", node.root)
    ((_dummy, state, why),) = level_by_restart.take_back(step, 1)
    assert state == "failed"
    assert "was not proven after its files were restored" in why
    node.pid += 1  # another process by now, and not what it should be
    assert node.left() == []
    assert level_by_restart.take_back(step, 0) == [("kubelet", "failed", why)]


@pytest.mark.parametrize(
    ("state", "changed", "expected"),
    [
        ("done", True, "raised"),
        ("failed", True, "unsure"),
        ("failed", False, "refused"),
        ("refused", False, "refused"),
        ("rolled_back", True, "refused"),
    ],
)
def test_the_level_of_a_component_is_raised_as_its_step_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, changed: bool, expected: str
) -> None:
    pod_log = tmp_path / "0.log"
    pod_log.write_text("what it logged before\n")
    monkeypatch.setattr(
        level_by_restart.component_process, "starts", lambda _component: [str(pod_log)]
    )
    done = {"state": state, "changed": changed, "reason": f"because {state}"}
    steps = []

    def work(params: "dict[str, Any]") -> "dict[str, Any]":
        steps.append(params)
        return done

    monkeypatch.setattr(step_executor, "work", work)
    root = tmp_path / "kubemend"
    context = journal_entry.StepContext(RUN, "s", "log level", "asked for", str(root), False, False)
    target = {"component": "kube-scheduler", "step": {"id": "s", "remedy": "edit_manifest"}}
    assert level_by_restart.raise_one(context, target, {"lock": {"seconds": 5}})[0] == expected
    assert [(params["step"], params["lock"]) for params in steps] == [
        (target["step"], {"seconds": 5})
    ]
    (kept,) = root.rglob("log-kube-scheduler-*")
    assert kept.read_text() == pod_log.read_text()
