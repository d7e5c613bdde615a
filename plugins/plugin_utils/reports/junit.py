# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Junit.xml, in the shape that Jenkins calls junit-10 (docs/schema/junit.xsd).

One suite for each host and one for faults of a cluster; a case for each fault that was judged
there. Untrusted text goes through escape(), which spells out whatever XML 1.0 forbids, and through
the XML writer's own quoting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from xml.etree import ElementTree

from ..models import result as model_result
from ..planning.plan import Step
from . import phrases, times
from .diff import SILENT, UNPROVEN
from .run_info import Run
from .text_page import cut, escape

_Place = tuple[str, str | None, str | None]  # code, cluster, host
KINDS = ("failure", "error", "skipped")


@dataclass(frozen=True)
class Case:
    """One case of a run that evaluates nothing.

    Attributes:
        host: None for the run itself.
        kind: failure, error or empty.
        severity: one of the schema's types for this kind.
        lines: details.
    """

    host: str | None
    name: str
    kind: str = ""
    severity: str = ""
    message: str = ""
    lines: tuple[str, ...] = ()


def render(result: model_result.Result, run: Run) -> str:
    """Return the whole file."""
    suites = _Suites(result, run)
    suites.add_verdicts(result)
    suites.add_steps(run)
    suites.add_comparison(run)
    return _document(suites, run)


def of_cases(cases: Iterable[Case], run: Run) -> str:
    """Return the file of a run that evaluates nothing: a suite for each host and for the run."""
    suites: dict[str | None, _Suite] = {}
    for case in cases:
        if case.host not in suites:
            name = case.host or f"run {run.run_id}"
            suites[case.host] = _Suite(name, run, {}, case.host, {})
        suites[case.host].add_case(case)
    return _document(suites.values(), run)


def _document(suites: Iterable[_Suite], run: Run) -> str:
    # One suite at a time becomes text: a fleet's cases are never all elements at once.
    totals = dict.fromkeys(("tests", "failures", "errors"), 0)
    texts: list[str] = []
    for suite in suites:
        element = suite.element(len(texts), run)
        for name in totals:
            totals[name] += int(element.get(name) or 0)
        ElementTree.indent(element)
        texts.append(ElementTree.tostring(element, encoding="unicode"))
    head = ElementTree.Element("testsuites", name="kubemend", time=_seconds(run))
    for name, count in totals.items():
        head.set(name, str(count))
    opened = ElementTree.tostring(
        head, encoding="unicode", short_empty_elements=False
    ).removesuffix("</testsuites>")
    return "\n".join(
        ['<?xml version="1.0" encoding="UTF-8"?>', opened, *texts, "</testsuites>", ""]
    )


class _Suites:
    """The suites of a result: hosts in the report's order, then the clusters."""

    def __init__(self, result: model_result.Result, run: Run) -> None:
        self._run = run
        self._states: Mapping[str, str] = {}
        if run.compared:
            self._states = run.compared.states()
        self._hosts = {
            row.host: _Suite(
                row.host,
                run,
                self._states,
                row.host,
                {"cluster": row.cluster, "node": row.node, "role": row.role, "status": row.status},
            )
            for row in result.hosts
        }
        self._clusters: dict[str | None, _Suite] = {}

    def __iter__(self) -> Iterator[_Suite]:
        yield from self._hosts.values()
        yield from self._clusters.values()

    def _suite(self, cluster: str | None, host: str | None) -> _Suite:
        """Return the suite of a host, else that of its cluster, which may be created now."""
        if host in self._hosts:
            return self._hosts[host or ""]
        if cluster in UNPROVEN:
            cluster = None
        if cluster not in self._clusters:
            name = "no proven cluster"
            if cluster:
                name = f"cluster {cluster}"
            self._clusters[cluster] = _Suite(
                name, self._run, self._states, None, {"cluster": cluster}
            )
        return self._clusters[cluster]

    def add_verdicts(self, result: model_result.Result) -> None:
        """Add a case for each applicable verdict, and one for each host without evidence."""
        findings_by_place = _findings_by_place(result.findings)
        silent = {row.host: row for row in result.hosts if row.status != "ok"}
        for verdict in result.verdicts:
            if verdict.verdict == "not_applicable":
                continue
            suite = self._suite(verdict.cluster, verdict.host)
            place = (verdict.code, verdict.cluster, verdict.host)
            findings = [
                finding
                for finding in findings_by_place.get(place, ())
                if verdict.component in (None, finding.component)
            ]
            if verdict.code == SILENT and verdict.host in silent:
                row = silent.pop(verdict.host)
                if not _are_waived(findings):
                    suite.add_silent(row)
                    continue
            suite.add_verdict(verdict, findings)
            if verdict.host is None:
                self._add_to_hosts(verdict, findings)
        for row in silent.values():
            self._hosts[row.host].add_silent(row)

    def _add_to_hosts(
        self, verdict: model_result.Verdict, findings: Sequence[model_result.Finding]
    ) -> None:
        """Add a case of the cluster's verdict to each host that its findings name."""
        hosts = dict.fromkeys(host for finding in findings for host in finding.everywhere)
        for host in hosts:
            if host in self._hosts:
                own_findings = [finding for finding in findings if host in finding.everywhere]
                self._hosts[host].add_present(verdict, own_findings, [])

    def add_steps(self, run: Run) -> None:
        """Add a case for the result of each step."""
        planned = {step.id: step for step in run.plan}
        for done in run.steps:
            step = planned.get(done["id"])
            suite = (
                self._suite(None, None) if step is None else self._suite(step.cluster, step.host)
            )
            suite.add_case(_step(done, step, run.mode))

    def add_comparison(self, run: Run) -> None:
        """Add a line for each finding of an earlier run that is gone or was not judged."""
        if not run.compared:
            return
        for item in run.compared.gone:
            self._suite(item.cluster, item.host).lines.append(
                f"gone since run {run.compared.run_id}: {phrases.place(item)}: {item.summary}"
            )
        for item, reason in run.compared.not_judged:
            self._suite(item.cluster, item.host).lines.append(
                f"not judged now ({reason}): {phrases.place(item)}: {item.summary}"
            )


