# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Junit.xml, in the shape that Jenkins calls junit-10 (docs/schema/junit.xsd).

One suite for each host and one for what is a cluster's own; a case for each fault that was judged
there. Untrusted text goes through escape(), which spells out whatever XML 1.0 forbids, and through
the XML writer's own quoting.
"""

from __future__ import annotations

import xml.etree.ElementTree as xml
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from ..models import result as model
from ..planning.plan import Step
from . import phrases as words
from .diff import SILENT, UNPROVEN
from .run_info import Run
from .text_page import LINE_LIMIT, escape

_Place = tuple[str, str | None, str | None]  # code, cluster, host


@dataclass(frozen=True)
class Case:
    """One case of a run that judges nothing. host: None for the run itself; kind.

    Failure, error or none; what: of the schema's types for it.
    """

    host: str | None
    name: str
    kind: str = ""
    what: str = ""
    message: str = ""
    said: tuple[str, ...] = ()


def render(result: model.Result, run: Run) -> str:
    """The whole file."""
    return _document(_suites(result, run), run)


def of_cases(cases: Iterable[Case], run: Run) -> str:
    """The same of a run that judges nothing: one suite for each host, and one for the run."""
    suites: dict[str | None, _Suite] = {}
    for one in cases:
        suite = suites.setdefault(
            one.host, _Suite(one.host or f"run {run.run_id}", run, {}, one.host, {})
        )
        suite.plain(one)
    return _document(suites.values(), run)


def _document(found: Iterable[_Suite], run: Run) -> str:
    """One suite at a time becomes text: a fleet's cases are never all elements at once."""
    totals = dict.fromkeys(("tests", "failures", "errors"), 0)
    suites: list[str] = []
    for suite in found:
        element = suite.element(len(suites), run)
        for name in totals:
            totals[name] += int(element.get(name) or 0)
        xml.indent(element)
        suites.append(xml.tostring(element, encoding="unicode"))
    head = xml.Element(
        "testsuites",
        name="kubemend",
        time=_seconds(run),
        **{name: str(count) for name, count in totals.items()},
    )
    opened = xml.tostring(head, encoding="unicode", short_empty_elements=False).removesuffix(
        "</testsuites>"
    )
    return "\n".join(
        ['<?xml version="1.0" encoding="UTF-8"?>', opened, *suites, "</testsuites>", ""]
    )


def _suites(result: model.Result, run: Run) -> Iterator[_Suite]:
    """Hosts in the report's order, then the clusters."""
    states = run.compared.states() if run.compared else {}
    hosts = {
        row.host: _Suite(
            row.host,
            run,
            states,
            row.host,
            {"cluster": row.cluster, "node": row.node, "role": row.role, "status": row.status},
        )
        for row in result.hosts
    }
    clusters: dict[str | None, _Suite] = {}

    def of(cluster: str | None, host: str | None) -> _Suite:
        if host in hosts:
            return hosts[host or ""]
        cluster = None if cluster in UNPROVEN else cluster
        name = f"cluster {cluster}" if cluster else "no proven cluster"
        return clusters.setdefault(cluster, _Suite(name, run, states, None, {"cluster": cluster}))

    found: dict[_Place, list[model.Finding]] = {}
    for item in result.findings:
        for place in item.everywhere or (item.host,):
            found.setdefault((item.code, item.cluster, place), []).append(item)
        if item.host:  # a verdict over a cluster may be proven at its hosts
            found.setdefault((item.code, item.cluster, None), []).append(item)
    silent = {row.host: row for row in result.hosts if row.status != "ok"}
    for verdict in (item for item in result.verdicts if item.verdict != "not_applicable"):
        mine = [
            item
            for item in found.get((verdict.code, verdict.cluster, verdict.host), ())
            if verdict.component is None or verdict.component == item.component
        ]
        if verdict.code == SILENT and verdict.host in silent:
            of(verdict.cluster, verdict.host).silent(silent.pop(verdict.host))
            continue
        of(verdict.cluster, verdict.host).judged(verdict, mine)
        for host in dict.fromkeys(
            host
            for item in mine
            for host in item.everywhere
            if verdict.host is None and host in hosts
        ):
            hosts[host].present(verdict, [item for item in mine if host in item.everywhere], [])
    for row in silent.values():
        hosts[row.host].silent(row)
    _beside(run, of)
    yield from hosts.values()
    yield from clusters.values()


def _beside(run: Run, of: Callable[[str | None, str | None], _Suite]) -> None:
    """What became of the steps, and what an earlier run had."""
    planned = {step.id: step for step in run.plan}
    for one in run.steps:
        step = planned.get(one["id"])
        of(step.cluster if step else None, step.host if step else None).plain(
            _step(one, step, run.mode)
        )
    if run.compared:
        for item in run.compared.gone:
            of(item.cluster, item.host).say(
                f"gone since run {run.compared.run_id}: {words.place(item)}: {item.summary}"
            )
        for item, reason in run.compared.not_judged:
            of(item.cluster, item.host).say(
                f"not judged now ({reason}): {words.place(item)}: {item.summary}"
            )


def _step(done: Mapping[str, str], step: Step | None, mode: str) -> Case:
    """What became of a step of a repair, or would."""
    said = (step.target,) if step else ()
    if done["state"] == "done":
        return Case(None, f"step {done['id']}", said=said)
    state = words.state_of(step, done, mode)[0] if step else done["state"]
    return Case(
        None,
        f"step {done['id']}",
        "failure",
        "critical",
        f"{state}: {done.get('reason') or 'nobody said why'}",
        said,
    )


