# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's side of the lock of a cluster."""

import os
from pathlib import Path

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

RUN, OTHER = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"


def test_the_node_s_side(tmp_path: Path) -> None:
    root = str(tmp_path / "kubemend")
    params = {
        "run_id": RUN,
        "seconds": 60,
        "state": "acquired",
        "controller": {"pid": 1},
        "root": root,
    }
    assert cluster_lock.run({**params, "check": True})["lock"] is None
    assert not Path(root).exists()
    assert cluster_lock.run({**params, "state": "renewed"})["held"] is False
    first = cluster_lock.run(params)
    assert (
        first["held"],
        first["changed"],
        first["lock"]["run_id"],
        first["lock"]["controller"]["pid"],
    ) == (True, True, RUN, 1)
    assert cluster_lock.run(params)["changed"] is False
    refused = cluster_lock.run({**params, "run_id": OTHER})
    assert (refused["held"], refused["lock"]["run_id"]) == (False, RUN)
    assert RUN in refused["message"]
    assert cluster_lock.run({**params, "run_id": OTHER, "state": "released"})["changed"] is False
    assert cluster_lock.run({**params, "run_id": OTHER, "take": RUN})["lock"]["taken_from"] == RUN
    assert cluster_lock.run({**params, "run_id": OTHER, "state": "released"})["changed"] is True
    assert lock.read(root) is None


def test_check_mode_tells_whose_it_is_and_takes_or_releases_nothing(tmp_path: Path) -> None:
    root = str(tmp_path / "kubemend")
    params = {"run_id": RUN, "seconds": 60, "state": "acquired", "root": root}
    cluster_lock.run(params)
    for state in ("acquired", "renewed", "released"):
        for run_id in (RUN, OTHER):
            told = cluster_lock.run(
                {**params, "run_id": run_id, "state": state, "take": RUN, "check": True}
            )
            assert (told["held"], told["changed"], told["lock"]["run_id"]) == (False, False, RUN)
    assert lock.read(root)["run_id"] == RUN


@pytest.mark.parametrize("state", ["acquired", "renewed", "released"])
def test_a_lock_that_cannot_be_read_is_held_by_nobody_of_us(tmp_path: Path, state: str) -> None:
    root = tmp_path / "kubemend"
    root.mkdir(0o700)
    (root / "lock").write_text("{")
    told = cluster_lock.run({"run_id": RUN, "seconds": 60, "state": state, "root": str(root)})
    assert (told["held"], told["changed"], told["lock"]) == (
        False,
        False,
        None,
    )
    assert "remove it and run again" in told["message"]


def test_a_renewal_is_held_and_is_refused_once_another_has_it(tmp_path: Path) -> None:
    root = str(tmp_path / "kubemend")
    params = {"run_id": RUN, "seconds": 60, "state": "acquired", "root": root}
    cluster_lock.run(params)
    renewed = cluster_lock.run({**params, "state": "renewed", "seconds": 90})
    assert (renewed["held"], renewed["changed"], renewed["lock"]["remaining"]) == (True, True, 90)
    taken = cluster_lock.run({**params, "run_id": OTHER, "take": RUN})
    assert (taken["held"], taken["changed"]) == (True, True)
    lost = cluster_lock.run({**params, "state": "renewed"})
    assert (lost["held"], lost["changed"], lost["lock"]["run_id"]) == (
        False,
        False,
        OTHER,
    )
    assert OTHER in lost["message"]
    assert cluster_lock.run({**params, "state": "released"})["held"] is False
    assert lock.read(root)["run_id"] == OTHER


def test_another_runs_step_at_work_is_no_reason_to_keep_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither an own step nor an open one without its program prevents a new lock."""
    root = str(tmp_path / "kubemend")
    params = {"run_id": RUN, "seconds": 60, "state": "acquired", "root": root}
    with monkeypatch.context() as patch:
        patch.setattr(step_record.os, "getpid", os.getppid)
        step_claim.claim(
            journal_entry.StepContext(RUN, "01-m1-x", "edit", "KM101", root),
            {"component": "kube-scheduler"},
        )
    assert cluster_lock.run(params)["held"] is True
    step_claim.end(RUN, "01-m1-x", step_record.PROVEN, root=root)
    with monkeypatch.context() as patch:
        patch.setattr(step_record, "alive", lambda record: False)
        step_claim.claim(
            journal_entry.StepContext(RUN, "02-m1-y", "edit", "KM101", root),
            {"component": "kube-scheduler"},
        )
        assert cluster_lock.run({**params, "run_id": OTHER, "take": RUN})["held"] is True
    with monkeypatch.context() as patch:
        patch.setattr(step_record, "alive", lambda record: True)
        assert cluster_lock.run({**params, "run_id": OTHER, "state": "released"}) == {
            "held": False,
            "changed": True,
            "lock": None,
            "message": "",
        }
