# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report.html, the report for a browser: one file that requests nothing from any server.

Pure: a result and the run's data become a string. Text from nodes is untrusted: every expression of
the template goes through escape (what could hide or reorder text is spelled out) and then through
Jinja's autoescaping, neither of which a template can forget. The policy of the page allows its one
script and its one style by their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ...module_utils.shared.text import counted
from ..faults import symptoms
from ..models import result as model_result
from ..models.natural_order import natural
from ..models.timeline import Timeline
from ..planning.plan import Step
from . import (
    cause_graph,
    conclusion,
    groups,
    headline,
    host_names,
    markdown,
    matrix,
    phrases,
    scheduler_capture,
    text,
    text_gaps,
    timeline,
    times,
)
from .run_info import Run, exit_of, last_line
from .text_page import Page, cut, escape, plain

TEMPLATES = Path(__file__).with_name("templates")
NAMES_SHOWN = 500  # ranges, or names that are none
SLUG_LENGTH = 120
_NO_SLUG = re.compile(r"[^A-Za-z0-9./-]+")
TITLED = 4  # columns of the matrix, and faults of a host, whose titles have room
FEW_STEPS = 20  # a plan with more has its diffs closed
CHUNK = 40  # entries that the browser lays out together, and not before they come into view
MODES = {**phrases.MODES, "capture": "judges nothing", "revert": "judges nothing"}
WORDS = {
    **phrases.WORDS,
    "unreachable": "did not answer",
    "error": "could not be judged",
    "control_plane": "control plane",
    "": "",
}
SYMBOLS = {
    "critical": "✖",
    "warning": "▲",
    "info": "●",
    "waived": "○",
    "present": "✖",
    "unknown": "?",
    "clear": "✓",
    "not_applicable": "–",  # noqa: RUF001 - an en dash is meant
    "": "",
}


DIFF_KINDS = {"+": "add", "-": "del", "@": "at"}


@dataclass(frozen=True)
class FindingEntry:
    """Findings that differ only in their host, as one entry.

    Attributes:
        id: the target of links to it.
        fix: whether kubemend can do the remedy, and at which risk.
        place: its hosts as ranges; names has all of them.
        differing: which texts of its other findings differ: texts, fixes or both; else empty.
        other_evidence: whether the evidence of its other hosts differs.
        waived: until when, by whom and why it is accepted; else empty.
        since: since when earlier runs found it; else empty.
        remedy: what fixes all of them.
        others: causes besides the entry above it.
        leads_to: what it causes: the target, code and title of each entry below it.
        page: the page of its fault, in the first entry of the fault.
        about: the entry with that page.
    """

    item: model_result.Finding
    id: str
    depth: int
    fix: str
    summary: str
    place: str
    names: tuple[str, ...]
    differing: str
    other_evidence: bool
    waived: str
    since: str
    remedy: str
    others: str
    leads_to: tuple[tuple[str, str], ...]
    evidence: tuple[str, ...]
    page: Markup | None
    about: str


@dataclass(frozen=True)
class Place:
    """One host with the states of its faults, worst first.

    Attributes:
        clean: whether nothing is present or unknown.
        claim: the sentence of the report about a host without a finding.
    """

    row: model_result.HostRow
    faults: tuple[tuple[str, str], ...]
    unknown: int
    clean: bool
    claim: str


@dataclass(frozen=True)
class Table:
    """Possible causes of a symptom.

    Attributes:
        asked: whether the run asked for this symptom; its table is open.
        rows: (verdict, code, places or missing evidence).
    """

    title: str
    asked: bool
    rows: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class View:
    """One cluster as the template shows it.

    Attributes:
        covered: the audited Nodes.
        judged: the claims about hosts without a finding.
        missing_reasons: the reasons of missing answers.
    """

    number: int
    title: str
    version: str
    hosts: tuple[Place, ...]
    matrix: matrix.Matrix
    findings: tuple[FindingEntry, ...]
    tables: tuple[Table, ...]
    unknown: tuple[tuple[str, str], ...]
    drawing: cause_graph.Drawing | None
    targets: Mapping[str, str]
    chains: str
    covered: str
    judged: tuple[str, ...]
    missing_reasons: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    fine: tuple[tuple[str, tuple[str, ...]], ...]
    notes: tuple[str, ...]
    folded_notes: tuple[str, ...]


@dataclass(frozen=True)
class _ClusterRows:
    """The rows of a result that belong to one cluster."""

    key: str | None
    version: str | None
    hosts: Sequence[model_result.HostRow]
    verdicts: Sequence[model_result.Verdict]
    findings: Sequence[model_result.Finding]
    not_judged: Sequence[model_result.NotJudged]