class _Suite:
    """One suite while it is filled."""

    def __init__(
        self,
        name: str,
        run: Run,
        states: Mapping[str, str],
        host: str | None,
        properties: dict[str, str | None],
    ) -> None:
        self.name, self.host, self.properties = name, host, properties
        self.titles = run.titles
        self.states = states
        self.since = run.compared.run_id if run.compared else ""
        self.cases: list[xml.Element] = []
        self.said: list[str] = []

    def judged(self, verdict: model.Verdict, findings: list[model.Finding]) -> None:
        if verdict.verdict == "present":
            self.present(verdict, findings, list(verdict.missing))
        elif verdict.verdict == "unknown":
            case = self._case(verdict.code, verdict.component)
            lines = [
                f"{lack.collector} of {lack.host}: {lack.status}" for lack in verdict.missing
            ] + [verdict.note]
            self._why(
                case,
                "skipped",
                None,
                f"unknown: missing {words.lacking(verdict.missing) or 'evidence'}",
                lines,
            )
        else:
            self._case(verdict.code, verdict.component)

    def present(
        self, verdict: model.Verdict, findings: list[model.Finding], missing: list[model.Missing]
    ) -> None:
        """A failure; findings that are only to be known are told by a case that passes."""
        case = self._case(verdict.code, verdict.component)
        elsewhere = self.host is None
        lines = [
            line
            for item in findings
            for line in self._finding(item, short=elsewhere and bool(item.host))
        ]
        if missing:
            lines.append(f"not known of: {words.lacking(missing)}")
        lines.append(verdict.note)
        worst = min(
            (item.severity for item in findings),
            key=model.SEVERITIES.index,
            default=model.SEVERITIES[0],
        )
        if worst == "info":
            xml.SubElement(case, "system-out").text = _block(lines)
            return
        summaries = list(
            dict.fromkeys(
                f"{item.host}: {item.summary}" if elsewhere and item.host else item.summary
                for item in findings
            )
        )
        self._why(case, "failure", worst, "; ".join(summaries) or "present", lines)

    def plain(self, one: Case) -> None:
        case = self._case(one.name, None)
        if one.kind:
            self._why(case, one.kind, one.what, one.message, one.said)
        elif one.said:
            xml.SubElement(case, "system-out").text = _block(one.said)

    def silent(self, row: model.HostRow) -> None:
        """A host without evidence: nothing was tested."""
        self._why(self._case(SILENT, None), "error", row.status, row.reason or row.status, [])

    def say(self, line: str) -> None:
        self.said.append(line)

    def element(self, number: int, run: Run) -> xml.Element:
        count = {
            kind: sum(case.find(kind) is not None for case in self.cases)
            for kind in ("failure", "error", "skipped")
        }
        suite = xml.Element(
            "testsuite",
            name=escape(self.name),
            id=str(number),
            tests=str(len(self.cases)),
            failures=str(count["failure"]),
            errors=str(count["error"]),
            skipped=str(count["skipped"]),
            time="0",
            timestamp=escape(run.started.removesuffix("Z")),
        )
        if self.host is not None:
            suite.set("hostname", escape(self.host))
        told = xml.SubElement(suite, "properties")
        for name, value in {
            "run_id": run.run_id,
            **self.properties,
            "compared_with": self.since or None,
        }.items():
            if value is not None:
                xml.SubElement(told, "property", name=name, value=escape(value))
        suite.extend(self.cases)
        if self.said:
            xml.SubElement(suite, "system-out").text = _block(self.said)
        return suite

    def _case(self, code: str, component: str | None) -> xml.Element:
        title = " ".join(
            part
            for part in (code, self.titles.get(code), f"[{component}]" if component else None)
            if part
        )
        case = xml.Element("testcase", classname=escape(self.name), name=escape(title), time="0")
        self.cases.append(case)
        return case

    def _finding(self, item: model.Finding, short: bool) -> list[str]:
        state = self.states.get(item.id)
        since = f" ({state} since run {self.since})" if state else ""
        lines = [f"{item.severity.upper()} {words.place(item)}: {item.summary}{since}"]
        if not short:
            lines += [f"  {line}" for line in words.proof_lines(item)]
            lines += [
                f"  {name}: {words}"
                for name, words in (("repair", item.remedy), ("command", item.command))
                if words
            ]
        return lines

    @staticmethod
    def _why(
        case: xml.Element, kind: str, what: str | None, message: str, lines: Iterable[str]
    ) -> None:
        element = xml.SubElement(case, kind, message=_line(message))
        if what:
            element.set("type", escape(what))
        element.text = _block(lines) or None


def _line(words: str) -> str:
    clean = escape(words)
    return (
        clean
        if len(clean) <= LINE_LIMIT
        else clean[:LINE_LIMIT] + f"… ({len(clean) - LINE_LIMIT} more characters in report.json)"
    )


def _block(lines: Iterable[str]) -> str:
    return "\n".join(_line(line) for line in lines if line)


def _seconds(run: Run) -> str:
    try:
        began, ended = (
            datetime.fromisoformat(stamp.replace("Z", "+00:00"))
            for stamp in (run.started, run.finished)
        )
    except ValueError:
        return "0"
    return str(max(0, int((ended - began).total_seconds())))
