# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report.html, the report for a browser: one file that asks nobody for anything.

Pure: a result and the run's data become a string. Whatever a node said is untrusted: every
expression of the template goes through page.escape (what could hide or reorder text is spelled out)
and then through Jinja's autoescaping, neither of which a template can forget. The page's own policy
allows its one script and its one style by their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..faults import symptoms
from ..models import result as model
from . import (
    conclusion as said,
)
from . import (
    matrix,
    text,
    timeline,
)
from . import (
    phrases as words,
)
from . import (
    scheduler_capture as scheduler,
)
from .run_info import Run, exit_of, last_line, summary
from .text_page import LINE_LIMIT, Page, escape, plain

TEMPLATES = Path(__file__).with_name("templates")
CHUNK = 40  # entries that the browser lays out together, and not before they come into view
MODES = {**words.MODES, "capture": "judges nothing", "revert": "judges nothing"}
WORDS = {
    **words.WORDS,
    "unreachable": "did not answer",
    "error": "could not be judged",
    "control_plane": "control plane",
    "": "",
}
SYMBOLS = {
    "critical": "✖",
    "warning": "▲",
    "info": "●",
    "present": "✖",
    "unknown": "?",
    "clear": "✓",
    "not_applicable": "–",
    "": "",
}


@dataclass(frozen=True)
class Found:
    """Findings that say the same, as one entry. done.

    By which risk of a step its remedy is done, or manual.
    """

    item: model.Finding
    done: str
    hosts: tuple[str, ...]
    because: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """One host with the states of its faults, worst first; clean: nothing is present or unknown.

    Said: what may be said of it then.
    """

    row: model.HostRow
    faults: tuple[tuple[str, str], ...]
    unknown: int
    clean: bool
    said: str


@dataclass(frozen=True)
class Table:
    """Possible causes of a symptom. open: whether the run asked for it; rows.

    (verdict, code, where or what is missing).
    """

    title: str
    asked: bool
    rows: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class View:
    """One cluster as the template shows it. covered: which Nodes were audited; judged.

    What may be said of its hosts; why: of missing answers.
    """

    number: int
    title: str
    version: str
    hosts: tuple[Place, ...]
    matrix: matrix.Matrix
    findings: tuple[Found, ...]
    tables: tuple[Table, ...]
    unknown: tuple[tuple[str, str], ...]
    covered: str
    judged: tuple[str, ...]
    why: tuple[str, ...]
    left_out: str
    fine: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def render(result: model.Result, run: Run, told: str = "") -> str:
    """The whole page. told: the report in words of a run that judges nothing, instead of counts
    and clusters.
    """
    style, script = (
        Markup((TEMPLATES / name).read_text(encoding="utf-8"))
        for name in ("report.css", "report.js")
    )
    code, reason = exit_of(result, run)
    views = _views(result, run)
    keys = words.cluster_keys(result)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            run=run,
            about=words.about(run),
            mode=MODES.get(run.mode, run.mode),
            counts=summary(result),
            exit_code=code,
            exit_reason=reason,
            sentence=run.outcome[2] if run.outcome else "",
            conclusion=said.conclusion(result, run),
            last_line=last_line(result, run),
            views=views,
            hosts=sum(len(view.hosts) for view in views),
            findings=sum(len(view.findings) for view in views),
            clean=sum(place.clean for view in views for place in view.hosts),
            left_out=words.left_out(item for item in result.not_judged if item.cluster not in keys),
            steps=_steps(run),
            timelines=[_timeline(one) for one in run.timelines],
            told=_told(run),
            said=told.rstrip("\n"),
            titles=run.titles,
            style=style,
            script=script,
            policy=_policy(style, script),
        )
    )


def _told(run: Run) -> list[str]:
    """What is prose in the terminal too, in its own words.

    An earlier report beside this one, captures of schedulers.
    """
    found = []
    for tell in (
        lambda page: text.compared(page, run),
        *(lambda page, one=one: scheduler.render(page, one) for one in run.captures),
    ):
        page = Page(text.WIDTH, plain)
        tell(page)
        if page.lines:
            found.append("\n".join(page.lines))
    return found


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_spelled,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(WORDS=WORDS, SYMBOLS=SYMBOLS, CHUNK=CHUNK)
    return environment


def _spelled(value: Any) -> Any:
    """What an expression of the template shows. Markup is the template's own.

    A missing value is nothing.
    """
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        clean = escape(value)
        return (
            clean
            if len(clean) <= LINE_LIMIT
            else clean[:LINE_LIMIT]
            + f"… ({len(clean) - LINE_LIMIT} more characters in report.json)"
        )
    return "" if value is None else value


def _policy(style: str, script: str) -> str:
    def allowed(source: str) -> str:
        return (
            "'sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() + "'"
        )

    return (
        f"default-src 'none'; style-src {allowed(style)}; script-src {allowed(script)}; base-uri"
        " 'none'; form-action 'none'"
    )


def _views(result: model.Result, run: Run) -> list[View]:
    """Known clusters first, as in the text."""
    keys = words.cluster_keys(result)
    hosts, verdicts, findings, not_judged = (
        _by_cluster(rows)
        for rows in (result.hosts, result.verdicts, result.findings, result.not_judged)
    )
    versions = {item.key: item.kubernetes_version for item in result.clusters}
    return [
        _view(
            number,
            key,
            versions.get(key or ""),
            result,
            run,
            hosts.get(key, []),
            verdicts.get(key, []),
            findings.get(key, []),
            not_judged.get(key, []),
        )
        for number, key in enumerate(keys)
    ]


