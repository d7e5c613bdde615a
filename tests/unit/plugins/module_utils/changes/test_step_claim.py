# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a step: begun once, by whom, and how it ended."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    durable_files,
    node_lock,
    step_claim,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    step_record,
    storage,
)
from tests.unit.support.fake_file_change import NEXT, RUN, Node
from tests.unit.support.step_records import FACTS, claim, path, root, state


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_step_is_begun_once(node: Node) -> None:
    assert claim(node) is None
    record = step_record.read(RUN, "01-x", root(node))
    assert (record["state"], record["run_id"], record["step"], record["component"]) == (
        "awaited",
        RUN,
        "01-x",
        "kube-scheduler",
    )
    assert (record["by"]["pid"], record["by"]["ticks"]) == (
        os.getpid(),
        step_record.ticks(os.getpid()),
    )
    assert len(record["by"]["boot_id"]) == 36
    again = claim(node, component="another")
    assert again == record
    assert step_record.read(RUN, "01-x", root(node)) == record


def test_one_that_ended_is_not_begun_again(node: Node) -> None:
    claim(node)
    step_claim.end(RUN, "01-x", step_record.FAILED, "why", root(node), seen={"pid": 7})
    record = claim(node)
    assert (record["state"], record["reason"], record["seen"]) == ("failed", "why", {"pid": 7})
    assert record["ended"]
    assert record["component"] == "kube-scheduler"


def test_in_check_mode_nothing_is_begun(node: Node) -> None:
    with pytest.raises(step_claim.Looked):
        step_claim.claim(node.step(check=True), FACTS)
    assert not node.root.exists()


def test_nothing_is_begun_without_the_lock_of_its_run(node: Node) -> None:
    with pytest.raises(storage.ChangeError, match="does not hold the lock"):
        step_claim.claim(node.step(must_hold=True), FACTS)
    node_lock.acquire(NEXT, {}, 60, root=root(node))
    with pytest.raises(node_lock.LockHeld):
        claim(node)
    assert step_record.unproven(root(node)) == []


def test_a_record_that_cannot_be_read_is_no_leave_to_begin(node: Node) -> None:
    """It is not over either: it stays open until an operator has looked."""
    claim(node)
    path(node).write_text("{")
    with pytest.raises(
        storage.ChangeError, match="nothing was changed: the proof of step 01-x cannot be read"
    ):
        claim(node)
    record = step_record.read(RUN, "01-x", root(node))
    assert (record["state"], record["by"], record["run_id"], record["step"]) == (
        "awaited",
        {},
        RUN,
        "01-x",
    )
    assert record["error"]
    (found,) = step_record.unproven(root(node))
    assert (found["run_id"], found["step"], found["running"], found["entry"]) == (
        RUN,
        "01-x",
        False,
        None,
    )
    assert found["error"]


def test_without_a_record_nothing_is_begun(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*dummy: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "put", full)
        with pytest.raises(
            storage.ChangeError, match="nothing was changed, because the journal in"
        ):
            claim(node)
    assert step_record.read(RUN, "01-x", root(node)) is None
    assert claim(node) is None


def test_an_end_that_cannot_be_recorded_is_told_and_left_to_the_next_run(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(node)
    step = node.step().also(step="01-x")

    def full(*dummy: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "put", full)
        with pytest.raises(storage.ChangeError, match="how step 01-x ended was not recorded"):
            step_claim.end(RUN, "01-x", step_record.PROVEN, root=root(node))
        found, why, seen = step_claim.ended(step, step_record.ROLLED_BACK, "it crashed", {"pid": 7})
        assert (found, seen) == ("rolled_back", {"pid": 7})
        assert why.startswith("it crashed; how step 01-x ended")
        assert "KM902" in why
        assert step_claim.ended(step, step_record.PROVEN, None)[1].startswith("how step 01-x ended")
    assert state(node) == "awaited"
    assert step_claim.ended(step, step_record.ROLLED_BACK, "it crashed", {"pid": 7}) == (
        "rolled_back",
        "it crashed",
        {"pid": 7},
    )
    record = step_record.read(RUN, "01-x", root(node))
    assert (record["state"], record["reason"], record["ended_by"], record["seen"]) == (
        "rolled_back",
        "it crashed",
        RUN,
        {"pid": 7},
    )


def test_an_end_behind_a_busy_flock_does_not_say_that_nothing_was_changed(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(node)
    monkeypatch.setattr(
        durable_files.exclusive.__wrapped__, "__defaults__", (0.1, "nothing was changed")
    )
    with durable_files.exclusive(root(node)):
        found, why, _dummy = step_claim.ended(
            node.step().also(step="01-x"), step_record.PROVEN, None
        )
    assert found == "proven", why
    assert "nothing was changed" not in why, why
    assert "KM902" in why, why
    assert why.startswith(
        "how step 01-x ended was not recorded: another process changes this node"
    ), why
    assert state(node) == "awaited"


def test_who_never_began_has_no_end(node: Node) -> None:
    step_claim.end(RUN, "01-x", step_record.PROVEN, root=root(node))
    assert step_record.read(RUN, "01-x", root(node)) is None
    assert step_record.unproven(root(node)) == []
    assert step_record.of_run(RUN, root(node)) == []
    step_claim.tell(RUN, "01-x", "halfway", root(node))
    claim(node)
    with pytest.raises(storage.ChangeError, match="was not recorded"):
        step_claim.end(RUN, "02-y", step_record.PROVEN, root=root(node))
    assert step_record.read(RUN, "02-y", root(node)) is None


def test_how_far_it_is(node: Node) -> None:
    claim(node)
    step_claim.tell(RUN, "01-x", "halfway", root(node))
    step_claim.tell(RUN, "01-x", "a pod is left", root(node), name="ended_so")
    record = step_record.read(RUN, "01-x", root(node))
    assert (record["progress"], record["ended_so"], record["state"]) == (
        "halfway",
        "a pod is left",
        "awaited",
    )
    path(node).write_text("[")
    # what cannot be written is not told, and stops nobody
    step_claim.tell(RUN, "01-x", "further", root(node))
    assert path(node).read_text() == "["
