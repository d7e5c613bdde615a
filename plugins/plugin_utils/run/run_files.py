# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a repairing run in its report folder: the plan, and what became of each step.

plan.json is written once, before the first step; steps.jsonl gets one line when a step ends.
Whoever is interrupted leaves the first lines, and the next run tells from them and from the nodes'
journals how far it came.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..models import result as model
from ..planning.plan import CLEAN_UP, PROBE, Step, only_risk

SCHEMA = "kubemend.plan/1"


def plan_text(run_id: str, settings: Mapping[str, Any], steps: Iterable[Step]) -> str:
    """plan.json's text: every step, with what is for the node only."""
    return (
        json.dumps(
            {
                "schema": SCHEMA,
                "run_id": run_id,
                "settings": dict(settings),
                "steps": [asdict(step) for step in steps],
            },
            indent=1,
        )
        + "\n"
    )


def read_plan(folder: str) -> tuple[Step, ...]:
    """The steps of a run's plan.

    Raises OSError or ValueError when there is none that can be read.
    """
    plan = json.loads((Path(folder) / "plan.json").read_text(encoding="utf-8"))
    if plan.get("schema") != SCHEMA:
        raise ValueError(f"{folder}/plan.json is no plan of this version")
    return tuple(
        Step(**{**step, "nodes": tuple(step.get("nodes") or ())}) for step in plan["steps"]
    )


def read_steps(folder: str) -> tuple[dict[str, Any], ...]:
    """What became of the steps that ended, in their order.

    A line that was cut by a kill is passed over.
    """
    return _read(Path(folder) / "steps.jsonl")


def note_look(folder: str, record: Mapping[str, Any]) -> None:
    """One line, in one write."""
    handle = os.open(Path(folder) / LOOKS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, json.dumps(record).encode() + b"\n")
    finally:
        os.close(handle)


def _read(path: Path) -> tuple[dict[str, Any], ...]:
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            step = json.loads(line)
        except ValueError:
            continue
        if isinstance(step, dict) and {"id", "state"} <= step.keys():
            found.append({"reason": "", **step})
    return tuple(found)


BEGUN, LOOKS = "step.begun", "looks.jsonl"
ANSWERED = "api.answered"  # by an API server, when what was brought back was waited for


def last_end(folder: str) -> float | None:
    """When the last step of this run ended, in seconds since the epoch; None where none has."""
    try:
        return (Path(folder) / "steps.jsonl").stat().st_mtime
    except OSError:
        return None


def read_looks(folder: str) -> dict[str, dict[str, Any]]:
    """What the hosts of a plan's steps said in check mode, by the step."""
    return {step["id"]: step for step in _read(Path(folder) / LOOKS)}


def begun(folder: str) -> str | None:
    """The step that was sent to its node and of which nobody heard again (its task was ended),
    or None.
    """
    try:
        return (Path(folder) / BEGUN).read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None


def unsettled(folder: str) -> bool:
    """Whether a step of this run may still be at work on its node."""
    return begun(folder) is not None or any(step.get("lost") for step in read_steps(folder))


def outcome(
    plan: Iterable[Step],
    steps: Iterable[Mapping[str, Any]],
    after: model.Result,
    lost: str | None = None,
) -> tuple[int, str, str]:
    """(exit code, exit reason, one sentence) of a run that repaired, judged on evidence collected
    afresh.

    A step proves itself on its own host; the fault of a cluster is gone only when nothing proves it
    any more. lost: the step that was sent and of which nobody heard again.
    """
    states = {step["id"]: step for step in steps}
    done: list[Step] = []
    for step in plan:
        if not step.allowed:
            continue
        unheard = (
            "it was begun, and nobody heard how it ended; the next run finds out"
            if step.id == lost
            else "it was not begun"
        )
        ended = states.get(step.id, {"state": "failed", "reason": unheard})
        if ended["state"] != "done":
            kind = "refused" if ended["state"] == "refused" else "failed"
            return 2, kind, f"step {step.id} on {step.host} is {ended['state']}: {ended['reason']}"
        # What a probe proves is new, its code's other evidence is an hour of events; and a clean-up
        # leaves what must stay. What counts from the next
        # start or login on cannot be seen now.
        if step.remedy not in (PROBE, CLEAN_UP) and not (step.expect or {}).get("later"):
            done.append(step)
    still, refused = _still(done, after), withheld(plan)
    if refused:
        return (*refused[:2], f"{refused[2]}; besides, {still}" if still else refused[2])
    return (
        (2, "failed", f"every step that was allowed is done, but {still}")
        if still
        else (0, "ok", "")
    )


def _still(done: Iterable[Step], after: model.Result) -> str:
    """Of which cluster the faults are not gone whose steps are done, in a clause.

    Empty where they are gone.

    A host that no step was for and that does not answer leaves its own verdict unknown, and says
    nothing against the repair of another one.
    """
    clusters, named = (
        {row.host: row.cluster for row in after.hosts},
        {row.node: row.host for row in after.hosts if row.node},
    )
    hosts: dict[tuple[str, str | None], set[str | None]] = {}
    for step in done:
        hosts.setdefault((step.code, clusters.get(step.host, step.cluster)), {None}).update(
            (step.host, named.get(step.node, step.node))
        )
    left = [
        item
        for item in after.verdicts
        if (item.code, item.cluster) in hosts
        and (
            item.verdict == "present"
            or (item.verdict == "unknown" and item.host in hosts[item.code, item.cluster])
        )
    ]
    kept = sorted(
        {
            finding.host or finding.node or "the cluster"
            for finding in after.findings
            if (finding.code, finding.cluster) in hosts
        }
        or {lack.host for item in left for lack in item.missing}
    )
    verdict = "present" if any(item.verdict == "present" for item in left) else "unknown"
    return (
        f"{' '.join(sorted({item.code for item in left}))} is still {verdict} because of"
        f" {', '.join(kept)}"
        if left
        else ""
    )


def withheld(plan: Iterable[Step], what: str = "was not") -> tuple[int, str, str] | None:
    """The outcome of a step that was consented to and is not done for another reason.

    Its fault stays. None without one.
    """
    step = next((step for step in plan if not step.allowed and not only_risk(step)), None)
    return (
        (2, "refused", f"step {step.id} on {step.host} {what} done: {step.blocked_by}")
        if step
        else None
    )