def render(result: model_result.Result, run: Run, report: str = "") -> str:
    """Return the whole page.

    The report is the text of a run that evaluates nothing, in place of counts and clusters.
    """
    style, script = (
        Markup((TEMPLATES / name).read_text(encoding="utf-8"))
        for name in ("report.css", "report.js")
    )
    code, reason = exit_of(result, run)
    sentence = ""
    if run.outcome:
        sentence = run.outcome[2]
    views = _views(result, run)
    keys = phrases.cluster_keys(result)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            run=run,
            about=phrases.about(run),
            mode=MODES.get(run.mode, run.mode),
            counts=headline.counts(result),
            identity=headline.identity(result, run),
            checked=headline.checked(result),
            started=times.readable(run.started, None),
            exit_code=code,
            exit_reason=reason,
            sentence=sentence,
            conclusion=conclusion.conclusion(result, run),
            last_line=last_line(result, run),
            views=views,
            hosts=sum(len(view.hosts) for view in views),
            findings=sum(len(view.findings) for view in views),
            clean=sum(bool(place.claim) for view in views for place in view.hosts),
            left_out=_left_out(_skipped_nowhere(result, keys)),
            box=(cause_graph.BOX_WIDTH, cause_graph.BOX_HEIGHT),
            steps=_steps(run),
            commands=tuple(phrases.commands(result, run)),
            timelines=[_timeline(pod_timeline) for pod_timeline in run.timelines],
            texts=_texts(run),
            report=report.rstrip("\n"),
            titles=run.titles,
            style=style,
            script=script,
            policy=_policy(style, script),
        )
    )


def _texts(run: Run) -> list[str]:
    """Return what is prose in the console too: the comparison, captures of schedulers."""
    pages = [Page(text.WIDTH, plain)]
    text.compared(pages[0], run)
    for capture in run.captures:
        pages.append(Page(text.WIDTH, plain))
        scheduler_capture.render(pages[-1], capture)
    return ["\n".join(page.lines) for page in pages if page.lines]


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_spelled,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        WORDS=WORDS,
        SYMBOLS=SYMBOLS,
        CHUNK=CHUNK,
        TITLED=TITLED,
        FEW_STEPS=FEW_STEPS,
        counted=counted,
    )
    return environment


def _spelled(value: Any) -> Any:
    """Return what an expression of the template shows; Markup is the template's own."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        return cut(escape(value))
    if value is None:
        return ""
    return value


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_allowed(style)}; script-src {_allowed(script)}; base-uri"
        " 'none'; form-action 'none'"
    )


def _allowed(source: str) -> str:
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _views(result: model_result.Result, run: Run) -> list[View]:
    """Return known clusters first, as in the text."""
    in_order = sorted(result.hosts, key=lambda row: natural(row.host))
    hosts, verdicts, findings, not_judged = (
        _by_cluster(rows)
        for rows in (in_order, result.verdicts, result.findings, result.not_judged)
    )
    versions = {item.key: item.kubernetes_version for item in result.clusters}
    views = []
    for number, key in enumerate(phrases.cluster_keys(result)):
        rows = _ClusterRows(
            key,
            versions.get(key or ""),
            hosts.get(key, []),
            verdicts.get(key, []),
            findings.get(key, []),
            not_judged.get(key, []),
        )
        views.append(_view(number, rows, result, run))
    return views


def _by_cluster(rows: Iterable[Any]) -> dict[str | None, list[Any]]:
    rows_by_cluster: dict[str | None, list[Any]] = {}
    for row in rows:
        rows_by_cluster.setdefault(row.cluster, []).append(row)
    return rows_by_cluster


def _view(number: int, rows: _ClusterRows, result: model_result.Result, run: Run) -> View:
    states = matrix.states(rows.verdicts, rows.findings)
    about = conclusion.about_hosts(rows.hosts, rows.findings, result, run)
    entries = groups.chain(groups.group(rows.findings, conclusion.fix_labels(run.plan)))
    anchors = _anchors(entries)
    targets = _targets(entries, anchors)
    covered = (
        conclusion.covered(item, run) for item in result.coverage if item.cluster == rows.key
    )
    return View(
        number,
        headline.cluster_name(rows.key, run),
        headline.version(rows.key, result),
        _places(rows.hosts, states, about),
        matrix.make(rows.hosts, states),
        tuple(_finding_entries(entries, anchors, targets, run)),
        _tables(run, rows),
        tuple(phrases.unknown_rows(_without_causes(rows.verdicts, run), rows.hosts)),
        cause_graph.draw(entries, run.titles, targets),
        targets,
        headline.chains(entries),
        " ".join(covered).strip(),
        tuple(_claims(about)),
        tuple(conclusion.reasons(lack for lack in result.lacks if lack.cluster == rows.key)),
        _left_out(_skipped(rows, result)),
        tuple(
            (verdict, tuple(codes.split())) for verdict, codes in phrases.clear_rows(rows.verdicts)
        ),
        *(
            _notes([item for item in rows.verdicts if (item.verdict == "clear") is folded], run)
            for folded in (False, True)
        ),
    )


def _claims(about: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield what is claimed of hosts without a finding, with their names where claims differ."""
    for claim, names in about.items():
        yield claim if len(about) == 1 else f"{claim} on {host_names.join(names)}"


