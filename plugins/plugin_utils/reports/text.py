# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in plain text.

Pure: a result and the run's data become a string. Text from nodes is untrusted, so every line is
escaped as a whole, in one place (text_page.Page), before any colour is added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

from ...module_utils.shared.text import counted
from ..models import result as model_result
from ..planning.plan import Step
from . import (
    conclusion,
    groups,
    headline,
    host_names,
    phrases,
    scheduler_capture,
    text_causes,
    text_findings,
    text_gaps,
    timeline,
    times,
)
from .run_info import Run, last_line
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
NO_ANSWER = "KM901"
ASKS_ABOUT_CAUSES = ("observe", "plan")
NO_CAUSE = "none of them is proven; the playbook audit checks all faults"
STEPS_SHOWN = 60  # entries of the plan
WIDTH = 79  # what Ansible prints where it sees no terminal
CHANGES = {"new": "critical", "worse": "critical", "gone": "good", "unchanged": ""}
STATE_KINDS = {"done": "good", "to do": "info", "will be done": "info"}


def render(result: model_result.Result, run: Run, width: int = WIDTH, paint: Paint = plain) -> str:
    """Return the whole report, ending with a newline."""
    page = Page(width, paint)
    keys = phrases.cluster_keys(result)
    findings, labels = _by_cluster(result.findings), conclusion.fix_labels(run.plan)
    chains = {key: groups.chain(groups.group(findings.get(key, ()), labels)) for key in keys}
    _summary(page, result, run, [entry for key in keys for entry in chains[key]])
    for key in keys:
        if len(keys) > 1:
            page.gap()
            page.prose(headline.SEPARATOR.join(headline.of_cluster(key, result, run)), indent=0)
        _cluster(page, result, run, key, chains[key])
    if run.verbose:
        page.gap()
        text_gaps.not_judged(
            page, [item for item in result.not_judged if item.cluster not in keys], run
        )
    _appendices(page, run)
    page.gap()
    compared(page, run)
    page.gap()
    _plan(page, run, result)
    _end(page, result, run, [entry for key in keys for entry in chains[key]])
    return page.text()


def _appendices(page: Page, run: Run) -> None:
    """Write the timelines and captures that the operator asked for."""
    for pod_timeline in run.timelines:
        page.gap()
        timeline.render(page, pod_timeline)
    for capture in run.captures:
        page.gap()
        scheduler_capture.render(page, capture)


def _by_cluster(
    findings: Iterable[model_result.Finding],
) -> dict[str | None, list[model_result.Finding]]:
    by_cluster: dict[str | None, list[model_result.Finding]] = {}
    for finding in findings:
        by_cluster.setdefault(finding.cluster, []).append(finding)
    return by_cluster


def _summary(
    page: Page, result: model_result.Result, run: Run, entries: Sequence[groups.Entry]
) -> None:
    """Write which run this is, its counts, and notes about it."""
    page.prose(headline.identity(result, run), indent=0)
    page.prose(f"run {run.run_id}, {times.readable(run.started, None)}", indent=0)
    page.gap()
    counts = headline.counts(result)
    page.spans((f"{count} {name}", name if count else "") for name, count in counts.items())
    facts = (headline.chains(entries), headline.checked(result))
    page.prose("; ".join(filter(None, facts)))
    for notice in run.sentences:
        page.prose(f"note: {times.readable(notice, headline.now(run))}", indent=0)


def _end(
    page: Page, result: model_result.Result, run: Run, entries: Sequence[groups.Entry]
) -> None:
    """Write each group in one line, the conclusion and the last line."""
    page.gap()
    text_findings.write_list(page, entries, run)
    if run.explain and entries:
        code = entries[0].group.first.code
        page.line(f"explained by {run.explain} {code} (or another code), and in report.html")
    elif run.pages and entries:
        page.line(f"explained in {run.pages}/<code>.md, and in report.html")
    sentence = conclusion.conclusion(result, run)
    if sentence:
        page.prose(sentence, indent=0)
    page.line(last_line(result, run))


