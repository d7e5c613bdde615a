# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a repairing run in its report directory: the plan, and the result of each step.

plan.json is written once, before the first step; steps.jsonl gets one line when a step ends. A run
that is interrupted leaves the first lines, and the next run knows from them and from the nodes'
journals how far it came.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..models import result as model_result
from ..planning.plan import Step, only_risk
from . import verification

SCHEMA = "kubemend.plan/1"
BEGUN, LOOKS = "step.begun", "looks.jsonl"
ANSWERED = "api.answered"  # by an API server, in the wait for what a step recovered


def plan_text(run_id: str, settings: Mapping[str, Any], steps: Iterable[Step]) -> str:
    """Return plan.json's text: every step, with what is for the node only."""
    plan = {
        "schema": SCHEMA,
        "run_id": run_id,
        "settings": dict(settings),
        "steps": [asdict(step) for step in steps],
    }
    return json.dumps(plan, indent=1) + "\n"


def read_plan(folder: str) -> tuple[Step, ...]:
    """Return the steps of a run's plan.

    Raises OSError or ValueError when there is none that can be read.
    """
    plan = json.loads((Path(folder) / "plan.json").read_text(encoding="utf-8"))
    if plan.get("schema") != SCHEMA:
        raise ValueError(f"{folder}/plan.json is no plan of this version")
    return tuple(map(_step, plan["steps"]))


def _step(record: dict[str, Any]) -> Step:
    """Return a step; JSON has its tuples as lists."""
    tuples = {name: tuple(record.get(name) or ()) for name in ("nodes", "needs", "also")}
    return Step(**{**record, **tuples})


def read_steps(folder: str) -> tuple[dict[str, Any], ...]:
    """Return the results of the steps that ended, in their order.

    A line that was cut by a kill is passed over.
    """
    return _read(Path(folder) / "steps.jsonl")


def note_look(folder: str, record: Mapping[str, Any]) -> None:
    """Append one line, in one write."""
    handle = os.open(Path(folder) / LOOKS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, json.dumps(record).encode() + b"\n")
    finally:
        os.close(handle)


def _read(path: Path) -> tuple[dict[str, Any], ...]:
    if not path.exists():
        return ()
    steps = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            step = json.loads(line)
        except ValueError:
            continue
        if isinstance(step, dict) and {"id", "state"} <= step.keys():
            steps.append({"reason": "", **step})
    return tuple(steps)


def last_end(folder: str) -> float | None:
    """Return when the last step of this run ended, in seconds since the epoch, or None."""
    try:
        return (Path(folder) / "steps.jsonl").stat().st_mtime
    except OSError:
        return None


def read_looks(folder: str) -> dict[str, dict[str, Any]]:
    """Return the answers of the hosts of a plan's steps in check mode, by the step."""
    return {step["id"]: step for step in _read(Path(folder) / LOOKS)}


def begun(folder: str) -> str | None:
    """Return the step that was sent to its node and whose result is not known, or None."""
    try:
        return (Path(folder) / BEGUN).read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None


def unsettled(folder: str) -> bool:
    """Tell whether a step of this run may still be running on its node."""
    return begun(folder) is not None or any(step.get("lost") for step in read_steps(folder))


def outcome(
    plan: Iterable[Step],
    steps: Iterable[Mapping[str, Any]],
    after: model_result.Result,
    lost: str | None = None,
) -> tuple[int, str, str]:
    """Return (exit code, exit reason, one sentence) of a repair, by evidence collected after it.

    A step verifies itself on its own host; the fault of a cluster is gone only when no evidence
    shows it any more. lost: the step that was sent and whose result is not known.
    """
    plan, results = tuple(plan), {step["id"]: step for step in steps}
    allowed = [step for step in plan if step.allowed]
    for step in allowed:
        failure = _failure(step, results.get(step.id), lost)
        if failure:
            return failure
    remaining = _still([step for step in allowed if verification.is_checked(step)], after)
    refused = withheld(plan)
    if refused:
        code, reason, sentence = refused
        if remaining:
            sentence += f"; besides, {remaining}"
        return code, reason, sentence
    if remaining:
        return 2, "failed", f"every step that was allowed is done, but {remaining}"
    return 0, "ok", ""


def _failure(
    step: Step, result: Mapping[str, Any] | None, lost: str | None
) -> tuple[int, str, str] | None:
    """Return the outcome of a step that is not done, or None."""
    if result is None:
        result = {"state": "failed", "reason": "it was not begun"}
        if step.id == lost:
            result["reason"] = "it was begun, and its end is not known; the next run finds out"
    state = result["state"]
    if state == "done":
        return None
    kind = "failed"
    if state == "refused":
        kind = state
    return 2, kind, f"step {step.id} on {step.host} is {state}: {result['reason']}"


def _still(steps: Iterable[Step], after: model_result.Result) -> str:
    """Return the faults of finished steps that are not gone, in a clause; empty without any.

    A host that no step was for and that does not answer leaves its own verdict unknown, and says
    nothing against the repair of another one.
    """
    hosts = _hosts_by_fault(steps, after)
    verdicts = [verdict for verdict in after.verdicts if _remains(verdict, hosts)]
    if not verdicts:
        return ""
    state = "unknown"
    if any(verdict.verdict == "present" for verdict in verdicts):
        state = "present"
    codes = " ".join(sorted({verdict.code for verdict in verdicts}))
    places = _places(verdicts, hosts, after)
    return f"{codes} is still {state} because of {', '.join(sorted(places))}"


def _places(
    verdicts: list[model_result.Verdict],
    hosts: Mapping[tuple[str, str | None], set[str | None]],
    after: model_result.Result,
) -> set[str]:
    """Return the places of the findings that remain, or else of what the verdicts lack."""
    places = {
        finding.host or finding.node or "the cluster"
        for finding in after.findings
        if (finding.code, finding.cluster) in hosts
    }
    return places or {lack.host for verdict in verdicts for lack in verdict.missing}


def _hosts_by_fault(
    steps: Iterable[Step], after: model_result.Result
) -> dict[tuple[str, str | None], set[str | None]]:
    """Return {(code, cluster): the hosts of its steps, and None for the cluster itself}."""
    clusters = {row.host: row.cluster for row in after.hosts}
    names: dict[str | None, str | None] = {row.node: row.host for row in after.hosts if row.node}
    hosts: dict[tuple[str, str | None], set[str | None]] = {}
    for step in steps:
        fault = step.code, clusters.get(step.host, step.cluster)
        hosts.setdefault(fault, {None}).update((step.host, names.get(step.node, step.node)))
    return hosts


def _remains(
    verdict: model_result.Verdict, hosts: Mapping[tuple[str, str | None], set[str | None]]
) -> bool:
    fault = verdict.code, verdict.cluster
    if fault not in hosts:
        return False
    if verdict.verdict == "unknown":
        return verdict.host in hosts[fault]
    return verdict.verdict == "present"


def withheld(plan: Iterable[Step], negation: str = "was not") -> tuple[int, str, str] | None:
    """Return the outcome of a step with consent that is not done for another reason, or None.

    Its fault stays.
    """
    for step in plan:
        if not step.allowed and not only_risk(step):
            return 2, "refused", f"step {step.id} on {step.host} {negation} done: {step.blocked_by}"
    return None
