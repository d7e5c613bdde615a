# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a step's proof.

Begun once, by whom, how it ended, and which step a later run has to prove or undo.
"""

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    lock,
    step_record,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change,
)
from tests.unit.support.fake_file_change import AFTER, BEFORE, NEXT, RUN, Node, sha

FACTS = {"component": "kube-scheduler", "host": "m1"}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def root(node: Node) -> str:
    return str(node.root)


def claim(node: Node, run_id: str = RUN, name: str = "01-x", **facts: Any) -> Any:
    return step_record.claim(node.step(run_id).also(step=name), {**FACTS, **facts})


def path(node: Node, run_id: str = RUN, name: str = "01-x") -> Path:
    return node.root / "journal" / run_id / step_record.name_of(name)


def state(node: Node, run_id: str = RUN, name: str = "01-x") -> Any:
    return step_record.read(run_id, name, root(node))["state"]


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
    step_record.end(RUN, "01-x", step_record.FAILED, "why", root(node), seen={"pid": 7})
    record = claim(node)
    assert (record["state"], record["reason"], record["seen"]) == ("failed", "why", {"pid": 7})
    assert record["ended"]
    assert record["component"] == "kube-scheduler"


def test_in_check_mode_nothing_is_begun(node: Node) -> None:
    with pytest.raises(step_record.Looked):
        step_record.claim(node.step(check=True), FACTS)
    assert not node.root.exists()


def test_nothing_is_begun_without_the_lock_of_its_run(node: Node) -> None:
    with pytest.raises(storage.ChangeError, match="does not hold the lock"):
        step_record.claim(node.step(must_hold=True), FACTS)
    lock.acquire(NEXT, {}, 60, root=root(node))
    with pytest.raises(lock.LockHeld):
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
        patch.setattr(storage, "put", full)
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
        patch.setattr(storage, "put", full)
        with pytest.raises(storage.ChangeError, match="how step 01-x ended was not recorded"):
            step_record.end(RUN, "01-x", step_record.PROVEN, root=root(node))
        found, why, seen = step_record.ended(
            step, step_record.ROLLED_BACK, "it crashed", {"pid": 7}
        )
        assert (found, seen) == ("rolled_back", {"pid": 7})
        assert why.startswith("it crashed; how step 01-x ended")
        assert "KM902" in why
        assert step_record.ended(step, step_record.PROVEN, None)[1].startswith(
            "how step 01-x ended"
        )
    assert state(node) == "awaited"
    assert step_record.ended(step, step_record.ROLLED_BACK, "it crashed", {"pid": 7}) == (
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
    monkeypatch.setattr(storage.exclusive.__wrapped__, "__defaults__", (0.1, "nothing was changed"))
    with storage.exclusive(root(node)):
        found, why, _dummy = step_record.ended(
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
    step_record.end(RUN, "01-x", step_record.PROVEN, root=root(node))
    assert step_record.read(RUN, "01-x", root(node)) is None
    assert step_record.unproven(root(node)) == []
    assert step_record.of_run(RUN, root(node)) == []
    step_record.tell(RUN, "01-x", "halfway", root(node))
    claim(node)
    with pytest.raises(storage.ChangeError, match="was not recorded"):
        step_record.end(RUN, "02-y", step_record.PROVEN, root=root(node))
    assert step_record.read(RUN, "02-y", root(node)) is None


def test_how_far_it_is(node: Node) -> None:
    claim(node)
    step_record.tell(RUN, "01-x", "halfway", root(node))
    step_record.tell(RUN, "01-x", "a pod is left", root(node), name="ended_so")
    record = step_record.read(RUN, "01-x", root(node))
    assert (record["progress"], record["ended_so"], record["state"]) == (
        "halfway",
        "a pod is left",
        "awaited",
    )
    path(node).write_text("[")
    # what cannot be written is not told, and stops nobody
    step_record.tell(RUN, "01-x", "further", root(node))
    assert path(node).read_text() == "["


def test_whether_its_program_is_still_at_work(child: "subprocess.Popen[bytes]") -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    by = {"boot_id": boot, "pid": child.pid, "ticks": step_record.ticks(child.pid)}
    assert step_record.alive({"by": by})
    for other in (
        {"boot_id": "another"},
        {"ticks": by["ticks"] - 1},
        {"ticks": None},
        {"pid": None},
        {"pid": os.getpid(), "ticks": step_record.ticks(os.getpid())},
    ):
        assert not step_record.alive({"by": {**by, **other}}), other
    assert not step_record.alive({})
    assert not step_record.alive({"by": None})
    child.kill()
    child.wait()
    assert not step_record.alive({"by": by})
    assert not step_record.alive({"by": {**by, "ticks": None}})


def test_open_is_what_was_begun_and_has_no_end(node: Node) -> None:
    for run_id, name, ends in (
        (NEXT, "01-x", None),
        (RUN, "01-x", step_record.PROVEN),
        (RUN, "02-y", None),
        (RUN, "03-z", step_record.FAILED),
    ):
        claim(node, run_id, name)
        if ends:
            step_record.end(run_id, name, ends, root=root(node))
    assert [
        (one["run_id"], one["step"], one["running"]) for one in step_record.unproven(root(node))
    ] == [
        (RUN, "02-y", False),
        (NEXT, "01-x", False),
    ]
    assert [(one["step"], one["state"]) for one in step_record.of_run(RUN, root(node))] == [
        ("01-x", "proven"),
        ("02-y", "awaited"),
        ("03-z", "failed"),
    ]


def test_an_open_step_comes_with_its_own_change(node: Node) -> None:
    """Neither with that of another step nor with the one that took it back."""
    claim(node, name="m1:KM101:kube-scheduler")
    assert step_record.unproven(root(node))[0]["entry"] is None
    entry = node.swap()["entry"]
    file_change.replace(str(node.file), sha(AFTER), BEFORE, node.step().also(reverts=entry))
    file_change.replace(str(node.file), sha(BEFORE), b"x", node.step().also(step="02-y"))
    (found,) = step_record.unproven(root(node))
    assert f"{RUN}/{found['entry']['entry']}" == entry
    file_change.replace(str(node.file), sha(b"x"), b"y", node.step())
    assert step_record.unproven(root(node))[0]["entry"]["intent"]["sha256_after"] == sha(b"y")


def test_a_component_failed_where_its_newest_step_did(node: Node) -> None:
    for run_id, name, component, ends in (
        (RUN, "01-x", "kube-scheduler", step_record.FAILED),
        (RUN, "02-y", "etcd", step_record.FAILED),
        (RUN, "03-z", None, step_record.FAILED),
        (NEXT, "01-x", "kube-scheduler", step_record.PROVEN),
        (NEXT, "02-y", "kubelet", step_record.ROLLED_BACK),
    ):
        claim(node, run_id, name, component=component)
        step_record.end(run_id, name, ends, root=root(node))
    assert {
        name: record["run_id"] for name, record in step_record.failures(root(node)).items()
    } == {"etcd": RUN}


def test_only_records_of_proofs_are_read(node: Node) -> None:
    claim(node)
    for name in ("proof-01.json.tmp", "001-proof-x.json", "note.json"):
        (path(node).parent / name).write_text("{}")
    assert len(step_record.of_run(RUN, root(node))) == len(step_record.unproven(root(node))) == 1


def test_a_step_of_any_name_has_its_record(node: Node) -> None:
    for name in ("a/../b", "x" * 300, "\u00e9", "001"):
        assert claim(node, name=name) is None
        assert state(node, name=name) == "awaited"
        assert step_record.name_of(name).startswith("proof-")
        assert step_record.name_of(name).endswith(".json")
        assert "/" not in step_record.name_of(name)


def test_a_run_that_is_at_work_keeps_its_node_busy_for_an_end(node: Node) -> None:
    """A record is written under the same flock as a change: no process reads half of one."""
    claim(node)
    held = []
    put = storage.put

    def look(*given: Any) -> None:
        held.append(storage.busy(root(node)))
        put(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "put", look)
        step_record.tell(RUN, "01-x", "halfway", root(node))
        step_record.end(RUN, "01-x", step_record.PROVEN, root=root(node))
        claim(node, name="02-y")
    assert held == [True, True, True]
    assert journal.run_ids(root(node)) == [RUN]
