# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps of a plan their hosts check in check mode, and what their answers mean.

A step checks its host once more in the moment before it changes anything there. In check mode the
same program checks, and changes nothing: what refuses a step is known before its operator consents.
Hosts are asked what they can answer now: a step that would find what an earlier one left is
predicted from the evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...module_utils.shared import step_kinds
from ...module_utils.shared.step_kinds import kind_of
from .plan import Step

# hosts are asked one after the other, as the repair does it, and the first refusal stops that
# anyway
MOST = 100
PREDICTED = (
    step_kinds.PREDICTED,
    step_kinds.PREDICTED_NODE,
    step_kinds.PREDICTED_UNREAD,
)
UNREAD = (step_kinds.NEXT_BOOT, step_kinds.PREDICTED_UNREAD)
NODES = "nodes"
NAMED = 10
NOT_ASKED = (
    "Check mode predicts {which} from the evidence. The repair asks the host of each step"
    " again before it changes anything there, and may still refuse the step."
)
ASKED = (
    "Check mode asked the {whose} what would refuse {it} now, and changed nothing."
    " The repair asks again, and is the first to try each write."
)


def askable_steps(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return the steps whose hosts can be asked now, in the plan's order."""
    changed: set[tuple[str, ...]] = set()
    rows = []
    for step in steps:
        if not step.allowed:
            continue
        # what was interrupted is ended before anything is begun: any step may rest on it
        if step.remedy == step_kinds.RECOVER:
            break
        if not _is_predicted(step) and changed.isdisjoint(_reads(step)):
            rows.append(step)
        changed |= _changes(step)
    return tuple(rows[:MOST])


def _is_predicted(step: Step) -> bool:
    """Return whether nothing refuses it now, or only the repair finds out."""
    return kind_of(step.remedy).check_mode in PREDICTED


def _reads(step: Step) -> set[tuple[str, ...]]:
    """Return what its answer depends on, and a step before it may change."""
    scope = kind_of(step.remedy).check_mode
    if scope == step_kinds.NODE:  # how many nodes may be out is counted over all of them
        return {("node", step.node or ""), (NODES,)}
    if scope == step_kinds.API_OBJECT:
        return {("object", step.target)}
    subjects: set[tuple[str, ...]] = {("host", step.host), ("node", step.node or step.host)}
    # which may need an API server that a step before it brings back
    if scope == step_kinds.MANAGERS:
        return {*subjects, (NODES,)}
    if scope == step_kinds.COMPONENT:
        return {*subjects, ("component", step.host, step.component or "")}
    return subjects


def _changes(step: Step) -> set[tuple[str, ...]]:
    """Return what it changes that a later step may read."""
    kind = kind_of(step.remedy)
    scope = kind.check_mode
    if scope in (step_kinds.NODE, step_kinds.PREDICTED_NODE):
        return {("node", step.node or "")}
    if scope == step_kinds.API_OBJECT:
        return {("object", step.target)}
    if scope == step_kinds.COMPONENT:
        return {("component", step.host, step.component or "")}
    if scope in UNREAD:
        return set()
    if kind.brings_back or (step.expect or {}).get("down"):
        return {("host", step.host), (NODES,)}
    return {("host", step.host)}


def refused(
    steps: Iterable[Step], answers: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """Return the steps that their hosts would not do, as a report tells what became of steps."""
    return tuple(
        dict(answers[step.id])
        for step in steps
        if step.id in answers and answers[step.id]["state"] != step_kinds.SKIPPED
    )


def outcome(
    steps: Iterable[Step], answers: Mapping[str, Mapping[str, Any]]
) -> tuple[int, str, str] | None:
    """Return how a check ends that has a refusal, as the repair would, or None."""
    for step in steps:
        answer = answers.get(step.id)
        if answer is not None and answer["state"] != step_kinds.SKIPPED:
            kind = "refused" if answer["state"] == step_kinds.REFUSED else "failed"
            return (
                2,
                kind,
                f"step {step.id} on {step.host} {would(answer['state'])}: {answer['reason']}",
            )
    return None


def answer_text(reason: str) -> str:
    """Return what a node answered in check mode, without the words that say so."""
    answer = reason.removeprefix(step_kinds.CHECK_MODE_LEAD)
    return "" if answer == step_kinds.UNCHANGED else answer


def would(state: str) -> str:
    """Return how a step would end, in words."""
    return "would be refused" if state == step_kinds.REFUSED else "would fail"


def notices(steps: Sequence[Step], answers: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what a plan of check mode knows, and what it cannot know."""
    allowed = [step for step in steps if step.allowed]
    answered = [step for step in allowed if step.id in answers]
    predicted = [step.id for step in allowed if step.id not in answers]
    sentences = []
    if answered:
        sentences.append(_asked_sentence(len(answered)))
    for step in answered:
        reason = answers[step.id].get("reason")
        if reason and answers[step.id]["state"] == step_kinds.SKIPPED:
            sentences.append(f"{step.id}: {reason}")
    if predicted:
        phrase = _named(predicted) if answered else "the steps"
        sentences.append(NOT_ASKED.format(which=phrase))
    return tuple(sentences)


def _asked_sentence(count: int) -> str:
    if count == 1:
        return ASKED.format(whose="host of one step", it="it")
    return ASKED.format(whose=f"hosts of {count} steps", it="them")


def _named(ids: Sequence[str]) -> str:
    names = ", ".join(ids[:NAMED])
    if len(ids) > NAMED:
        return f"{names} and {len(ids) - NAMED} more"
    return names
