# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A step of a repair on a node of real processes.

It is done, rolled back, refused, failed, or interrupted.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    lock,
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from tests.unit.support import child_process
from tests.unit.support.fake_step import NEXT, RIGHT, RUN, WRONG, Node, edit_states, made
from tests.unit.support.waiting import until


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    with made(monkeypatch) as one:
        yield one


def test_begun_twice_is_done_once(node: Node) -> None:
    """A connection that is made anew sends the program again."""
    step = node.step()
    first, again = node.run(step), node.run(step)
    assert again["state"] == "done"
    assert again["journal"] == first["journal"]
    assert again["seen"]["pid"] == first["seen"]["pid"]
    assert len(journal.read_run(RUN, str(node.root))) == 1


def test_check_mode_leaves_nothing(node: Node) -> None:
    former = node.manifest.read_bytes()
    assert node.run(check=True)["state"] == "skipped"
    assert node.manifest.read_bytes() == former
    assert not node.root.exists()


def test_the_lock_must_be_ours(node: Node) -> None:
    who = {"machine_id": "c1", "boot_id": "b1", "pid": 1, "started": 1}
    assert "does not hold the lock" in node.run(lock={"seconds": 5})["reason"]
    node_lock.acquire(NEXT, who, 60, root=str(node.root))
    answer = node.run(lock={"seconds": 5})
    assert answer["state"] == "refused"
    assert NEXT in answer["reason"]
    assert NEXT in node.run()["reason"]  # nor without one
    node_lock.acquire(RUN, who, 5, NEXT, str(node.root))
    step = node.step()
    assert node.run(step, lock={"seconds": 5})["state"] == "done"
    # as long as the step may last
    assert lock.read(str(node.root))["seconds"] == step_executor.budget(step)


def _begin(node: Node, step: dict[str, Any]) -> int:
    """Give the step in a process of its own that the test ends.

    Back as soon as the file is changed, and the journal says so.
    """

    def begin() -> None:
        with Path(os.devnull).open("w", encoding="ascii") as null:
            os.dup2(null.fileno(), 2)
        step_executor.work(node.params(step))

    child = child_process.fork(begin)
    assert until(
        lambda: (
            RIGHT in node.manifest.read_bytes()
            and any(one["end"] for one in journal.read_run(RUN, str(node.root)))
        )
    )
    return child


@pytest.mark.parametrize(
    ("state", "after", "ends"), [(None, "done", RIGHT), ("ignore", "rolled_back", WRONG)]
)
def test_killed_between_write_and_proof(node: Node, state: Any, after: str, ends: bytes) -> None:
    (node.state / "stuck").touch()
    child = _begin(node, node.step())
    assert [one["running"] for one in step_record.unproven(str(node.root))] == [True]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    (record,) = step_record.unproven(str(node.root))
    assert (record["running"], record["component"], record["path"]) == (
        False,
        "kube-scheduler",
        str(node.manifest),
    )
    assert record["entry"]["end"]["result"] == "committed"
    (node.state / "stuck").unlink()
    if state:
        (node.state / state).touch()
    recovery = {
        "id": "01-m2-recover",
        "host": "m2",
        "remedy": "recover",
        "code": "KM902",
        "change": None,
        "expect": None,
    }
    answer = node.run(recovery, run_id=NEXT)
    assert answer["state"] == "done", answer
    assert f"of {RUN}: {after}" in answer["reason"], answer
    assert ends in node.manifest.read_bytes()
    assert step_record.unproven(str(node.root)) == []
    assert ends.decode() in node.running()[0].argv
    assert (
        node.run({**recovery, "id": "02-m2-recover"}, run_id=NEXT)["reason"]
        == "nothing was interrupted"
    )


def test_the_work_outlives_whoever_asked_for_it(node: Node) -> None:
    step = node.step()
    asking = child_process.fork(lambda: step_executor.run(node.params(step)))
    assert until(lambda: RIGHT in node.manifest.read_bytes())
    os.kill(asking, signal.SIGKILL)
    os.waitpid(asking, 0)
    assert until(lambda: edit_states(node) == ["proven"])
    assert node.run(step)["state"] == "done"  # who asks again is told
