# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the evidence that was read after a repair says of the faults of each finished step. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...module_utils.shared import step_kinds
from ..models import result as model_result
from ..planning.plan import CLEAN_UP, Step

WORST_FIRST = ("present", "unknown", "clear", "not_applicable")
NOT_JUDGED = "not_judged"


def with_checks(
    planned: Iterable[Step],
    steps: Iterable[Mapping[str, Any]],
    after: model_result.Result,
    read_at: Callable[[str], str | None],
) -> tuple[dict[str, Any], ...]:
    """Return the results of the steps, each finished one with the checks of its faults.

    read_at: returns when the evidence of a host was read
    """
    by_id = {step.id: step for step in planned}
    results = []
    for result in steps:
        row, step = dict(result), by_id.get(result["id"])
        if step is not None and row["state"] == step_kinds.DONE and is_checked(step):
            row["verified"] = [_check(step, code, after, read_at) for code in step.codes]
        results.append(row)
    return tuple(results)


def is_checked(step: Step) -> bool:
    """Tell whether the evidence after a step must show that its fault is gone.

    What a probe shows is new, its code's other evidence is an hour of events; and a clean-up leaves
    what must stay. What counts from the next start or login on cannot be seen now.
    """
    return step.remedy not in (step_kinds.PROBE, CLEAN_UP) and not (step.expect or {}).get("later")


def _check(
    step: Step, code: str, after: model_result.Result, read_at: Callable[[str], str | None]
) -> dict[str, Any]:
    names: dict[str | None, str] = {row.node: row.host for row in after.hosts if row.node}
    hosts = {None, step.host, names.get(step.node, step.node)}
    verdicts = {
        verdict.verdict
        for verdict in after.verdicts
        if verdict.code == code and verdict.host in hosts and _is_same_part(verdict, step)
    }
    if "present" in verdicts and _is_elsewhere(step, code, hosts, after):
        verdicts = (verdicts - {"present"}) | {"clear"}
    verdict = next((name for name in WORST_FIRST if name in verdicts), NOT_JUDGED)
    return {"code": code, "verdict": verdict, "at": read_at(step.host)}


def _is_same_part(verdict: model_result.Verdict, step: Step) -> bool:
    return step.component is None or verdict.component in (None, step.component)


def _is_elsewhere(
    step: Step, code: str, hosts: set[str | None], after: model_result.Result
) -> bool:
    """Tell whether all that is found of a fault is of other hosts than those of the step."""
    places = [finding.host for finding in after.findings if finding.code == code]
    nodes = {finding.node for finding in after.findings if finding.code == code}
    return bool(places) and step.node not in nodes - {None} and not hosts & set(places)
