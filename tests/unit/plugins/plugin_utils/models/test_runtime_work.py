# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node shows of a runtime that its kubelet does not hear in time."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import runtime_work

CLOCK = 1795525501.0  # 2026-11-24T13:05:01Z
UNIT = {"name": "crio.service", "load_state": "loaded", "active_state": "active", "sub_state": "x"}
LATE = (
    "2026-11-24T13:04:54+0000 w1 kubelet[1]: E1124 13:04:54.000000 1 kubelet.go:2347]"
    ' "Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 4m3.2s'
    ' ago; threshold is 3m0s"'
)


def document(**data: Any) -> dict[str, Any]:
    answers = {"system": {"clock": CLOCK}, **data}
    collectors = {name: {"status": "ok", "data": answer} for name, answer in answers.items()}
    return {"host": "w1", "collectors": collectors}


def runtime(**fields: Any) -> dict[str, Any]:
    return {"kind": "crio", "asked": True, "calls": {"v1": 0}, "units": [UNIT], **fields}


def test_nothing_is_known_without_evidence() -> None:
    assert runtime_work.extract(document()) == runtime_work.RuntimeWork()


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "crio.service runs and answers a call now"),
        ({"units": [{**UNIT, "active_state": "activating"}]}, "crio.service is activating (x)"),
        ({"units": []}, ""),
    ],
)
def test_how_a_runtime_is_now(fields: dict[str, Any], state: str) -> None:
    work = runtime_work.extract(document(runtime=runtime(**fields)))
    assert (work.is_told, work.state) == (False, state)


@pytest.mark.parametrize(("ago", "is_told"), [(0, True), (600, False)])
def test_a_kubelet_that_misses_the_list_of_containers_now(ago: int, is_told: bool) -> None:
    given = document(
        runtime=runtime(), kubelet_log={"lines": [LATE]}, system={"clock": CLOCK + ago}
    )
    assert runtime_work.extract(given).is_told is is_told
    assert (runtime_work.pleg(given) is not None) is is_told


def test_only_processes_that_start_containers_count() -> None:
    tasks = [{"pid": 1, "name": "java", "wchan": "x"}, {"pid": 2, "name": "conmon", "wchan": "y"}]
    work = runtime_work.extract(document(runtime=runtime(), hangs={"tasks": tasks}))
    assert [proof.pid for proof in work.proofs] == [2]


@pytest.mark.parametrize(("share", "is_short"), [(0.04, True), (0.06, False)])
def test_memory_is_short_below_a_twentieth(share: float, is_short: bool) -> None:
    memory = {"total": 1 << 33, "available": int((1 << 33) * share)}
    work = runtime_work.extract(document(runtime=runtime(), pressure={"memory": memory}))
    assert bool(work.signs) is is_short


def test_the_newest_line_of_each_kind_of_the_kernel() -> None:
    rows = [
        {"kind": "disk", "count": 1, "last": CLOCK - 900, "line": "old"},
        {"kind": "disk", "count": 1, "last": CLOCK - 9, "line": "new"},
        {"kind": "gpu", "count": 1, "last": CLOCK - 9, "line": "other"},
    ]
    work = runtime_work.extract(document(runtime=runtime(), kernel_log={"rows": rows}))
    assert [proof.text for proof in work.proofs] == ["new"]