def _notes(verdicts: Iterable[model_result.Verdict], run: Run) -> tuple[str, ...]:
    """Return each note once, with the faults that it is about and with readable times."""
    now = headline.now(run)
    return tuple(times.readable(note, now) for note in text_gaps.note_texts(verdicts, run))


def _skipped(rows: _ClusterRows, result: model_result.Result) -> Sequence[model_result.NotJudged]:
    """Return what was not judged of a cluster; of the only one also what belongs to none."""
    if len(phrases.cluster_keys(result)) == 1:
        return result.not_judged
    return rows.not_judged


def _skipped_nowhere(
    result: model_result.Result, keys: Collection[str | None]
) -> list[model_result.NotJudged]:
    """Return what was not judged and belongs to no cluster, where no cluster shows it."""
    if len(keys) == 1:
        return []
    return [item for item in result.not_judged if item.cluster not in keys]


def _left_out(items: Iterable[model_result.NotJudged]) -> tuple[tuple[str, str], ...]:
    """Return (code, why it was not judged)."""
    rows = {item.code: phrases.unjudged(item) for item in items}
    return tuple(sorted(rows.items()))


def _without_causes(
    verdicts: Iterable[model_result.Verdict], run: Run
) -> list[model_result.Verdict]:
    """Return the verdicts that the table of the run's symptom does not show."""
    causes: Collection[str] = ()
    if run.symptom:
        causes = run.symptom.causes
    return [item for item in verdicts if item.code not in causes]


def _tables(run: Run, cluster: _ClusterRows) -> tuple[Table, ...]:
    """Return the requested symptom with every cause, else the symptoms with a present cause."""
    verdicts, waived = cluster.verdicts, phrases.waived_codes(cluster.findings)
    if run.symptom:
        causes = phrases.cause_rows(run.symptom.causes, verdicts, cluster.not_judged, waived)
        return (Table(run.symptom.title, True, tuple(causes)),)
    present = {item.code for item in verdicts if item.verdict == "present"}
    shown = [
        symptom for symptom in symptoms.SYMPTOMS.values() if not present.isdisjoint(symptom.causes)
    ]
    codes = {code for symptom in shown for code in symptom.causes}
    relevant = [item for item in verdicts if item.code in codes]
    rows = phrases.cause_rows(codes, relevant, cluster.not_judged, waived)
    return tuple(
        Table(symptom.title, False, tuple(row for row in rows if row[1] in symptom.causes))
        for symptom in shown
    )


def _places(
    hosts: Sequence[model_result.HostRow], states: matrix.States, about: Mapping[str, Sequence[str]]
) -> tuple[Place, ...]:
    """Return every host, those in trouble first, else in the order that they have."""
    texts = {host: text for text, names in about.items() for host in names}
    ordered = []
    for row in hosts:
        troubles = sorted(_troubles(states.get(row.host, matrix.NO_STATES)))
        place = Place(
            row,
            tuple((code, state) for _order, code, state in troubles if state != "unknown"),
            sum(state == "unknown" for _order, _code, state in troubles),
            not troubles and row.status == "ok",
            texts.get(row.host, ""),
        )
        worst = min((order for order, _code, _state in troubles), default=len(matrix.STATES))
        ordered.append((place.clean, worst, place))
    ordered.sort(key=lambda item: item[:2])
    return tuple(place for _clean, _worst, place in ordered)


