# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection answers to a case, and whether that is what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import consent
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import Finding
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    REMEDIES,
)

from . import build

EVERYTHING = plan.Consent(
    3, frozenset(consent.WORDS), frozenset((plan.CLEAN_UP, plan.PATCH, plan.PINNED))
)
Place = tuple[str, str | None, str | None, str | None]


@dataclass(frozen=True)
class Answer:
    """What the collection answers to the evidence of a case.

    findings: all of them. usual: the places of those that the base has by itself. steps: the plan
    with consent to everything.
    """

    findings: tuple[Finding, ...]
    usual: frozenset[Place]
    steps: tuple[plan.Step, ...]

    @property
    def new(self) -> list[Finding]:
        """The findings that the base does not have."""
        return [item for item in self.findings if place(item) not in self.usual]

    @property
    def planned(self) -> list[plan.Step]:
        """The steps that nothing forbids."""
        return [step for step in self.steps if step.allowed]


def place(finding: Finding) -> Place:
    """Return what a finding is of: its fault and its place."""
    return finding.code, finding.host, finding.component, finding.node


def answer(case: Mapping[str, Any]) -> Answer:
    """Evaluate the evidence of a case, and plan with consent to everything."""
    evidence = build.build(case)
    documents = {
        document["host"]: document
        for document in evidence.documents()
        if document.get("kind") != "cluster"
    }
    result, clusters = fault_engine.evaluate_clusters(evidence.documents(), deep=True)
    steps = plan.plan(
        result.findings,
        clusters,
        documents.__getitem__,
        EVERYTHING,
        REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    return Answer(result.findings, _usual(case["base"]), steps)


@lru_cache
def _usual(base: str) -> frozenset[Place]:
    result = fault_engine.evaluate(build.base(base).documents(), deep=True)
    return frozenset(place(item) for item in result.findings)


def forbidden(case: Mapping[str, Any], found: Answer) -> list[plan.Step]:
    """Return the planned steps that would do harm in this case."""
    kinds = case["expected"]["not_planned"]
    return [step for step in found.planned if step.remedy in kinds]


def missing(case: Mapping[str, Any], found: Answer) -> list[str]:
    """Return the expected codes and words that the findings do not have."""
    expected = case["expected"]
    codes = {item.code for item in found.findings}
    lacking = [code for code in expected["codes"] if code not in codes]
    words = expected.get("cause_in_text", ())
    looked_at = [item for item in found.findings if item.code in expected["codes"]]
    texts = [text_of(item) for item in looked_at or found.new]
    if words and not any(all(word.lower() in text for word in words) for text in texts):
        lacking += [f"'{word}'" for word in words]
    return lacking


def others(case: Mapping[str, Any], found: Answer) -> list[Finding]:
    """Return the new findings that are neither expected nor explained by what is.

    Findings of severity info are no blame.
    """
    expected = case["expected"]
    known = {*expected["codes"], *expected.get("consequences", ())}
    blamed = [item for item in found.new if item.severity != "info" and item.code not in known]
    if not expected["codes"]:
        words = expected.get("cause_in_text", ())
        blamed = [item for item in blamed if not _quotes(item, words)]
    return [item for item in blamed if not _leads_to(item, known, found.findings)]


def is_solved(case: Mapping[str, Any], found: Answer) -> bool:
    """Tell whether the findings name the cause, blame nothing else, and no step does harm."""
    return not (missing(case, found) or others(case, found) or forbidden(case, found))


def grade(case: Mapping[str, Any], found: Answer) -> str:
    """Return the grade as far as a program can tell it."""
    if forbidden(case, found):
        return "harmful"
    if is_solved(case, found):
        return "right"
    if not [item for item in found.new if item.severity != "info"]:
        return "silent"
    return "partly" if _is_near(case, found) else "wrong"


def _is_near(case: Mapping[str, Any], found: Answer) -> bool:
    """Tell whether a part of what is expected, or one of its consequences, is found."""
    expected = case["expected"]
    wanted = len(expected["codes"]) + len(expected.get("cause_in_text", ()))
    consequences = {item.code for item in found.new} & {*expected.get("consequences", ())}
    return bool(consequences) or len(missing(case, found)) < wanted


def text_of(finding: Finding) -> str:
    """Return what a finding says and quotes, in lower case."""
    quoted = [ref.text for ref in finding.evidence if ref.text]
    return " ".join([finding.summary, *quoted]).lower()


def _quotes(finding: Finding, words: Iterable[str]) -> bool:
    text = text_of(finding)
    return all(word.lower() in text for word in words)


def _leads_to(finding: Finding, known: set[str], findings: Iterable[Finding]) -> bool:
    """Tell whether a chain of causes leads from a finding to a known one."""
    causes = {item.code: item.because for item in findings}
    reached, left = set(), list(finding.because)
    while left:
        code = left.pop()
        if code in known:
            return True
        if code not in reached:
            reached.add(code)
            left += causes.get(code, ())
    return False
