# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run reverted on a node of real processes.

It is listed, restored and proven, refused, interrupted, or undone itself.
"""

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    node_lock,
    step_claim,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_times
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    lock,
    step_record,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from tests.unit.support.fake_step import NEXT, RUN, Node, made, sha

THIRD = "20261121T110000Z-aaaaaa"


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    with made(monkeypatch) as one:
        monkeypatch.setattr(step_times, "LIMIT", 120)
        yield one


def _back(node: Node, run_id: str = RUN, by: str = NEXT, **more: Any) -> dict[str, Any]:
    return revert_run.run(
        {
            "state": "reverted",
            "run_id": by,
            "reverts": run_id,
            "host": "m2",
            "root": str(node.root),
            "lock": None,
            **more,
        }
    )


def _list(node: Node) -> dict[str, Any]:
    return revert_run.run({"state": "listed", "root": str(node.root)})


def _results(answer: dict[str, Any]) -> list[str]:
    return [one["result"] for one in answer["paths"]]


def test_a_node_without_a_journal(node: Node) -> None:
    assert _list(node) == {
        "runs": [],
        "truncated": False,
        "busy": False,
        "error": None,
        "empty": [],
    }
    assert not node.root.exists()
    answer = _back(node)
    assert "knows no run " + RUN in answer["error"]
    assert answer["changed"] is False
    assert not node.root.exists()


def test_a_repair_is_taken_back_and_that_too(node: Node) -> None:
    former = node.manifest.read_bytes()
    assert node.run()["state"] == "done"
    repaired, after = node.running()[0], node.manifest.read_bytes()
    (run,) = _list(node)["runs"]
    assert (run["run_id"], run["reverts"], run["error"]) == (RUN, [], None)
    assert run["first"] <= run["last"]
    (file,) = run["paths"]
    assert (file["path"], file["state"], file["component"], file["steps"]) == (
        str(node.manifest),
        "restore",
        "kube-scheduler",
        ["01-m2-kube-scheduler-edit"],
    )
    assert (file["sha256_former"], file["sha256_left"], file["sha256_present"]) == (
        sha(former),
        sha(after),
        sha(after),
    )

    answer = _back(node)
    assert (_results(answer), answer["error"], answer["changed"]) == (
        ["restored"],
        None,
        True,
    ), answer
    (component,) = answer["components"]
    assert (component["component"], component["proven"], component["reason"]) == (
        "kube-scheduler",
        True,
        None,
    )
    (one,) = node.running()
    assert node.manifest.read_bytes() == former
    assert one.identity != repaired.identity
    assert "--leader-elect=false" in one.argv

    again = _back(node, by=THIRD)
    assert (_results(again), again["components"], again["changed"]) == (
        ["already"],
        [],
        False,
    )
    assert node.running()[0].identity == one.identity
    newest, oldest = _list(node)["runs"]
    assert (newest["run_id"], newest["reverts"], newest["paths"][0]["state"]) == (
        NEXT,
        [RUN],
        "restore",
    )
    assert oldest["paths"][0]["state"] == "already"
    assert step_record.unproven(str(node.root)) == []

    undone = _back(node, NEXT, THIRD)
    assert _results(undone) == ["restored"], undone
    assert undone["components"][0]["proven"] is True, undone
    assert node.manifest.read_bytes() == after
    assert "--leader-elect=true" in node.running()[0].argv


def test_a_configuration_file_needs_a_signal(node: Node) -> None:
    node.configure()
    former = node.config.read_bytes()
    assert node.run(node.config_step())["state"] == "done"
    (before,) = node.running()
    answer = _back(node)
    assert _results(answer) == ["restored"], answer
    assert answer["components"][0]["proven"] is True, answer
    (one,) = node.running()
    assert node.config.read_bytes() == former
    assert one.identity != before.identity
    assert _results(_back(node, by=THIRD)) == ["already"]
    assert node.running()[0].identity == one.identity
    # as if it was ended between the write and the signal
    os.utime(node.config, (time.time() + 5, time.time() + 5))
    late = _back(node, by="20261121T120000Z-bbbbbb")
    assert _results(late) == ["already"], late
    assert late["components"][0]["proven"] is True, late
    assert node.running()[0].identity != one.identity


def test_somebody_elses_bytes_are_shown_and_kept(node: Node) -> None:
    node.run()
    left = node.manifest.read_bytes()
    node.manifest.write_bytes(left + b"# mine\n")
    answer = _back(node)
    (file,) = answer["paths"]
    assert file["result"] == "refused"
    assert answer["components"] == []
    assert answer["changed"] is False
    assert sha(left) in file["reason"]
    assert sha(left + b"# mine\n") in file["reason"]
    assert node.manifest.read_bytes() == left + b"# mine\n"


@pytest.mark.parametrize(
    ("state", "said"), [("sick", "is not healthy"), ("mute", "does not answer")]
)
def test_guards_refuse_before_the_write(node: Node, state: str, said: str) -> None:
    node.run()
    left = node.manifest.read_bytes()
    (node.state / state).touch()
    answer = _back(node)
    assert _results(answer) == ["refused"], answer
    assert said in answer["paths"][0]["reason"], answer
    assert answer["changed"] is False, answer
    assert node.manifest.read_bytes() == left
    assert len(journal.run_ids(str(node.root))) == 1


def test_not_proven_is_said_and_not_rolled_forward(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = node.manifest.read_bytes()
    node.run()
    monkeypatch.setattr(step_times, "LIMIT", 4)
    (node.state / "stuck").touch()
    answer = _back(node)
    (component,) = answer["components"]
    assert component["proven"] is False
    assert "the former process" in component["reason"]
    assert f"kubemend_run_id={NEXT}" in component["reason"]
    assert _results(answer) == ["restored"]
    assert node.manifest.read_bytes() == former
    assert step_record.read(NEXT, "revert-kube-scheduler", str(node.root))["state"] == "failed"


def test_an_end_that_is_not_recorded_ends_no_revert(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later steps of the run are reverted all the same, and the report has what was done."""
    former = node.manifest.read_bytes()
    node.run()

    def full(*dummy: Any, **more: Any) -> None:
        raise storage.ChangeError("how it ended was not recorded: no space")

    monkeypatch.setattr(step_claim, "end", full)
    answer = _back(node)
    (component,) = answer["components"]
    assert (_results(answer), answer["error"], component["proven"]) == (
        ["restored"],
        None,
        True,
    ), answer
    assert component["reason"].startswith("how it ended was not recorded: no space")
    assert "KM902" in component["reason"]
    assert node.manifest.read_bytes() == former
    assert step_record.unproven(str(node.root))[0]["step"] == "revert-kube-scheduler"


