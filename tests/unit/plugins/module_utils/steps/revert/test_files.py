# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an interrupted change leaves, how it is ended, how a run is reverted.

The tests also check how a node reports it.
"""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    registry,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    journal as node_journal,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    revert_plan,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change,
    interrupted_changes,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    files as revert_files,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    json_line,
)
from tests.unit.support.fake_file_change import (
    AFTER,
    BEFORE,
    NEXT,
    RUN,
    THIRD,
    Node,
    interrupt,
    sha,
)

OURS = file_change.Attributes(0o640, os.getuid(), os.getgid())


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def _revert(node: Node, run_id: str = RUN, by: str = NEXT, **more: Any) -> list[str]:
    return [one["result"] for one in revert_files.revert(run_id, node.step(by), **more)]


def test_a_run_is_taken_back_and_that_too(node: Node) -> None:
    node.swap()
    (plan,) = revert_plan.plan_revert(RUN, str(node.root))
    assert (plan["state"], plan["sha256_left"], plan["sha256_former"], plan["sha256_present"]) == (
        "restore",
        sha(AFTER),
        sha(BEFORE),
        sha(AFTER),
    )
    assert _revert(node) == ["restored"]
    assert node.bytes() == BEFORE
    assert stat.S_IMODE(node.file.stat().st_mode) == 0o640
    assert _revert(node) == ["already"]
    assert len(journal.read_run(NEXT, str(node.root))) == 1
    assert node.runs()[-1]["reverts"] == [RUN]
    assert _revert(node, NEXT, THIRD) == ["restored"]
    assert node.bytes() == AFTER
    # its bytes are there again, and nobody changed them since
    assert revert_plan.plan_revert(RUN, str(node.root))[0]["state"] == "restore"
    assert _revert(node, by="20261121T120000Z-bbbbbb") == ["restored"]
    assert node.bytes() == BEFORE


def test_what_was_never_written_is_not_taken_back(node: Node) -> None:
    """Somebody else wrote the same later: it is theirs."""
    interrupt(node)
    node.file.write_bytes(BEFORE)
    assert [one["result"] for one in interrupted_changes.recover_all(node.step(NEXT))] == [
        "not_done"
    ]
    node.file.write_bytes(AFTER)
    assert revert_plan.plan_revert(RUN, str(node.root)) == []
    assert _revert(node, by=THIRD) == []
    assert node.bytes() == AFTER


def test_revert_in_check_mode_changes_nothing(node: Node) -> None:
    node.swap()
    before = node.own()
    assert revert_files.revert(RUN, node.step(NEXT, check=True))[0]["changed"] is True
    assert node.bytes() == AFTER
    assert node.own() == before


def test_a_run_takes_its_own_step_back(node: Node) -> None:
    """A rollback: the same run, and afterwards that run has left nothing to take back."""
    node.swap()
    assert _revert(node, by=RUN) == ["restored"]
    assert node.bytes() == BEFORE
    assert _revert(node) == ["already"]
    assert node.bytes() == BEFORE


def test_somebody_elses_bytes_are_shown_and_kept(node: Node) -> None:
    other = node.folder / "other.yaml"
    file_change.create_file(str(other), b"ours", node.step(), OURS)
    node.swap()
    node.file.write_bytes(b"theirs")
    refused, restored = revert_files.revert(RUN, node.step(NEXT))
    assert (refused["result"], restored["result"]) == ("refused", "restored")
    for digest in (sha(b"theirs"), sha(AFTER), sha(BEFORE)):
        assert digest in refused["reason"]
    assert str(node.file) in refused["reason"]
    assert node.bytes() == b"theirs"
    assert not other.exists()


def test_several_changes_of_a_file_count_as_one(node: Node) -> None:
    node.swap()
    file_change.replace(str(node.file), sha(AFTER), b"last", node.step())
    assert _revert(node) == ["restored"]
    assert node.bytes() == BEFORE
    assert _revert(node) == ["already"]


def test_created_and_removed_files(node: Node) -> None:
    created = node.folder / "created"
    file_change.create_file(str(created), b"x", node.step(), OURS)
    os.setxattr(node.file, "user.note", b"kept")
    file_change.move_out(str(node.file), sha(BEFORE), node.step())
    assert _revert(node) == ["restored", "restored"]
    assert not created.exists()
    assert node.bytes() == BEFORE
    assert os.getxattr(node.file, "user.note") == b"kept"
    assert stat.S_IMODE(node.file.stat().st_mode) == 0o640
    assert _revert(node) == ["already", "already"]
    created.write_bytes(b"theirs")
    again = revert_files.revert(RUN, node.step(THIRD))
    assert [one["result"] for one in again] == [
        "already",
        "already",
    ]
    assert created.read_bytes() == b"theirs"
    assert "it was changed since" in again[1]["reason"]


def test_what_is_never_put_back_and_what_was_not_asked_for(node: Node) -> None:
    state = node.folder / "cpu_manager_state"
    state.write_bytes(b"old")
    file_change.replace(str(state), sha(b"old"), b"new", node.step(keep="pods have run since"))
    node.swap()
    assert _revert(node, only=[str(state)]) == ["kept"]
    assert node.bytes() == AFTER
    assert revert_files.revert(RUN, node.step(NEXT))[-1]["reason"] == "pods have run since"
    assert state.read_bytes() == b"new"
    assert node.bytes() == BEFORE


def test_an_interrupted_change_is_ended_before_it_is_taken_back(node: Node) -> None:
    interrupt(node)
    (one,) = revert_files.revert(RUN, node.step(NEXT))
    assert one["result"] == "refused"
    assert "KM902" in one["reason"]
    assert node.bytes() == AFTER
    interrupted_changes.recover_all(node.step(NEXT))
    assert _revert(node) == ["restored"]
    assert node.bytes() == BEFORE


def test_damaged_former_bytes_are_never_written(node: Node) -> None:
    node.swap()
    kept = next(node.root.glob("journal/*/*.before"))
    for damaged in (BEFORE[:-1] + b"x", BEFORE[:-1], BEFORE + b"x"):
        kept.write_bytes(damaged)
        (one,) = revert_files.revert(RUN, node.step(NEXT))
        assert one["result"] == "refused"
        assert kept.name in one["reason"]
        assert node.bytes() == AFTER
    kept.unlink()
    assert _revert(node) == ["refused"]


def _collect(node: Node, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(node_journal, "ROOT", str(node.root))
    context = registry.Context({}, [], {})
    return json.loads(json_line.dumps(node_journal.collect(context))), context


def test_a_node_without_a_journal(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(registry.Absent):
        _collect(node, monkeypatch)
    assert not node.root.exists()


def test_a_node_tells_and_makes_nothing(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    temp = interrupt(node)
    temp.write_bytes(b"half")
    node_lock.acquire(NEXT, {"machine_id": "m", "pid": 5}, 60, root=str(node.root))
    before = node.own()
    data, context = _collect(node, monkeypatch)
    (item,) = data["pending"]
    assert (item["run_id"], item["state"], item["sha256"], item["step"]) == (
        RUN,
        "after",
        sha(AFTER),
        "m1:KM101:kube-scheduler",
    )
    assert data["temp_files"] == [item["temp"]] == [str(temp)]
    assert data["busy"] is False
    assert data["runs"][0]["pending"] == 1
    assert data["runs"][0]["paths"] == [str(node.file)]
    assert (data["lock"]["run_id"], data["lock"]["held"], data["lock"]["controller"]["pid"]) == (
        NEXT,
        True,
        5,
    )
    assert "S3cret" not in json.dumps(data)
    assert node.own() == before
    assert not context.truncated
    (node.root / "lock").write_text("[")
    assert "cannot be read" in _collect(node, monkeypatch)[0]["lock"]["error"]