def _by_cluster(rows: Iterable[Any]) -> dict[str | None, list[Any]]:
    found: dict[str | None, list[Any]] = {}
    for row in rows:
        found.setdefault(row.cluster, []).append(row)
    return found


def _view(
    number: int,
    key: str | None,
    version: str | None,
    result: model.Result,
    run: Run,
    hosts: Sequence[model.HostRow],
    verdicts: Sequence[model.Verdict],
    findings: Sequence[model.Finding],
    not_judged: Sequence[model.NotJudged],
) -> View:
    proven = key is not None and key != words.UNPROVEN
    states = matrix.states(verdicts, findings)
    about = said.about_hosts(hosts, findings, result, run)
    tables = _tables(run, verdicts, not_judged)
    told = run.symptom.causes if run.symptom else ()
    return View(
        number,
        f"Cluster {key}" if proven else "Hosts of no proven cluster",
        f"Kubernetes {version or 'version unknown'}" if proven else "",
        _places(hosts, states, about),
        matrix.make(hosts, states),
        tuple(_found(group, run) for group in words.alike(words.in_order(findings))),
        tables,
        tuple(words.unknowns([item for item in verdicts if item.code not in told], hosts)),
        " ".join(said.covered(one, run) for one in result.coverage if one.cluster == key).strip(),
        tuple(about),
        tuple(said.reasons(lack for lack in result.lacks if lack.cluster == key)),
        words.left_out(not_judged),
        tuple(words.fine(verdicts)),
        tuple(f"{note} ({words.coded(codes)})" for note, codes in _notes(verdicts).items()),
    )


def _notes(verdicts: Iterable[model.Verdict]) -> dict[str, list[str]]:
    notes: dict[str, list[str]] = {}
    for item in verdicts:
        if item.note:
            notes.setdefault(item.note, []).append(item.code)
    return notes


def _tables(
    run: Run, verdicts: Sequence[model.Verdict], not_judged: Sequence[model.NotJudged]
) -> tuple[Table, ...]:
    """The symptom that was asked about, with every cause.

    Else those of which a cause is present.
    """
    if run.symptom:
        return (
            Table(
                run.symptom.title,
                True,
                tuple(words.differential(run.symptom.causes, verdicts, not_judged)),
            ),
        )
    present = {item.code for item in verdicts if item.verdict == "present"}
    wanted = [
        symptom for symptom in symptoms.SYMPTOMS.values() if not present.isdisjoint(symptom.causes)
    ]
    codes = {code for symptom in wanted for code in symptom.causes}
    rows = {
        row[1]: row
        for row in words.differential(
            codes, [item for item in verdicts if item.code in codes], not_judged
        )
    }
    return tuple(
        Table(
            symptom.title, False, tuple(row for code, row in rows.items() if code in symptom.causes)
        )
        for symptom in wanted
    )


def _places(
    hosts: Sequence[model.HostRow], states: matrix.States, about: Mapping[str, Sequence[str]]
) -> tuple[Place, ...]:
    """Every host, those in trouble first."""
    found = []
    texts = {host: text for text, names in about.items() for host in names}
    for row in hosts:
        mine = sorted(
            (matrix.STATES.index(state), code, state)
            for code, state in states.get(row.host, {}).items()
            if state in matrix.TROUBLE
        )
        unknown = sum(state == "unknown" for dummy, dummy, state in mine)
        faults = tuple((code, state) for dummy, code, state in mine if state != "unknown")
        found.append(
            (
                mine[0][0] if mine else len(matrix.STATES),
                Place(
                    row, faults, unknown, not mine and row.status == "ok", texts.get(row.host, "")
                ),
            )
        )
    found.sort(key=lambda one: (one[1].clean, one[0], one[1].row.host))
    return tuple(place for dummy, place in found)


def _found(group: Sequence[model.Finding], run: Run) -> Found:
    item = group[0]
    return Found(
        item,
        said.by_hand(item, run.plan),
        tuple(host for one in group for host in one.everywhere or (one.node or "",)),
        words.coded(item.because),
        tuple(words.proof_lines(item)),
    )


def _steps(run: Run) -> list[dict[str, Any]]:
    """The plan, each step with what became of it and its diff line by line.

    Then steps that no plan knows.
    """
    states = {step["id"]: step for step in run.steps}
    found = []
    for step in run.plan:
        state, why = words.state_of(step, states.get(step.id), run.mode)
        found.append(
            {
                "id": step.id,
                "host": step.host,
                "code": step.code,
                "remedy": step.remedy,
                "target": step.target,
                "risk": step.risk,
                "state": state,
                "why": why,
                "note": step.note,
                "diff": _diff(step.diff),
            }
        )
    planned = {step.id for step in run.plan}
    for done in run.steps:
        if done["id"] not in planned:
            found.append(
                {
                    "id": done["id"],
                    "host": "",
                    "code": "",
                    "remedy": "",
                    "target": "",
                    "risk": None,
                    "state": done["state"],
                    "why": done.get("reason") or "",
                    "note": "",
                    "diff": [],
                }
            )
    return found


def _diff(diff: str) -> list[tuple[str, str]]:
    kinds = {"+": "add", "-": "del", "@": "at"}
    return (
        [(kinds.get(line[:1], ""), line) for line in diff.rstrip("\n").split("\n")] if diff else []
    )


def _timeline(one: timeline.Timeline) -> dict[str, Any]:
    entries = [
        {
            "time": timeline.stamp(entry),
            "where": entry.where,
            "pod": entry.pod if entry.pod not in ("", one.name) else "",
            "what": entry.what,
            "detail": entry.detail,
            "known": entry.known,
        }
        for entry in one.entries
    ]
    return {"pod": one.pod, "uid": one.uid, "about": one.about, "entries": entries}
