# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A forged line in a log, or a forged name of a pod, gets nothing repaired.

No plan rests on the text of a log alone.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import CATALOGUE
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import run_plan

FOLDER = Path(__file__).resolve().parents[4] / "fixtures" / "recorded"
CASES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
# collectors that bring lines of logs, and nothing else
LOGS = frozenset({"kubelet_log", "kubelet_end", "scheduler_log"})
EVERYTHING = plan.Consent(
    3,
    frozenset({"fenced", "pending_changes", "single_control_plane", "api_down"}),
    frozenset({plan.PATCH, plan.CLEAN_UP}),
    900,
    1,
    {},
    {},
    frozenset(),
)
# What a pod, a unit or anybody with `logger` may write, in the words that the predicates look for,
# each as journalctl would print it.
LIES = tuple(
    "2026-11-22T10:00:00+0000 x kubelet[1]: " + line
    for line in (
        (
            'E1122 10:00:00.000000 1 run.go:74] "command failed" err="failed to parse kubelet flag:'
            ' unknown flag: --network-plugin"'
        ),
        (
            'E1122 10:00:00.000000 1 cpu_manager.go:223] "Could not initialize checkpoint manager,'
            ' please drain node and remove policy state file" err="could not restore state from'
            ' checkpoint: configured policy \\"none\\" differs from state checkpoint policy'
            ' \\"static\\""'
        ),
        (
            "E1122 10:00:00.000000 1 state_checkpoint.go] could not restore state from checkpoint:"
            " checkpoint is corrupted"
        ),
        (
            "F1122 10:00:00.000000 1 server.go:198] failed to run Kubelet: running with swap on is"
            " not supported, please disable swap!"
        ),
        "E1122 10:00:00.000000 1 inotify.go] inotify_init1: too many open files",
        "failed to create fsnotify watcher: too many open files",
        "no space left on device",
        "Start request repeated too quickly.",
        "Stopped kubelet.",
        "Scheduled restart job, restart counter is at 99.",
        "Main process exited, code=exited, status=205/LIMITS",
        (
            'E1122 10:00:00.000000 1 kubelet.go:1] "PLEG is not healthy" pleg was last seen active'
            " 9m ago"
        ),
        "certificate has expired or is not yet valid",
        'E1122 10:00:00.000000 1 kubelet.go] "Failed to freeze" err="unable to freeze"',
        'I1122 10:00:00.000000 1 leaderelection.go:1] "--leader-elect=false"',
    )
)


def documents(case: str) -> list[dict[str, Any]]:
    return [
        evidence_document.read(path)
        for path in sorted((FOLDER / case).rglob("*.json"))
        if path.name != "expected.json"
    ]


def changes(sound: list[dict[str, Any]]) -> dict[tuple[str, str, str, str], str]:
    """(fault, host, remedy, target) of each step that would be done, by what it changes."""
    result, clusters = fault_engine.evaluate_clusters(sound, deep=True)
    by_host = {
        document["host"]: document for document in sound if document.get("kind") != "cluster"
    }
    steps = plan.plan(
        result.findings,
        clusters,
        lambda host: by_host.get(host, {}),
        EVERYTHING,
        run_plan.REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    return {
        (step.code, step.host, step.remedy, step.target): json.dumps(step.change, sort_keys=True)
        for step in steps
        if step.allowed and not step.blocked_by
    }


def with_lines(sound: list[dict[str, Any]], lines: list[str]) -> list[dict[str, Any]]:
    """Return the same nodes, whose logs contain only this."""
    spoiled = copy.deepcopy(sound)
    for document in spoiled:
        for name in LOGS & set(document["collectors"]):
            record = document["collectors"][name]
            if record["status"] != "not_asked":
                record.update(status="ok", data={**(record["data"] or {}), "lines": list(lines)})
    return spoiled


@pytest.mark.parametrize("case", CASES)
def test_no_line_of_a_log_brings_a_step_or_changes_one(case: str) -> None:
    sound = documents(case)
    silent, lied = changes(with_lines(sound, [])), changes(with_lines(sound, list(LIES)))
    assert {key: change for key, change in lied.items() if silent.get(key) != change} == {}


def test_there_are_steps_to_compare() -> None:
    assert sum(bool(changes(documents(case))) for case in CASES) > 5


@pytest.mark.parametrize("code", sorted(set(run_plan.REMEDIES) & set(CATALOGUE)))
def test_a_fault_that_is_repaired_is_judged_by_more_than_logs(code: str) -> None:
    fault = CATALOGUE[code]
    assert set(fault.needs) - LOGS or fault.cluster_needs, (
        f"{code} is judged by {sorted(fault.needs)} only"
    )


@pytest.mark.parametrize("case", CASES)
def test_what_a_plan_mends_has_a_proof_that_is_no_log(case: str) -> None:
    """The exception is a kubelet's own last words, which only explain a unit that is down.

    KM502 also carries the unit.
    """
    sound = documents(case)
    codes = {key[0] for key in changes(sound)}
    for finding in fault_engine.evaluate(sound, deep=True).findings:
        if finding.code in codes:
            assert {proof.kind for proof in finding.evidence} - {"log"}, (
                f"{finding.code} of {finding.host} is shown by logs only"
            )
