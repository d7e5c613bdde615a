# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A disturbed step, the runs after it, and what must be true then."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    lock,
    pending_changes,
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from tests.fault_injection import effects
from tests.fault_injection.nodes import Scene

RUN, NEXT, THIRD = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f", "20261121T110000Z-7a8b9c"
WHOLE = os.environ.get("KUBEMEND_FAULTS") == "whole"
SEED = os.environ.get("KUBEMEND_FAULTS_SEED", "")
STATES = {"done", "rolled_back", "refused", "failed", "skipped"}
CONTROLLER = {"machine_id": "c1", "host": "here", "boot_id": "b1", "pid": 1, "started": 1}


def drawn(name: str, points: list[Any], count: int, slow: bool = False) -> list[Any]:
    """Return all points in the whole matrix, else as many as `count`, drawn by the commit.

    slow: the case gets six points in the whole matrix, one else
    """
    if slow:
        count = 6 if WHOLE else 1
    return points if WHOLE and not slow else picked(name, points, count)


def picked(name: str, points: list[Any], count: int) -> list[Any]:
    """Pick that many cases by the commit, in their order."""
    chosen = set(
        random.Random(f"{seed()} {name}").sample(range(len(points)), min(count, len(points)))
    )
    return [point for index, point in enumerate(points) if index in chosen]


@functools.lru_cache(maxsize=1)
def seed() -> str:
    """Return the commit as tests/lab/support/sampling.py has it, or the caller's own seed."""
    from tests.lab.support import results

    return SEED or str(results.tree()["commit"])


class Case:
    """One scene, made anew for every fault."""

    def __init__(self, name: str, scene: Scene) -> None:
        self.name, self.scene, self.injected = name, scene, 0
        self.base = Path(
            tempfile.mkdtemp(
                prefix="kmfault", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None
            )
        )
        self.before: Any = None
        self.after: Any = None
        self.points: list[effects.Effect] = []

    @contextlib.contextmanager
    def node(self) -> Iterator[Node]:
        folder = self.base / "n"  # the same name each time: states hold paths
        folder.mkdir()
        with (
            pytest.MonkeyPatch.context() as monkeypatch,
            self.scene.make(folder, monkeypatch) as made,
        ):
            yield Node(self, made, folder)
        shutil.rmtree(folder)
        self.injected += 1

    def undisturbed(self, reads: bool = False) -> None:
        """Find the effects to disturb and the final state, the same with the hook as without it."""
        with self.node() as node:
            self.before = node.state()
            ended = node.run(reads=reads)
            assert not ended.killed, ended.answer
            assert all(one["state"] == "done" for one in ended.answer), ended.answer
            self.after, self.points = node.state(), ended.effects
            node.clean("undisturbed")
            assert not self.scene.steps(node.made) or node.again(NEXT)[-1]["state"] in (
                "done",
                "refused",
            )
            assert self.scene.state(node.made) == self.after
        assert len(self.points) > 3, self.points
        self.injected = 0

    def close(self) -> None:
        shutil.rmtree(self.base)


class Node:
    """A node with a plan, and everything that is asked of it."""

    def __init__(self, case: Case, made: Any, folder: Path) -> None:
        self.case, self.made, self.folder = case, made, folder
        self.root = str(made.root)
        node_lock.acquire(RUN, CONTROLLER, 600, root=self.root)
        self.kept = {path.read_bytes() for path in self.files()}

    def files(self) -> Iterator[Path]:
        target = self.case.scene.target(self.made)
        return (path for path in [target] if path is not None and path.is_file())

    def state(self) -> Any:
        return self.case.scene.state(self.made)

    def params(self, step: dict[str, Any], run_id: str) -> dict[str, Any]:
        return {
            "run_id": run_id,
            "root": self.root,
            "lock": {"seconds": 60},
            "check": False,
            "step": step,
        }

    def work(self, steps: list[dict[str, Any]], run_id: str) -> list[dict[str, Any]]:
        """Do the steps one after the other, until one is not done, as a run does."""
        answers: list[dict[str, Any]] = []
        for step in steps:
            answers.append(self.case.scene.do(self.params(step, run_id)))
            if answers[-1]["state"] != "done":
                break
        return answers

    def run(self, **told: Any) -> effects.Ended:
        """Run the plan in a child that a fault may meet."""
        steps = self.case.scene.steps(self.made)
        return effects.run(self.case.base, lambda: self.work(steps, RUN), **told)

    def take(self, run_id: str, former: str) -> None:
        """Take the lock for the next run, as its controller does: the former process is gone."""
        node_lock.acquire(run_id, CONTROLLER, 600, take=former, root=self.root)

    def recover(self, run_id: str = NEXT) -> dict[str, Any]:
        step = {
            "id": "00-recover",
            "host": "w1",
            "remedy": "recover",
            "code": ["KM902"],
            "change": None,
            "expect": {},
        }
        return step_executor.work(self.params(step, run_id))

    def again(self, run_id: str) -> list[dict[str, Any]]:
        """Do what a plan for the present state contains."""
        self.take(run_id, RUN if run_id == NEXT else NEXT)
        return self.work(self.case.scene.steps(self.made), run_id)

    def clean(self, where: Any) -> None:
        """Nothing half, nothing open, no byte lost, no lock in the way."""
        left = [
            str(path)
            for path in self.folder.rglob("*")
            if path.name.endswith(".tmp") or ".kubemend-" in path.name
        ]
        assert not left, (where, left)
        assert pending_changes.pending(self.root) == [], where
        assert step_record.unproven(self.root) == [], where
        for run_id in journal.run_ids(self.root):
            for item in journal.read_run(run_id, self.root):
                assert item["end"], (where, item)
                assert not item["error"], (where, item)
                if item["intent"]["before"]:
                    journal.former_bytes(item, self.root)
        held = lock.read(self.root)
        assert held is None or held["run_id"] in (RUN, NEXT, THIRD), where

    def journalled(self) -> set[bytes]:
        """Everything that the journal keeps of files."""
        return {
            journal.former_bytes(item, self.root)
            for run_id in journal.run_ids(self.root)
            for item in journal.read_run(run_id, self.root)
            if item["intent"]["before"]
        }

    def no_byte_lost(self, where: Any) -> None:
        """Require that the former content of each file is still there, or in the journal."""
        assert self.kept <= {path.read_bytes() for path in self.files()} | self.journalled(), where


def ends_as_undisturbed(node: Node, where: Any) -> None:
    """Require that the next run finishes the interrupted work and reaches the undisturbed state."""
    node.take(NEXT, RUN)
    healed = node.recover()
    assert healed["state"] == "done", (where, healed)
    node.clean(where)
    answers = node.again(THIRD)
    assert all(one["state"] == "done" for one in answers), (where, answers)
    assert node.state() == node.case.after, (where, node.state(), node.case.after)
    node.clean(where)
    node.no_byte_lost(where)
    assert node_lock.release(THIRD, node.root), where
    assert lock.read(node.root) is None, where


def one_sentence(answer: dict[str, Any], where: Any) -> None:
    """Require that an operator reads one sentence."""
    assert answer["state"] in STATES, (where, answer)
    reason = answer["reason"]
    assert "\n" not in reason, (where, reason)
    assert "unforeseen" not in reason, (
        where,
        reason,
    )
    assert "Traceback" not in reason, (
        where,
        reason,
    )
    assert "unforeseen" not in reason, (where, reason)
    assert answer["state"] == "done" or len(reason) > 20, (where, answer)


Fault = Callable[[Node], None]
