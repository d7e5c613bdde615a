# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For how long a cluster is locked, and what is known of the nodes that were not asked yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.action import cluster_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.state import lock
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    cluster_lock as run_cluster_lock,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    run_files,
)

RUN = "20261121T090000Z-1a2b3c"


def _planned(folder: Path, steps: list[Step]) -> str:
    (folder / "plan.json").write_text(run_files.plan_text(RUN, {}, steps))
    return str(folder)


def _step(number: int, remedy: str, **more: Any) -> Step:
    return Step(
        f"{number:05}-x",
        f"w{number}",
        "KM401",
        remedy,
        1,
        "x",
        None,
        cluster="a",
        **{"allowed": True, **more},
    )


def test_a_drain_counts_with_the_time_that_it_was_given(tmp_path: Path) -> None:
    folder = _planned(
        tmp_path,
        [
            _step(1, "drain", change={"timeout": 7200}),
            _step(2, "drain", change={"timeout": 9000}, allowed=False),
        ],
    )
    assert 7200 <= cluster_lock._seconds(folder, None) < 9000


@pytest.mark.parametrize(
    "remedy", ["kernel_setting", "kernel_module", "file_limit", "swap_persistence"]
)
def test_what_waits_for_nothing_is_short(tmp_path: Path, remedy: str) -> None:
    """Six of them for each host of a fleet must not add up to days of a killed run's lock."""
    assert (
        cluster_lock._seconds(
            _planned(tmp_path, [_step(number, remedy) for number in range(600)]), None
        )
        <= 600 * 200
    )


def test_a_plan_of_any_length_can_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, asked = _planned(tmp_path, [_step(number, "restart") for number in range(2000)]), []
    action = cluster_lock.ActionModule.__new__(cluster_lock.ActionModule)
    action._task = type("Task", (), {"check_mode": False})()
    args = {
        "report_dir": folder,
        "state": "acquired",
        "run_id": None,
        "ttl": 900,
        "step": None,
        "take": None,
        "cluster": None,
        "members": ["m1", "m2", "m3"],
        "unable": ["m3"],
        "timeout": 40,
    }
    monkeypatch.setattr(action, "_begun", lambda *dummy: ({}, {}, args, "m1"))
    monkeypatch.setattr(
        action,
        "_ask",
        lambda host, params, dummy: (
            asked.append(params)
            or (
                "ok",
                "",
                {
                    "held": True,
                    "lock": node_lock.acquire(
                        params["run_id"],
                        params["controller"],
                        params["seconds"],
                        str(tmp_path / "node"),
                    ),
                },
            )
        ),
    )
    assert action.run()["held"] is True
    assert asked[0]["seconds"] == lock.MAX_SECONDS
    said = {one.host: (one.status, one.held, one.reason) for one in run_cluster_lock.noted(folder)}
    assert said["m1"] == ("ok", True, "")
    assert said["m3"] == (
        "unreachable",
        False,
        "Ansible could not begin with it",
    )
    assert said["m2"] == ("error", False, cluster_lock.NOT_ASKED)
    # one of three, until m2 has answered
    assert run_cluster_lock.decide(run_cluster_lock.noted(folder), RUN)[0] is False
