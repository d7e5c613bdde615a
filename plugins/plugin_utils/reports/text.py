# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report for a person, in plain text.

Pure: a result and the run's data become a string. Whatever a node said is untrusted, so every line
is escaped as a whole, in one place (page.Page), before any colour is added.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..models import result as model
from . import conclusion as said
from . import phrases as words
from . import scheduler_capture as scheduler
from . import timeline
from .run_info import Run, Symptom, last_line
from .text_page import Page, Paint, plain

WIDTH = 79  # what Ansible prints where it sees no terminal


def render(result: model.Result, run: Run, width: int = WIDTH, paint: Paint = plain) -> str:
    """The whole report, ending with a newline."""
    page = Page(width, paint)
    page.prose(f"kubemend: {words.about(run)}", indent=0)
    page.prose(f"run {run.run_id}, {run.started}, {words.MODES[run.mode]}", indent=0)
    for notice in run.notices:
        page.prose(f"note: {notice}", indent=0)
    keys = words.cluster_keys(result)
    for key in keys:
        _cluster(page, result, run, key)
    page.gap()
    _not_judged(page, [item for item in result.not_judged if item.cluster not in keys])
    if run.pages and result.findings:
        page.line(f"about a code: {run.pages}/<code>.md")
    for one in run.timelines:
        page.gap()
        timeline.render(page, one)
    for one in run.captures:
        page.gap()
        scheduler.render(page, one)
    page.gap()
    compared(page, run)
    page.gap()
    _plan(page, run)
    page.gap()
    concluded = said.conclusion(result, run)
    if concluded:
        page.prose(concluded, indent=0)
    page.line(last_line(result, run))
    return "\n".join(page.lines) + "\n"


def compared(page: Page, run: Run) -> None:
    """What became of the findings of an earlier report."""
    if run.compared is None:
        return
    told = run.compared
    page.prose(f"compared with run {told.run_id}, which ended {told.finished}:", indent=0)
    for name, kind in (
        ("new", "critical"),
        ("worse", "critical"),
        ("gone", "good"),
        ("unchanged", ""),
    ):
        places = [words.place(item) for item in getattr(told, name)]
        if places or name == "new":
            page.prose(
                words.named(places) or "nothing", label=f"{name}: ", kind=kind if places else "good"
            )
    reasons: dict[str, list[str]] = {}
    for item, reason in told.not_judged:
        reasons.setdefault(reason, []).append(words.place(item))
    for reason, places in reasons.items():
        page.prose(f"{words.named(places)} ({reason})", label="not judged now: ", kind="unknown")


def _plan(page: Page, run: Run) -> None:
    """What would be done, in its order, or what became of it; with --diff also how."""
    states = {step["id"]: step for step in run.steps}
    if run.plan:
        page.line("plan:")
    for step in run.plan:
        state, why = words.state_of(step, states.get(step.id), run.mode)
        kind = {"done": "good", "to do": "info", "will be done": "info"}.get(state, "warning")
        risk = f"risk {step.risk}" if step.risk else "manual"
        page.prose(
            f"{step.remedy} {step.target} ({risk}): {state}{'; ' + why if why else ''}",
            label=f"{step.id} ",
            kind=kind,
        )
        if step.note:
            page.prose(f"note: {step.note}", indent=4)
        for line in step.diff.splitlines() if run.diffs else ():
            page.line(f"    {line}")


def _cluster(page: Page, result: model.Result, run: Run, key: str | None) -> None:
    findings = words.in_order(item for item in result.findings if item.cluster == key)
    verdicts = [item for item in result.verdicts if item.cluster == key]
    not_judged = [item for item in result.not_judged if item.cluster == key]
    hosts = [item for item in result.hosts if item.cluster == key]
    page.gap()
    _heading(page, result, hosts, key)
    for one in result.coverage:
        if one.cluster == key and said.covered(one, run):
            page.prose(said.covered(one, run), indent=0)
    for group in words.alike(findings):
        page.gap()
        _finding(page, group)
    page.gap()
    if run.symptom:
        _differential(page, run, run.symptom, verdicts, not_judged)
        page.gap()
    told = run.symptom.causes if run.symptom else ()
    _unknown(page, [item for item in verdicts if item.code not in told], hosts)
    for line in said.reasons(lack for lack in result.lacks if lack.cluster == key):
        page.prose(line, label="  why: ", indent=4)
    _not_judged(page, [item for item in not_judged if item.code not in told])
    _clear(page, [item for item in verdicts if item.code not in told])
    for text, names in said.about_hosts(hosts, findings, result, run).items():
        page.prose(f"{text}: {words.named(names)}", indent=0)
    _silent(page, hosts)
    for note in dict.fromkeys(item.note for item in verdicts if item.note):
        codes = words.coded(item.code for item in verdicts if item.note == note)
        page.prose(f"note: {note} ({codes})", indent=0)