def compared(page: Page, run: Run) -> None:
    """Write the difference to an earlier report, if there is one."""
    if run.compared is None:
        return
    comparison = run.compared
    page.prose(
        f"compared with run {comparison.run_id}, which ended {comparison.finished}:", indent=0
    )
    for change in CHANGES:
        _changes(page, run, getattr(comparison, change), change)
    findings_by_reason: dict[str, list[model_result.Finding]] = {}
    for item, reason in comparison.not_judged:
        findings_by_reason.setdefault(reason, []).append(item)
    for reason, findings in findings_by_reason.items():
        for line in phrases.places(findings, run):
            page.prose(f"{line} ({reason})", label="not judged now: ", kind="unknown")


def _changes(page: Page, run: Run, findings: Sequence[model_result.Finding], change: str) -> None:
    """Write findings with the same change, a line for each fault and component."""
    for line in phrases.places(findings, run):
        page.prose(line, label=f"{change}: ", kind=CHANGES[change])
    if not findings and change == "new":
        page.prose("nothing", label=f"{change}: ", kind="good")


def _plan(page: Page, run: Run, result: model_result.Result) -> None:
    """Write the steps in their order with their states; with --diff also the changes.

    Steps that differ only in their host are one entry, without --diff: those that follow each
    other, or where none is done, all of them.
    """
    done = {step["id"]: step for step in run.steps}
    if run.plan:
        page.line("plan:")
    entries = list(_alike_steps(run, done))
    for (text, kind, note), steps in entries[:STEPS_SHOWN]:
        step_text = conclusion.without_reasons(text, result.lacks), kind, note
        _steps(page, step_text, steps, run)
    hidden = sum(len(steps) for _text, steps in entries[STEPS_SHOWN:])
    if hidden:
        page.prose(f"and {counted(hidden, 'step')} more, all in report.json")
    for label, command in phrases.commands(result, run):
        page.line(f"{label}: {command}")


def _steps(page: Page, step_text: tuple[str, str, str], steps: Sequence[Step], run: Run) -> None:
    """Write steps that differ only in their host."""
    text, kind, note = step_text
    label, hosts = f"{steps[0].id} ", ""
    if len(steps) > 1:
        label = f"{steps[0].id} and {len(steps) - 1} more "
        hosts = host_names.counted(step.host or "" for step in steps) + ": "
    page.prose(hosts + text, label=label, kind=kind)
    if note:
        page.prose(f"note: {note}", indent=4)
    for line in phrases.checks(steps, run):
        page.prose(f"verified: {line}", indent=4)
    if run.diffs:
        for line in steps[0].diff.splitlines():
            page.line(f"    {line}")


def _alike_steps(
    run: Run, done: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[tuple[str, str, str], list[Step]]]:
    def text(step: Step) -> tuple[str, str, str]:
        return _step_text(step, run, done)

    if run.diffs:
        yield from ((text(step), [step]) for step in run.plan)
    elif run.mode in phrases.OBSERVES:
        alike: dict[tuple[str, str, str], list[Step]] = {}
        for step in run.plan:
            alike.setdefault(_without_host(step, text(step)), []).append(step)
        for key, steps in alike.items():
            yield (key if len(steps) > 1 else text(steps[0])), steps
    else:
        yield from ((key, list(steps)) for key, steps in groupby(run.plan, key=text))


def _without_host(step: Step, step_text: tuple[str, str, str]) -> tuple[str, str, str]:
    """Return the text of a step as it reads for each of several hosts."""
    text, kind, note = step_text
    names = {step.host, step.node or ""}
    return groups.without(names, text), kind, groups.without(names, note)


def _step_text(step: Step, run: Run, done: Mapping[str, Mapping[str, Any]]) -> tuple[str, str, str]:
    state, reason = phrases.state_of(step, done.get(step.id), run.mode)
    risk = "manual"
    if step.risk:
        risk = f"risk {step.risk}"
    text = f"{step.remedy} {step.target} ({risk}): {state}"
    if reason:
        text += f"; {reason}"
    return text, STATE_KINDS.get(state, "warning"), step.note or ""


