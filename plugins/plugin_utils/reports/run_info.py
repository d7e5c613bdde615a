# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run itself as reports show it, and the counts that every report shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from ...module_utils.shared.text import counted
from ..models import result as model_result
from ..models.timeline import Timeline
from ..models.waivers import Waiver
from ..planning.plan import Step
from .diff import Comparison

# What each value of kubemend_fail_on counts: this severity and every worse one.
_COUNTED = {
    "never": (),
    "critical": ("critical",),
    "warning": ("critical", "warning"),
    "unknown": ("critical", "warning", "unknown"),
}


@dataclass(frozen=True)
class Symptom:
    """What the operator sees, and the codes of its possible causes."""

    name: str
    title: str
    causes: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """The data of one run that no finding holds.

    Attributes:
        mode: observe, plan, repair, verify, replay, capture or revert.
        fail_on: the value of kubemend_fail_on.
        notices: sentences for the operator.
        titles: the titles of the fault codes.
        plan: the steps that would fix the findings.
        steps: the results of the steps that were done, (id, state, reason) as mappings.
        diffs: whether the operator asked to see them (--diff).
        outcome: (exit code, exit reason, sentence) where more than the findings decides it.
        timelines: of the inspected pods.
        captures: results of scheduler captures, as scheduler_capture.result has them.
        compared: the difference to an earlier report, where that was requested.
        pages: the directory of the faults' pages, empty where they are not installed.
        explain: the command that shows such a page, empty where it is not in use.
        undo: the command that takes back what this run did, empty where it is not known.
        repair: the command for the steps of the plan that wait for consent, or empty.
        faults: the selected codes, None for all.
        outside: hosts of the inventory that are not in the run, each with the reason.
        cluster_names: the name of each cluster, by its key.
        verbose: whether the operator asked for every list (-v).
        evidence_time: of recorded evidence, when it was collected; empty where it is the run's.
        explanations: the text of the page of each fault that was found, in Markdown.
        waivers_expired: waivers of the operator without effect.
        severities: those that the operator gave to codes that were found.
    """

    run_id: str
    started: str
    finished: str
    mode: str
    report_dir: str
    tool_version: str
    fail_on: str = "never"
    symptom: Symptom | None = None
    notices: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    plan: tuple[Step, ...] = ()
    steps: tuple[Mapping[str, Any], ...] = ()
    diffs: bool = False
    outcome: tuple[int, str, str] | None = None
    timelines: tuple[Timeline, ...] = ()
    captures: tuple[Mapping[str, Any], ...] = ()
    compared: Comparison | None = None
    pages: str = ""
    explain: str = ""
    undo: str = ""
    repair: str = ""
    faults: frozenset[str] | None = None
    outside: tuple[tuple[str, str], ...] = ()
    cluster_names: Mapping[str | None, str] = field(default_factory=dict)
    verbose: bool = False
    evidence_time: str = ""
    explanations: Mapping[str, str] = field(default_factory=dict)
    waivers_expired: tuple[Waiver, ...] = ()
    severities: Mapping[str, str] = field(default_factory=dict)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The notices, with those about waivers and severities."""
        changed = (
            f"kubemend_severity makes {code} {severity}."
            for code, severity in sorted(self.severities.items())
        )
        return (*self.notices, *(waiver.end for waiver in self.waivers_expired), *changed)

    def path(self, name: str) -> str:
        """Return the path of a file in the report directory."""
        return str(PurePath(self.report_dir) / name)


def summary(result: model_result.Result) -> dict[str, int]:
    """Return the counts of report.json: findings by severity, verdicts by kind.

    A waived finding is counted as waived only, where there is one.
    """
    states = Counter(finding.state for finding in result.findings)
    verdicts = Counter(verdict.verdict for verdict in result.verdicts)
    counts = {name: states[name] for name in ("critical", "warning")}
    counts.update(
        (name, verdicts[name]) for name in ("present", "unknown", "clear", "not_applicable")
    )
    if states[model_result.WAIVED]:
        counts[model_result.WAIVED] = states[model_result.WAIVED]
    return counts


def exit_of(result: model_result.Result, run: Run) -> tuple[int, str]:
    """Return (exit code, exit reason).

    They are the outcome of a repair, else whether the threshold of kubemend_fail_on is reached.
    Compared with an earlier report, only new findings count.
    """
    if run.outcome is not None and run.outcome[0]:
        return run.outcome[:2]
    counts: Mapping[str, int] = summary(result)
    if run.compared is not None:
        counts = run.compared.counts
    if any(counts[name] for name in _COUNTED[run.fail_on]):
        return 2, "threshold"
    return 0, "ok"


def last_line(result: model_result.Result, run: Run) -> str:
    """Return the line that closes the console report."""
    counts = summary(result)
    host_count = sum(1 for item in result.hosts if item.status != "not_asked")
    return (
        f"kubemend: {counted(host_count, 'host')}, {counts['critical']} critical,"
        f" {counts['warning']} warning,"
        f" {counts['unknown']} unknown; report: {run.report_dir}"
    )
