# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds a cluster: what nodes say, which of it is believed, and what a majority is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    cluster_lock,
    journal_entry,
    step_claim,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    lock,
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    cluster_lock as run_cluster_lock,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.cluster_lock import Held

RUN, OTHER = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"
MACHINE = "c" * 32


def _mine(host: str, cluster: str | None = "a") -> Held:
    return Held(host, cluster, "ok", True, RUN)


def _theirs(host: str, cluster: str | None = "a") -> Held:
    return Held(host, cluster, "ok", False, OTHER, "held", MACHINE, 42, 77)


def _silent(host: str, cluster: str | None = None) -> Held:
    return Held(host, cluster, "unreachable", reason="timed out")


def _working(host: str) -> Held:
    return Held(
        host,
        "a",
        "ok",
        False,
        None,
        f"step 01-m3-x of run {OTHER} is still at work here",
        working=OTHER,
    )


def _full(host: str) -> Held:
    return Held(host, "a", "ok", reason="no space")


@pytest.mark.parametrize(
    ("answers", "held", "said"),
    [
        ([_mine("m1"), _mine("m2"), _mine("m3")], True, ""),
        ([_mine("m1"), _mine("m2"), _theirs("m3")], True, ""),
        ([_mine("m1"), _mine("m2"), _silent("m3")], True, ""),
        ([_mine("m1")], True, ""),
        (
            [_mine("m1"), _theirs("m2"), _theirs("m3")],
            False,
            (
                f"run {OTHER} holds the cluster (m2, m3; controller {MACHINE}, process 42; for 77 s"
                " more)"
            ),
        ),
        ([_mine("m1"), _theirs("m2"), _silent("m3")], False, f"kubemend_take_lock={OTHER}"),
        ([_mine("m1"), _theirs("m2")], False, OTHER),
        (
            [_mine("m1"), _silent("m2"), _silent("m3")],
            True,
            "only 1 of 3 control-plane nodes are locked: m2, m3 cannot be reached",
        ),
        ([_silent("m1"), _silent("m2")], False, "could not be locked"),
        ([], False, "no control-plane node was asked"),
        (
            [_mine("m1"), _mine("m2"), _working("m3")],
            False,
            f"run {OTHER} is still at work on m3: step 01-m3-x",
        ),
        ([_mine("m1"), _full("m2"), _full("m3")], False, "m2: no space"),
        ([_mine("m1"), _mine("m2"), _full("m3")], True, ""),
    ],
)
def test_decision(answers: list[Held], held: bool, said: str) -> None:
    assert run_cluster_lock.decide(answers, RUN, "a")[0] is held
    assert said in run_cluster_lock.decide(answers, RUN)[1]


def test_each_cluster_for_itself() -> None:
    answers = [_mine("m1"), _mine("m2"), _theirs("n1", "b"), _theirs("n2", "b"), _mine("n3", "b")]
    assert run_cluster_lock.decide(answers, RUN, "a") == (True, "")
    assert run_cluster_lock.decide(answers, RUN, "b")[0] is False
    # a host of which nothing is known may belong to either
    assert run_cluster_lock.decide(
        [_mine("m1"), _mine("m2"), _silent("x"), _silent("y")], RUN, "a"
    )[1].startswith("only 2 of 4")


def test_answers_are_kept(tmp_path: Path) -> None:
    for one in (_mine("m1"), _theirs("m2"), _silent("we/ird")):
        run_cluster_lock.note(str(tmp_path), one)
    run_cluster_lock.note(str(tmp_path), _theirs("m1"))
    assert {item.host: item for item in run_cluster_lock.noted(str(tmp_path))} == {
        "m1": _theirs("m1"),
        "m2": _theirs("m2"),
        "we/ird": _silent("we/ird"),
    }
    (tmp_path / "locks" / "m1.json").write_text("{")
    assert [item.status for item in run_cluster_lock.noted(str(tmp_path)) if item.host == "m1"] == [
        "error"
    ]


@pytest.mark.parametrize(
    ("answer", "by", "held"),
    [
        ({"held": True, "lock": {"run_id": RUN}}, RUN, True),
        ({"held": True, "lock": {"run_id": OTHER}}, OTHER, False),
        ({"held": True, "lock": None}, None, False),
        ({"held": "yes", "lock": {"run_id": RUN}}, RUN, False),
        ({"held": False, "lock": {"run_id": "{{ x }}"}}, None, False),
        ({"lock": [1]}, None, False),
    ],
)
def test_a_node_is_not_believed(answer: dict[str, Any], by: str | None, held: bool) -> None:
    found = run_cluster_lock.parse_answer("m1", "a", "ok", "", answer, RUN)
    assert (found.by, found.held) == (by, held)


def test_what_a_node_says_of_the_holder() -> None:
    owner = {"machine_id": "\x1b[31m", "pid": "1", "boot_id": "x"}
    answer = {
        "held": False,
        "lock": {"run_id": OTHER, "controller": owner, "remaining": 3.5},
        "message": "a\nb",
    }
    found = run_cluster_lock.parse_answer("m1", "a", "ok", "", answer, RUN)
    assert (found.machine, found.pid, found.remaining, found.reason) == (None, None, 3, "a b")
    assert (
        run_cluster_lock.parse_answer(
            "m1",
            "a",
            "ok",
            "",
            {**answer, "lock": {"run_id": OTHER, "remaining": float("inf")}},
            RUN,
        ).remaining
        is None
    )


