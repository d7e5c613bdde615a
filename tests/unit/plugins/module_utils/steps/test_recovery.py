# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A step whose program was killed, by what the journal has of it.

Proved only where its bytes are there, and nothing is done twice.
"""

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    signals,
    step_claim,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    step_record,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change,
    preconditions,
    registry,
)
from tests.unit.support.facts import facts, facts_of_each
from tests.unit.support.fake_file_change import AFTER, BEFORE, NEXT, RUN, Node, sha


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Return a node without a run at work.

    A look at its kubelet or at a component is an error.
    """

    def never(*dummy: Any, **more: Any) -> Any:
        raise preconditions.PreconditionFailed("the guards were asked")

    monkeypatch.setattr(step_record, "alive", lambda record: False)
    monkeypatch.setattr(preconditions, "resume", never)
    monkeypatch.setattr(signals, "terminate", never)
    made = Node(tmp_path)
    claimed = {
        "component": "kube-scheduler",
        "host": "m1",
        "remedy": "edit_manifest",
        "limit": 5,
        "kind": "splice",
        "path": str(made.file),
        "expect": {"component": "kube-scheduler"},
        "guard": {},
        "former": None,
    }
    assert step_claim.claim(made.step(), claimed) is None
    return made


def recovered(node: Node) -> "tuple[str, str]":
    answer = step_executor.work(
        {
            "run_id": NEXT,
            "root": str(node.root),
            "lock": None,
            "step": {"id": "recover", "remedy": "recover", "host": "m1"},
        }
    )
    return answer["state"], answer["reason"]


def ended(node: Node) -> "tuple[str, Any]":
    record = step_record.read(RUN, node.step().step, str(node.root))
    return record["state"], record.get("reason")


def test_killed_before_it_wrote_there_is_nothing_to_prove(node: Node) -> None:
    state, why = recovered(node)
    assert state == "done"
    assert "nothing of it was written" in why
    assert ended(node) == ("not_done", "interrupted before it was written")


def test_killed_behind_the_write_it_is_proved_under_the_guards(node: Node) -> None:
    """The guards refuse it here: it stays open, and the run after this one tries again."""
    node.swap()
    state, why = recovered(node)
    assert state == "failed"
    assert "the guards were asked" in why
    assert ended(node) == ("awaited", None)
    assert node.bytes() == AFTER


def test_killed_behind_the_way_back_nothing_is_done_twice(node: Node) -> None:
    """The former bytes are there.

    Waiting for a proof of the new ones would end in a failure, and somebody would be sent to look
    for nothing.
    """
    entry = node.swap()["entry"]
    file_change.replace(str(node.file), sha(AFTER), BEFORE, node.step().also(reverts=entry))
    state, why = recovered(node)
    assert state == "done"
    assert "its former bytes were back already" in why
    assert node.bytes() == BEFORE
    state, reason = ended(node)
    assert state == "rolled_back"
    facts(reason, "put back")
    assert recovered(node) == ("done", "nothing was interrupted")


def test_a_way_back_that_was_not_written_is_none(node: Node) -> None:
    entry = node.swap()["entry"]
    with pytest.raises(storage.ChangeError):
        file_change.replace(str(node.file), sha(BEFORE), BEFORE, node.step().also(reverts=entry))
    assert "the guards were asked" in recovered(node)[1]
    assert ended(node)[0] == "awaited"


@pytest.mark.parametrize(
    "error",
    [
        preconditions.PreconditionFailed("the kubelet is down"),
        storage.ChangeError("the kubelet is down"),
    ],
)
def test_one_of_which_nothing_can_be_told_holds_up_no_other(
    node: Node, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """It stays open, and is a failure of the recovery; the second record is ended."""

    def refuse(*dummy: Any) -> Any:
        raise error

    leader = {
        "component": "kube-scheduler",
        "host": "m1",
        "remedy": "restart_leader",
        "limit": 5,
        "kind": "none",
        "path": None,
        "expect": {"component": "kube-scheduler"},
        "guard": {},
        "former": {"pid": 1, "ticks": 0},
    }
    assert step_claim.claim(node.step().also(step="00-m1-restart_leader"), leader) is None
    monkeypatch.setattr(preconditions, "resume", refuse)
    state, why = recovered(node)
    assert state == "failed", why
    assert f"step 00-m1-restart_leader of {RUN}: refused (the kubelet is down); step " in why, why
    assert ended(node) == ("not_done", "interrupted before it was written")
    assert [record["step"] for record in step_record.unproven(str(node.root))] == [
        "00-m1-restart_leader"
    ]


def test_an_end_that_is_not_recorded_is_told(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step is done, and found again by the next run. The report says why."""

    def full(*dummy: Any, **more: Any) -> None:
        raise storage.ChangeError("how step x ended was not recorded: no space")

    monkeypatch.setattr(step_claim, "end", full)
    answer = step_executor.work(
        {
            "run_id": NEXT,
            "root": str(node.root),
            "lock": None,
            "step": {"id": "recover", "remedy": "recover", "host": "m1"},
        }
    )
    assert answer["state"] == "done"
    facts_of_each(answer["notes"], ("step x", "no space", "KM902"))


def test_every_step_with_a_module_of_its_own_names_it() -> None:
    """No step falls to the handler that is left over."""
    for kind in step_kinds.KINDS.values():
        handler = registry.handler_of(kind.name)
        assert (handler is None) == (kind.handler is None), kind.name
        is_of_managers = type(handler).__module__.endswith(".cpu_manager_reset")
        assert is_of_managers == (kind.check_mode == step_kinds.MANAGERS), kind.name
    with pytest.raises(KeyError):
        registry.handler_of("one_more")