def _heading(
    page: Page, result: model.Result, hosts: Sequence[model.HostRow], key: str | None
) -> None:
    if key is None or key == words.UNPROVEN:
        text = "Hosts of no proven cluster"
    else:
        version = next(
            (item.kubernetes_version for item in result.clusters if item.key == key), None
        )
        text = f"Cluster {key}, Kubernetes {version or 'version unknown'}"
    parts = []
    for role, title in (
        ("control_plane", "control plane"),
        ("worker", "workers"),
        ("unknown", "role unknown"),
    ):
        names = [item.host for item in hosts if item.role == role]
        if names:
            parts.append(f"{title}: {words.named(names)}")
    page.prose(text + (": " + "; ".join(parts) if parts else ""), indent=0)


def _finding(page: Page, group: Sequence[model.Finding]) -> None:
    item = group[0]
    hosts = words.named([host for one in group for host in one.everywhere])
    place = " ".join(part for part in (hosts, item.component) if part)
    because = f" (because of {words.coded(item.because)})" if item.because else ""
    head = f" {item.code}{' ' + place if place else ''}: {item.summary}{because}"
    page.prose(head, label=item.severity.upper(), kind=item.severity, indent=0)
    for line in words.proof_lines(item):
        page.line(f"  {line}")
    if item.remedy:
        page.prose(item.remedy, label="repair: ", kind="good")
    if item.command:
        page.line(f"  {'command' if item.remedy else 'repair'}: {item.command}")


def _differential(
    page: Page,
    run: Run,
    symptom: Symptom,
    verdicts: Sequence[model.Verdict],
    not_judged: Sequence[model.NotJudged],
) -> None:
    """Every possible cause of the symptom with its verdict, present ones first."""
    page.line(f"{symptom.title}: possible causes")
    for verdict, code, detail in words.differential(symptom.causes, verdicts, not_judged):
        word = f"{words.WORDS.get(verdict, verdict):<14} "
        title = run.titles.get(code, "")
        sep = "" if not detail else " " if detail.startswith("(") else ": "
        page.prose(f"{code} {title}{sep}{detail}", label=word, kind=verdict, hang=17)


def _unknown(page: Page, verdicts: Sequence[model.Verdict], hosts: Sequence[model.HostRow]) -> None:
    for codes, missing in words.unknowns(verdicts, hosts):
        page.prose(f"{codes}: missing {missing}", label="UNKNOWN ", kind="unknown", indent=0)


def _not_judged(page: Page, not_judged: Sequence[model.NotJudged]) -> None:
    text = words.left_out(not_judged)
    if text:
        page.prose(f"not judged: {text}", indent=0)


def _clear(page: Page, verdicts: Sequence[model.Verdict]) -> None:
    for verdict, codes in words.fine(verdicts):
        page.prose(f"{words.WORDS.get(verdict, verdict)}: {codes}", indent=0)


def _silent(page: Page, hosts: Sequence[model.HostRow]) -> None:
    """Hosts that did not answer, with what their connection said."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in hosts:
        if row.status != "ok":
            reason = "" if row.status == "not_asked" else row.reason
            groups.setdefault((row.status, reason), []).append(row.host)
    for (status, reason), names in sorted(groups.items()):
        title = "did not answer" if status == "unreachable" else words.WORDS.get(status, status)
        page.prose(
            f"{title}: {words.named(names)}{' (' + reason + ')' if reason else ''}", indent=0
        )