def test_an_unfinished_run_or_revert(node: Node) -> None:
    node.run()
    root = str(node.root)
    record = step_record.read(RUN, "01-m2-kube-scheduler-edit", root)
    step_claim.end(RUN, record["step"], step_record.AWAITED, root=root, by={})
    answer = _back(node)
    assert "was interrupted on m2" in answer["error"]
    assert "KM902" in answer["error"]
    assert not answer["paths"]
    step_claim.end(RUN, record["step"], step_record.PROVEN, root=root)
    _back(node)
    step_claim.end(NEXT, "revert-kube-scheduler", step_record.AWAITED, root=root, by={})
    ended = node.run(
        {"id": "00-m2-recover", "host": "m2", "remedy": "recover", "guard": {}}, run_id=THIRD
    )
    assert ended["state"] == "done"
    assert "a revert was interrupted" in ended["reason"]
    assert step_record.unproven(root) == []


def test_without_the_step_s_record_nobody_knows_what_has_to_run(node: Node) -> None:
    node.run()
    next(node.root.glob("journal/*/proof-*")).unlink()
    answer = _back(node)
    assert _results(answer) == ["refused"]
    assert "is gone or cannot be read" in answer["paths"][0]["reason"]


def test_the_lock_is_demanded(node: Node) -> None:
    node.run()
    left = node.manifest.read_bytes()
    assert "does not hold the lock" in _back(node, lock={"seconds": 60})["error"]
    node_lock.acquire(THIRD, {}, 60, root=str(node.root))
    assert f"run {THIRD} holds this node" in _back(node)["error"]
    assert node.manifest.read_bytes() == left
    node_lock.release(THIRD, str(node.root))
    node_lock.acquire(NEXT, {}, 60, root=str(node.root))
    assert _results(_back(node, lock={"seconds": 60})) == ["restored"]
    assert lock.read(str(node.root))["remaining"] > 60


def test_an_unreadable_entry_names_itself_in_the_list(node: Node) -> None:
    node.run()
    next(node.root.glob("journal/*/001-*.end.json")).write_text("{")
    (run,) = _list(node)["runs"]
    assert "001-01-m2-kube-scheduler-edit" in run["error"]
    assert run["paths"] == []
    assert "cannot be read" in _back(node)["error"]


def test_a_journal_that_cannot_be_read_is_named(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a security module refuses it, or a disk."""

    def refused(root: str) -> Any:
        path = f"{root}/journal"
        raise PermissionError(13, "Permission denied", path)

    node.run()
    monkeypatch.setattr(journal, "run_ids", refused)
    error = _back(node)["error"]
    assert str(node.root / "journal") in error
    assert "unforeseen" not in error
    assert "list again" in error


@pytest.mark.parametrize("number", [1, 2])
def test_an_entry_that_cannot_be_read_for_a_moment_is_named(
    node: Node, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A disk that fails once: whichever of the looks it is, the answer is a sentence."""
    node.run()
    read, looks = journal.read_run, []

    def failing(run_id: str, root: str = "", only_open: bool = False) -> Any:
        looks.append(run_id)
        found = read(run_id, root, only_open)
        return (
            [{**item, "intent": None, "error": "Input/output error"} for item in found]
            if run_id == RUN and len(looks) == number
            else found
        )

    monkeypatch.setattr(journal, "read_run", failing)
    error = _back(node)["error"]
    assert "Input/output error" in error
    assert "take back by hand" in error