def _findings_by_place(
    findings: Iterable[model_result.Finding],
) -> dict[_Place, list[model_result.Finding]]:
    by_place: dict[_Place, list[model_result.Finding]] = {}
    for finding in findings:
        for host in finding.everywhere or (finding.host,):
            by_place.setdefault((finding.code, finding.cluster, host), []).append(finding)
        if finding.host:  # a verdict over a cluster may be shown by evidence of its hosts
            by_place.setdefault((finding.code, finding.cluster, None), []).append(finding)
    return by_place


def _are_waived(findings: Sequence[model_result.Finding]) -> bool:
    return bool(findings) and all(finding.waived is not None for finding in findings)


def _waivers(findings: Iterable[model_result.Finding]) -> dict[str, None]:
    """Return each waiver of findings once, in their order."""
    texts = (phrases.waiver(item.waived) for item in findings if item.waived is not None)
    return dict.fromkeys(texts)


def _step(done: Mapping[str, str], step: Step | None, mode: str) -> Case:
    """Return the case of a step that was done, or would be."""
    name, state = f"step {done['id']}", done["state"]
    lines: tuple[str, ...] = ()
    if step is not None:
        lines = (step.target,)
    if state == "done":
        return Case(None, name, lines=lines)
    if step is not None:
        state = phrases.state_of(step, done, mode)[0]
    message = f"{state}: {done.get('reason') or 'no reason is known'}"
    return Case(None, name, "failure", "critical", message, lines)