def _troubles(states: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    for code, state in states.items():
        if state in matrix.TROUBLE:
            yield matrix.STATES.index(state), code, state


def _anchors(entries: Iterable[groups.Entry]) -> dict[groups.Group, str]:
    """Return the id of each entry: that of its first finding, the same in the next report.

    Findings of one place are numbered. No two places of a page have the same id: those with
    characters that a link cannot have, or too long, get a digest.
    """
    anchors: dict[groups.Group, str] = {}
    counts: dict[str, int] = {}
    for entry in entries:
        name = entry.group.first.id
        counts[name] = counts.get(name, 0) + 1
        anchor = f"finding-{_slug(name)}"
        if counts[name] > 1:
            anchor += f"_{counts[name]}"
        anchors[entry.group] = anchor
    return anchors


def _slug(name: str) -> str:
    slug = _NO_SLUG.sub("-", name)
    is_whole = slug == name and name.count("/") == 3 and len(name) <= SLUG_LENGTH
    slug = slug.replace("/", "_")
    if is_whole:
        return slug
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{slug[:SLUG_LENGTH]}_{digest[:8]}"


def _targets(
    entries: Iterable[groups.Entry], anchors: Mapping[groups.Group, str]
) -> dict[str, str]:
    """Return the first entry of each fault: where links to it lead."""
    targets: dict[str, str] = {}
    for entry in entries:
        targets.setdefault(entry.group.first.code, anchors[entry.group])
    return targets


def _finding_entries(
    entries: Sequence[groups.Entry],
    ids: Mapping[groups.Group, str],
    targets: Mapping[str, str],
    run: Run,
) -> Iterator[FindingEntry]:
    now = headline.now(run)
    for entry in entries:
        group = entry.group
        first, anchor = group.first, ids[group]
        page = None
        if targets[first.code] == anchor and first.code in run.explanations:
            page = markdown.render(run.explanations[first.code])
        below = [(ids[item], _code_and_title(item.first.code, run)) for item in entry.leads_to]
        yield FindingEntry(
            first,
            anchor,
            entry.depth,
            conclusion.fix_label(first, run.plan),
            times.readable(groups.summary_of(group), now),
            host_names.counted(group.hosts),
            _names(group.hosts),
            groups.differences(group),
            group.other_evidence,
            phrases.waiver(first.waived) if first.waived is not None else "",
            times.readable(groups.since_of(group, run.started), now),
            groups.remedy_of(group),
            headline.causes(entry.others, run),
            tuple(below),
            tuple(phrases.proof_lines(first, named=len(group.hosts) > 1)),
            page,
            targets[first.code],
        )


def _code_and_title(code: str, run: Run) -> str:
    return headline.titled([code], run)


def _names(hosts: Sequence[str]) -> tuple[str, ...]:
    """Return every host of an entry, where its heading does not name all of them."""
    if len(hosts) < host_names.RUN:
        return ()
    parts, hidden = host_names.listed(hosts, NAMES_SHOWN)
    if hidden:
        parts.append(f"{hidden} more")
    return tuple(parts)


def _steps(run: Run) -> list[dict[str, Any]]:
    """Return the plan, each step with its state and its diff, then steps outside of the plan."""
    done = {step["id"]: step for step in run.steps}
    planned = {step.id for step in run.plan}
    return [
        _planned_step(step, done.get(step.id), run.mode, phrases.checks([step], run))
        for step in run.plan
    ] + [_unplanned_step(step) for step in run.steps if step["id"] not in planned]


def _planned_step(
    step: Step, done: Mapping[str, str] | None, mode: str, checks: list[str]
) -> dict[str, Any]:
    state, reason = phrases.state_of(step, done, mode)
    return {
        "id": step.id,
        "host": step.host,
        "code": step.code,
        "remedy": step.remedy,
        "target": step.target,
        "risk": step.risk,
        "state": state,
        "why": reason,
        "note": step.note,
        "checks": checks,
        "diff": _diff(step.diff),
    }


def _unplanned_step(done: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": done["id"],
        "host": "",
        "code": "",
        "remedy": "",
        "target": "",
        "risk": None,
        "state": done["state"],
        "why": done.get("reason") or "",
        "note": "",
        "checks": [],
        "diff": [],
    }


def _diff(diff: str) -> list[tuple[str, str]]:
    if not diff:
        return []
    lines = diff.rstrip("\n").split("\n")
    return [(DIFF_KINDS.get(line[:1], ""), line) for line in lines]


def _timeline(pod_timeline: Timeline) -> dict[str, Any]:
    entries = []
    for entry in pod_timeline.entries:
        sibling = ""
        if entry.pod != pod_timeline.name:
            sibling = entry.pod
        entries.append(
            {
                "time": timeline.stamp(entry),
                "where": entry.where,
                "pod": sibling,
                "what": entry.what,
                "detail": entry.detail,
                "known": entry.known,
            }
        )
    return {
        "pod": pod_timeline.pod,
        "uid": pod_timeline.uid,
        "about": pod_timeline.about,
        "entries": entries,
    }
