# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps of a plan are asked of their hosts in check mode, and what their answers come to.

A step looks at its host once more in the moment before it changes anything there. In check mode the
same program looks, and changes nothing: what refuses it is told before anybody consents. Asked is
what can be answered now: a step that would find what one before it left is predicted from the
evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...module_utils.steps import executor as apply_step
from ...module_utils.steps.handlers import api_steps as apply_api
from ...module_utils.steps.handlers import service_unmask as unit_unmask
from .plan import Step

# hosts are asked one after the other, as the repair does it, and the first refusal stops that
# anyway
MOST = 100
# What a repair finds out only by doing it, and what can be refused by nothing that is there now.
PREDICTED = (
    apply_step.LEVELS,
    apply_api.PROBE,
    apply_api.CLEAN_UP,
    apply_api.UNCORDON,
    "restart_leader",
)
MANIFESTS = ("edit_manifest", "edit_config", "move_out", "restart")
THROUGH_API = (apply_api.KUBEADM_CONFIG, apply_api.PATCH)
# what they write counts from the next boot, and no other step looks at it
BESIDE = ("enable_kubelet", "enable_runtime", "swap_persistence")
BACK = ("start_kubelet", "start_runtime", unit_unmask.REMEDY, "start_former", "swap_off")
NODES = "nodes"
NAMED = 10
NOT_ASKED = (
    "Check mode predicts {which} from the evidence. What each step looks at last on its own host,"
    " in the moment before it changes anything there, only the repair asks, and may still refuse"
    " the step."
)
ASKED = (
    "Check mode asked the {whose} what would refuse {it} now, and changed nothing; the repair asks"
    " again, and is the first to try each write."
)


def asked(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps whose hosts can be asked now, in the plan's order."""
    changed: set[tuple[str, ...]] = set()
    found = []
    for step in steps:
        if not step.allowed:
            continue
        # what was interrupted is ended before anything is begun: any step may rest on it
        if step.remedy == "recover":
            break
        if step.remedy not in PREDICTED and changed.isdisjoint(_looks_at(step)):
            found.append(step)
        changed |= _changes(step)
    return tuple(found[:MOST])


def _looks_at(step: Step) -> set[tuple[str, ...]]:
    """What its answer depends on, and a step before it may change."""
    if step.remedy == apply_api.DRAIN:  # how many nodes may be out is counted over all of them
        return {("node", step.node or ""), (NODES,)}
    # which may need an API server that a step before it brings back
    if step.remedy in apply_step.MANAGERS:
        return {("host", step.host), ("node", step.node or step.host), (NODES,)}
    if step.remedy in THROUGH_API:
        return {("object", step.target)}
    mine = {("host", step.host), ("node", step.node or step.host)}
    return (
        mine | {("component", step.host, step.component or "")}
        if step.remedy in MANIFESTS
        else mine
    )


def _changes(step: Step) -> set[tuple[str, ...]]:
    if step.remedy in (apply_api.DRAIN, apply_api.UNCORDON):
        return {("node", step.node or "")}
    if step.remedy in THROUGH_API:
        return {("object", step.target)}
    if step.remedy in MANIFESTS:
        return {("component", step.host, step.component or "")}
    if step.remedy in (*BESIDE, apply_api.PROBE, apply_api.CLEAN_UP):
        return set()
    down = bool((step.expect or {}).get("down"))
    return {("host", step.host)} | ({(NODES,)} if step.remedy in BACK or down else set())


def refused(
    steps: Iterable[Step], answers: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """The steps that their hosts would not do, as a report tells what became of steps."""
    return tuple(
        dict(answers[step.id])
        for step in steps
        if step.id in answers and answers[step.id]["state"] != apply_step.SKIPPED
    )


def outcome(
    steps: Iterable[Step], answers: Mapping[str, Mapping[str, Any]]
) -> tuple[int, str, str] | None:
    """How a check ends that found a refusal: as the repair would."""
    for step in steps:
        answer = answers.get(step.id)
        if answer is not None and answer["state"] != apply_step.SKIPPED:
            kind = "refused" if answer["state"] == apply_step.REFUSED else "failed"
            return (
                2,
                kind,
                f"step {step.id} on {step.host} {would(answer['state'])}: {answer['reason']}",
            )
    return None


def said(reason: str) -> str:
    """What a node answered in check mode, without the words that say so."""
    told = reason.removeprefix("check mode: ")
    return "" if told == apply_step.UNCHANGED else told


def would(state: str) -> str:
    return "would be refused" if state == apply_step.REFUSED else "would fail"


def notices(steps: Sequence[Step], answers: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """What a plan of check mode knows, and what it cannot."""
    allowed = [step for step in steps if step.allowed]
    told = [step for step in allowed if step.id in answers]
    rest = [step.id for step in allowed if step.id not in answers]
    if not allowed:
        return ()
    which = (
        "the steps"
        if not told
        else ", ".join(rest[:NAMED])
        + (f" and {len(rest) - NAMED} more" if len(rest) > NAMED else "")
    )
    whose, it = (
        ("host of one step", "it") if len(told) == 1 else (f"hosts of {len(told)} steps", "them")
    )
    words = {
        step.id: answers[step.id].get("reason")
        for step in told
        if answers[step.id]["state"] == apply_step.SKIPPED
    }
    drains = tuple(f"{name}: {what}" for name, what in words.items() if what)
    return (
        ((ASKED.format(whose=whose, it=it),) if told else ())
        + drains
        + ((NOT_ASKED.format(which=which),) if rest else ())
    )