class _Suite:
    """One suite while it is filled.

    Attributes:
        lines: the output of the suite as a whole.
    """

    def __init__(
        self,
        name: str,
        run: Run,
        states: Mapping[str, str],
        host: str | None,
        properties: dict[str, str | None],
    ) -> None:
        self._name, self._host, self._properties = name, host, properties
        self._titles, self._expired = run.titles, run.waivers_expired
        self._states = states
        self._earlier_run = ""
        if run.compared:
            self._earlier_run = run.compared.run_id
        self._cases: list[ElementTree.Element] = []
        self.lines: list[str] = []

    def add_verdict(
        self, verdict: model_result.Verdict, findings: list[model_result.Finding]
    ) -> None:
        """Add the case of a verdict."""
        if verdict.verdict == "present":
            self.add_present(verdict, findings, verdict.missing)
            return
        case = self._case(verdict.code, verdict.component)
        if verdict.verdict == "unknown":
            lines = [f"{lack.collector} of {lack.host}: {lack.status}" for lack in verdict.missing]
            lines.append(verdict.note)
            message = f"unknown: missing {phrases.join_missing(verdict.missing) or 'evidence'}"
            _add_result(case, "skipped", None, message, lines)

    def add_present(
        self,
        verdict: model_result.Verdict,
        findings: Sequence[model_result.Finding],
        missing: Sequence[model_result.Missing],
    ) -> None:
        """Add a failure; a case whose findings are only for information passes.

        Waived findings make it skipped, where there is no other one.
        """
        case = self._case(verdict.code, verdict.component)
        lines = []
        for finding in findings:
            lines += self._finding(finding)
        if missing:
            lines.append(f"not known of: {phrases.join_missing(missing)}")
        lines.append(verdict.note)
        effective = [finding for finding in findings if finding.waived is None]
        if _are_waived(findings):
            _add_result(case, "skipped", None, "; ".join(_waivers(findings)), lines)
            return
        severities = (finding.severity for finding in effective)
        worst = min(
            severities, key=model_result.SEVERITIES.index, default=model_result.SEVERITIES[0]
        )
        if worst == "info":
            _add_output(case, lines)
            return
        summaries = dict.fromkeys(map(self._summary, effective))
        _add_result(case, "failure", worst, "; ".join(summaries) or "present", lines)

    def add_case(self, case: Case) -> None:
        """Add a case of a run that evaluates nothing."""
        element = self._case(case.name, None)
        if case.kind:
            _add_result(element, case.kind, case.severity, case.message, case.lines)
        elif case.lines:
            _add_output(element, case.lines)

    def add_silent(self, row: model_result.HostRow) -> None:
        """Add the case of a host without evidence: nothing was tested."""
        message = row.reason or row.status
        _add_result(self._case(SILENT, None), "error", row.status, message, [])

    def element(self, number: int, run: Run) -> ElementTree.Element:
        """Return the suite as an element."""
        counts = {kind: sum(case.find(kind) is not None for case in self._cases) for kind in KINDS}
        suite = ElementTree.Element(
            "testsuite",
            name=escape(self._name),
            id=str(number),
            tests=str(len(self._cases)),
            failures=str(counts["failure"]),
            errors=str(counts["error"]),
            skipped=str(counts["skipped"]),
            time="0",
            timestamp=escape(run.started.removesuffix("Z")),
        )
        if self._host is not None:
            suite.set("hostname", escape(self._host))
        self._add_properties(suite, run)
        suite.extend(self._cases)
        if self.lines:
            _add_output(suite, self.lines)
        return suite

    def _add_properties(self, suite: ElementTree.Element, run: Run) -> None:
        element = ElementTree.SubElement(suite, "properties")
        values = {
            "run_id": run.run_id,
            **self._properties,
            "compared_with": self._earlier_run or None,
        }
        for name, value in values.items():
            if value is not None:
                ElementTree.SubElement(element, "property", name=name, value=escape(value))

    def _case(self, code: str, component: str | None) -> ElementTree.Element:
        parts = [code, self._titles.get(code)]
        if component:
            parts.append(f"[{component}]")
        title = " ".join(part for part in parts if part)
        case = ElementTree.Element(
            "testcase", classname=escape(self._name), name=escape(title), time="0"
        )
        self._cases.append(case)
        return case

    def _about_waivers(self, finding: model_result.Finding) -> list[str]:
        """Return that a finding is waived, else which expired waivers were for it."""
        if finding.waived is not None:
            return [f"  {phrases.waiver(finding.waived)}"]
        return [f"  {waiver.end}" for waiver in self._expired if waiver.covers(finding)]

    def _is_elsewhere(self, finding: model_result.Finding) -> bool:
        """Return whether the suite of a host shows this finding in full."""
        return self._host is None and bool(finding.host)

    def _summary(self, finding: model_result.Finding) -> str:
        summary = times.readable(finding.summary, None)
        if self._is_elsewhere(finding):
            return f"{finding.host}: {summary}"
        return summary

    def _finding(self, finding: model_result.Finding) -> list[str]:
        summary = times.readable(finding.summary, None)
        head = f"{phrases.label(finding)} {phrases.place(finding)}: {summary}"
        state = self._states.get(finding.id)
        if state:
            head += f" ({state} since run {self._earlier_run})"
        if self._is_elsewhere(finding):
            return [head]
        lines = [head, *self._about_waivers(finding)]
        lines += (f"  {line}" for line in phrases.proof_lines(finding))
        if finding.remedy:
            lines.append(f"  repair: {finding.remedy}")
        if finding.command:
            lines.append(f"  command: {finding.command}")
        return lines


def _add_result(
    case: ElementTree.Element,
    kind: str,
    severity: str | None,
    message: str,
    lines: Iterable[str],
) -> None:
    element = ElementTree.SubElement(case, kind, message=_line(message))
    if severity:
        element.set("type", escape(severity))
    element.text = _block(lines) or None


def _add_output(element: ElementTree.Element, lines: Iterable[str]) -> None:
    ElementTree.SubElement(element, "system-out").text = _block(lines)


def _line(text: str) -> str:
    return cut(escape(text))


def _block(lines: Iterable[str]) -> str:
    return "\n".join(_line(line) for line in lines if line)


def _seconds(run: Run) -> str:
    try:
        started, finished = (
            datetime.fromisoformat(stamp.replace("Z", "+00:00"))
            for stamp in (run.started, run.finished)
        )
    except ValueError:
        return "0"
    return str(max(0, int((finished - started).total_seconds())))