def _no_cause(page: Page, run: Run, rows: Iterable[tuple[str, str, str]]) -> None:
    """Write where to go on if a run that only looks proved no cause of its symptom."""
    if run.mode in ASKS_ABOUT_CAUSES and all(verdict != "present" for verdict, *_rest in rows):
        page.prose(NO_CAUSE, indent=2)


def _cluster(
    page: Page,
    result: model_result.Result,
    run: Run,
    key: str | None,
    entries: Sequence[groups.Entry],
) -> None:
    findings = [finding for finding in result.findings if finding.cluster == key]
    verdicts, not_judged = _at(key, result.verdicts), _at(key, result.not_judged)
    hosts = _at(key, result.hosts)
    text_findings.write(page, entries, run)
    page.gap()
    causes: Collection[str] = ()
    if run.symptom:
        causes = run.symptom.causes
        waived = phrases.waived_codes(findings)
        rows = list(phrases.cause_rows(causes, verdicts, not_judged, waived))
        text_causes.write(page, run, run.symptom, rows)
        _no_cause(page, run, rows)
        page.gap()
    other_verdicts = [item for item in verdicts if item.code not in causes]
    text_gaps.unknown(page, other_verdicts, hosts, run)
    for line in conclusion.reasons(_at(key, result.lacks)):
        page.prose(line, label="why: ", indent=2)
    if run.verbose:
        text_gaps.not_judged(page, [item for item in not_judged if item.code not in causes], run)
        text_gaps.clear(page, other_verdicts, run)
    _coverage(page, result, run, key)
    for text, names in conclusion.about_hosts(hosts, findings, result, run).items():
        page.prose(f"{text}: {host_names.join(names)}", indent=0)
    _silent(page, hosts, entries)
    text_gaps.notes(page, verdicts, run, _at(key, result.lacks))


def _at(key: str | None, rows: Iterable[Row]) -> list[Row]:
    """Return the rows of a cluster."""
    return [row for row in rows if row.cluster == key]


def _coverage(page: Page, result: model_result.Result, run: Run, key: str | None) -> None:
    """Write which Nodes were not audited; the first line says it where all were."""
    for coverage in _at(key, result.coverage):
        sentence = conclusion.covered(coverage, run)
        if sentence and coverage.left:
            page.prose(sentence, indent=0)


def _silent(
    page: Page, hosts: Sequence[model_result.HostRow], entries: Sequence[groups.Entry]
) -> None:
    """Write the hosts that did not answer, with the error of their connection.

    A finding about a host has its error already.
    """
    errors = _connection_errors(hosts, entries)
    for (status, reason), names in errors[: text_gaps.ERRORS_SHOWN]:
        title = conclusion.NOT_AUDITED.get(status) or phrases.WORDS.get(status, status)
        text = f"{title}: {host_names.join(names)}"
        if reason:
            text += f" ({reason})"
        page.prose(text, indent=0)
    rest = [name for _error, names in errors[text_gaps.ERRORS_SHOWN :] for name in names]
    if rest:
        page.prose(f"other errors, all in report.json: {host_names.join(rest)}", indent=0)


def _connection_errors(
    hosts: Sequence[model_result.HostRow], entries: Sequence[groups.Entry]
) -> list[tuple[tuple[str, str], list[str]]]:
    """Return (status, error) of hosts that did not answer with their names, most hosts first."""
    silences = [entry.group for entry in entries if entry.group.first.code == NO_ANSWER]
    reported = {host for group in silences for host in group.hosts}
    names_by_error: dict[tuple[str, str], list[str]] = {}
    for row in hosts:
        reason = groups.without_addresses(row.reason)
        if row.status == "not_asked" or row.host in reported:
            reason = ""
        if row.status != "ok":
            names_by_error.setdefault((row.status, reason), []).append(row.host)
    return sorted(names_by_error.items(), key=lambda item: (-len(item[1]), item[0]))
