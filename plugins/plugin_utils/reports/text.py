# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in plain text.

Pure: a result and the run's data become a string. Text from nodes is untrusted, so every line is
escaped as a whole, in one place (text_page.Page), before any colour is added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from ..models import result as model_result
from . import conclusion, phrases, scheduler_capture, timeline
from .diff import Comparison
from .run_info import Run, Symptom, last_line
from .text_page import Page, Paint, plain

Row = TypeVar(
    "Row",
    model_result.Finding,
    model_result.Verdict,
    model_result.NotJudged,
    model_result.HostRow,
    model_result.Lack,
    model_result.Coverage,
)
WIDTH = 79  # what Ansible prints where it sees no terminal
ROLES = (("control_plane", "control plane"), ("worker", "workers"), ("unknown", "role unknown"))
CHANGES = (("new", "critical"), ("worse", "critical"), ("gone", "good"), ("unchanged", ""))
STATE_KINDS = {"done": "good", "to do": "info", "will be done": "info"}


def render(result: model_result.Result, run: Run, width: int = WIDTH, paint: Paint = plain) -> str:
    """Return the whole report, ending with a newline."""
    page = Page(width, paint)
    page.prose(f"kubemend: {phrases.about(run)}", indent=0)
    page.prose(f"run {run.run_id}, {run.started}, {phrases.MODES[run.mode]}", indent=0)
    for notice in run.notices:
        page.prose(f"note: {notice}", indent=0)
    keys = phrases.cluster_keys(result)
    for key in keys:
        _cluster(page, result, run, key)
    page.gap()
    _not_judged(page, [item for item in result.not_judged if item.cluster not in keys])
    if run.pages and result.findings:
        page.line(f"about a code: {run.pages}/<code>.md")
    for pod_timeline in run.timelines:
        page.gap()
        timeline.render(page, pod_timeline)
    for capture in run.captures:
        page.gap()
        scheduler_capture.render(page, capture)
    page.gap()
    compared(page, run)
    page.gap()
    _plan(page, run)
    page.gap()
    sentence = conclusion.conclusion(result, run)
    if sentence:
        page.prose(sentence, indent=0)
    page.line(last_line(result, run))
    return page.text()


def compared(page: Page, run: Run) -> None:
    """Write the difference to an earlier report, if there is one."""
    if run.compared is None:
        return
    comparison = run.compared
    page.prose(
        f"compared with run {comparison.run_id}, which ended {comparison.finished}:", indent=0
    )
    for name, kind in CHANGES:
        _changes(page, comparison, name, kind)
    places_by_reason: dict[str, list[str]] = {}
    for item, reason in comparison.not_judged:
        places_by_reason.setdefault(reason, []).append(phrases.place(item))
    for reason, places in places_by_reason.items():
        page.prose(
            f"{phrases.join_names(places)} ({reason})", label="not judged now: ", kind="unknown"
        )


def _changes(page: Page, comparison: Comparison, name: str, kind: str) -> None:
    places = [phrases.place(item) for item in getattr(comparison, name)]
    if places:
        page.prose(phrases.join_names(places), label=f"{name}: ", kind=kind)
    elif name == "new":
        page.prose("nothing", label=f"{name}: ", kind="good")


def _plan(page: Page, run: Run) -> None:
    """Write the steps in their order with their states; with --diff also the changes."""
    done = {step["id"]: step for step in run.steps}
    if run.plan:
        page.line("plan:")
    for step in run.plan:
        state, reason = phrases.state_of(step, done.get(step.id), run.mode)
        risk = "manual"
        if step.risk:
            risk = f"risk {step.risk}"
        text = f"{step.remedy} {step.target} ({risk}): {state}"
        if reason:
            text += f"; {reason}"
        page.prose(text, label=f"{step.id} ", kind=STATE_KINDS.get(state, "warning"))
        if step.note:
            page.prose(f"note: {step.note}", indent=4)
        if run.diffs:
            for line in step.diff.splitlines():
                page.line(f"    {line}")


def _cluster(page: Page, result: model_result.Result, run: Run, key: str | None) -> None:
    findings = phrases.in_order(_at(key, result.findings))
    verdicts, not_judged = _at(key, result.verdicts), _at(key, result.not_judged)
    hosts = _at(key, result.hosts)
    page.gap()
    _heading(page, result, hosts, key)
    _coverage(page, result, run, key)
    for group in phrases.group_alike(findings):
        page.gap()
        _finding(page, group)
    page.gap()
    causes: Collection[str] = ()
    if run.symptom:
        causes = run.symptom.causes
        _differential(page, run, run.symptom, verdicts, not_judged)
        page.gap()
    other_verdicts = [item for item in verdicts if item.code not in causes]
    _unknown(page, other_verdicts, hosts)
    for line in conclusion.reasons(_at(key, result.lacks)):
        page.prose(line, label="  why: ", indent=4)
    _not_judged(page, [item for item in not_judged if item.code not in causes])
    _clear(page, other_verdicts)
    for text, names in conclusion.about_hosts(hosts, findings, result, run).items():
        page.prose(f"{text}: {phrases.join_names(names)}", indent=0)
    _silent(page, hosts)
    _notes(page, verdicts)