def test_whether_a_controller_is_gone() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        owner = run_cluster_lock.controller(process.pid)
        me = run_cluster_lock.controller(os.getpid())
        assert owner["started"]
        assert not run_cluster_lock.gone(owner, me)
        # another process has its number now
        assert run_cluster_lock.gone({**owner, "started": owner["started"] + 1}, me)
    finally:
        process.kill()
        process.wait()
    assert run_cluster_lock.gone(owner, me)
    assert not run_cluster_lock.gone({**owner, "boot_id": "elsewhere", "machine_id": MACHINE}, me)
    assert not run_cluster_lock.gone(
        {**owner, "boot_id": "elsewhere", "machine_id": None}, {**me, "machine_id": None}
    )
    assert not run_cluster_lock.gone(
        {**owner, "boot_id": "before", "machine_id": MACHINE, "host": "its-clone"},
        {**me, "machine_id": MACHINE},
    )
    # this machine was rebooted
    assert run_cluster_lock.gone(
        {**owner, "boot_id": "before", "machine_id": MACHINE}, {**me, "machine_id": MACHINE}
    )


def test_a_step_that_is_still_at_work_keeps_its_lock_and_everybody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its controller may be gone, or think so.

    The program on the node needs the lock for its way back.
    """
    root = str(tmp_path / "kubemend")
    params = {
        "run_id": RUN,
        "seconds": 60,
        "state": "acquired",
        "controller": {"pid": 1},
        "root": root,
    }
    cluster_lock.run(params)
    # the step's own program, which is another than those that ask for the lock
    with monkeypatch.context() as patch:
        patch.setattr(step_record.os, "getpid", os.getppid)
        step_claim.claim(
            journal_entry.StepContext(RUN, "01-m1-x", "edit", "KM101", root, False, True),
            {"component": "kube-scheduler"},
        )
    kept = cluster_lock.run({**params, "state": "released"})
    assert (kept["held"], kept["changed"], kept["lock"]["run_id"]) == (
        True,
        False,
        RUN,
    )
    assert lock.read(root)["run_id"] == RUN
    for take in (None, RUN):
        refused = cluster_lock.run({**params, "run_id": OTHER, "take": take})
        assert (refused["held"], refused["changed"], refused["working"]) == (
            False,
            False,
            RUN,
        )
        assert "01-m1-x" in refused["message"]
        found = run_cluster_lock.parse_answer("m1", "a", "ok", "", refused, OTHER)
        assert found.working == RUN
        assert not found.held
    step_claim.end(RUN, "01-m1-x", step_record.PROVEN, root=root)
    assert cluster_lock.run({**params, "state": "released"})["changed"] is True
    assert lock.read(root) is None


def test_without_a_cluster_no_majority_outweighs_another_run() -> None:
    """A revert has no evidence: another run may hold all nodes of a smaller cluster."""
    ours, theirs = (
        [_mine(name, None) for name in ("b1", "b2", "b3", "a3")],
        [_theirs(name, None) for name in ("a1", "a2")],
    )
    held, said = run_cluster_lock.decide([*ours, *theirs], RUN)
    assert held is False
    assert said.startswith(f"run {OTHER} holds the cluster (a1, a2;")
    assert run_cluster_lock.decide(ours, RUN) == (True, "")


def test_who_is_changed_names_the_cluster_that_must_be_held(tmp_path: Path) -> None:
    for answer in (
        _mine("a1"),
        _theirs("a2"),
        _theirs("a3"),
        _mine("b1", "b"),
        _mine("b2", "b"),
        Held("w1", "b", "ok", True, RUN, member=False),
    ):
        run_cluster_lock.note(str(tmp_path), answer)
    assert run_cluster_lock.holds(str(tmp_path), RUN, "w1") == (True, "")
    assert run_cluster_lock.holds(str(tmp_path), RUN, "b1") == (True, "")
    assert run_cluster_lock.holds(str(tmp_path), RUN, "a1")[0] is False


def test_a_node_that_is_only_changed_is_no_part_of_the_majority() -> None:
    """Three masters are another run's, four workers this one's: no run has the cluster."""
    workers = [Held(f"w{number}", "a", "ok", True, RUN, member=False) for number in range(4)]
    assert run_cluster_lock.decide([*map(_theirs, ("m1", "m2", "m3")), *workers], RUN)[0] is False
    assert run_cluster_lock.decide(
        [_mine("m1"), Held("w1", "a", "ok", False, OTHER, "held", member=False)], RUN
    ) == (True, "")
    assert (
        run_cluster_lock.decide(
            [
                _mine("m1"),
                Held("w1", "a", "ok", False, None, "at work", working=OTHER, member=False),
            ],
            RUN,
        )[0]
        is False
    )
    assert run_cluster_lock.parse_answer("w1", "a", "ok", "", {}, RUN, False).member is False
    assert (
        run_cluster_lock.parse_answer("w1", "a", "unreachable", "", {}, RUN, False).member is False
    )


@pytest.mark.parametrize("name", ["journal", "work"])
@pytest.mark.parametrize(
    ("owner", "take", "held"),
    [
        ({"boot_id": "other", "pid": 1}, None, True),
        ({"boot_id": "other", "pid": 1}, RUN, False),
        ({"boot_id": "other", "pid": 1}, "another", True),
        (None, None, False),
    ],
)
def test_evidence_whose_lock_nobody_holds_any_more(
    name: str, owner: dict[str, Any] | None, take: str | None, held: bool
) -> None:
    me = run_cluster_lock.controller(os.getpid())
    lock = {
        "run_id": RUN,
        "held": True,
        "controller": owner or {**me, "pid": 2**22 + 1, "started": 1},
    }
    document = {
        "collectors": {
            name: {"status": "ok", "data": {"lock": lock}},
            "kubelet": {"status": "error", "data": None},
        }
    }
    assert (
        run_cluster_lock.without_gone(document, me, take)["collectors"][name]["data"]["lock"][
            "held"
        ]
        is held
    )