def _at(key: str | None, rows: Iterable[Row]) -> list[Row]:
    """Return the rows of a cluster."""
    return [row for row in rows if row.cluster == key]


def _coverage(page: Page, result: model_result.Result, run: Run, key: str | None) -> None:
    for coverage in _at(key, result.coverage):
        sentence = conclusion.covered(coverage, run)
        if sentence:
            page.prose(sentence, indent=0)


def _notes(page: Page, verdicts: Sequence[model_result.Verdict]) -> None:
    for note in dict.fromkeys(item.note for item in verdicts if item.note):
        codes = phrases.join_codes(item.code for item in verdicts if item.note == note)
        page.prose(f"note: {note} ({codes})", indent=0)


def _heading(
    page: Page, result: model_result.Result, hosts: Sequence[model_result.HostRow], key: str | None
) -> None:
    text = "Hosts of no proven cluster"
    if key is not None and key != model_result.UNPROVEN:
        versions = (item.kubernetes_version for item in result.clusters if item.key == key)
        text = f"Cluster {key}, Kubernetes {next(versions, None) or 'version unknown'}"
    parts = []
    for role, title in ROLES:
        names = [item.host for item in hosts if item.role == role]
        if names:
            parts.append(f"{title}: {phrases.join_names(names)}")
    if parts:
        text += ": " + "; ".join(parts)
    page.prose(text, indent=0)


def _finding(page: Page, group: Sequence[model_result.Finding]) -> None:
    first = group[0]
    hosts = phrases.join_names([host for finding in group for host in finding.everywhere])
    head = " ".join(part for part in (first.code, hosts, first.component) if part)
    text = f" {head}: {first.summary}"
    if first.because:
        text += f" (because of {phrases.join_codes(first.because)})"
    page.prose(text, label=first.severity.upper(), kind=first.severity, indent=0)
    for line in phrases.proof_lines(first):
        page.line(f"  {line}")
    label = "repair"
    if first.remedy:
        page.prose(first.remedy, label="repair: ", kind="good")
        label = "command"
    if first.command:
        page.line(f"  {label}: {first.command}")


def _differential(
    page: Page,
    run: Run,
    symptom: Symptom,
    verdicts: Sequence[model_result.Verdict],
    not_judged: Sequence[model_result.NotJudged],
) -> None:
    """Write every possible cause of the symptom with its verdict, present ones first."""
    page.line(f"{symptom.title}: possible causes")
    for verdict, code, detail in phrases.cause_rows(symptom.causes, verdicts, not_judged):
        label = f"{phrases.WORDS.get(verdict, verdict):<14} "
        text = f"{code} {run.titles.get(code, '')}"
        if detail.startswith("("):
            text += f" {detail}"
        elif detail:
            text += f": {detail}"
        page.prose(text, label=label, kind=verdict, hang=17)


def _unknown(
    page: Page, verdicts: Sequence[model_result.Verdict], hosts: Sequence[model_result.HostRow]
) -> None:
    for codes, missing in phrases.unknown_rows(verdicts, hosts):
        page.prose(f"{codes}: missing {missing}", label="UNKNOWN ", kind="unknown", indent=0)


def _not_judged(page: Page, not_judged: Sequence[model_result.NotJudged]) -> None:
    text = phrases.join_not_judged(not_judged)
    if text:
        page.prose(f"not judged: {text}", indent=0)


def _clear(page: Page, verdicts: Sequence[model_result.Verdict]) -> None:
    for verdict, codes in phrases.clear_rows(verdicts):
        page.prose(f"{phrases.WORDS.get(verdict, verdict)}: {codes}", indent=0)


def _silent(page: Page, hosts: Sequence[model_result.HostRow]) -> None:
    """Write the hosts that did not answer, with the error of their connection."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in hosts:
        if row.status == "not_asked":
            groups.setdefault((row.status, ""), []).append(row.host)
        elif row.status != "ok":
            groups.setdefault((row.status, row.reason), []).append(row.host)
    for (status, reason), names in sorted(groups.items()):
        title = phrases.WORDS.get(status, status)
        if status == "unreachable":
            title = "did not answer"
        text = f"{title}: {phrases.join_names(names)}"
        if reason:
            text += f" ({reason})"
        page.prose(text, indent=0)
