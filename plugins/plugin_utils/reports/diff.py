# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A result compared with an earlier report: what is new, gone, unchanged, or no longer known.

A finding is recognised by code, cluster, host (or node) and component, never by its text. It is
gone only where its fault was judged again at this place and is not there: silence is no fix.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..evidence.document import one_line
from ..models import result as model_result
from ..run.settings import SettingsError, shown

UNPROVEN = frozenset((None, model_result.UNPROVEN))
SILENT = "KM901"  # is about hosts that do not answer
_FIELDS = ("code", "severity", "cluster", "host", "node", "component", "summary")
_OPTIONAL = frozenset(("cluster", "host", "node", "component"))
_CHANGES = ("new", "worse", "unchanged")
_LEFT_OUT = {
    "limit": "{} was left out by --limit",
    "tier": "{} needs kubemend_deep",
    "slice": "{} is left to the replay of all slices",
}
_Place = tuple[str, str, str]


@dataclass(frozen=True)
class Earlier:
    """The compared parts of an earlier report.

    Attributes:
        unknown: (code, cluster, host, component) of its unknown verdicts.
    """

    run_id: str
    finished: str
    findings: tuple[model_result.Finding, ...] = ()
    unknown: frozenset[tuple[str | None, ...]] = frozenset()


@dataclass(frozen=True)
class Comparison:
    """The findings of two reports, by identity.

    Attributes:
        worse: more severe than they were.
        not_judged: findings that are not known now, each with the reason.
        counts: of new or worse critical and warning findings and unknown verdicts, by which
            kubemend_fail_on goes.
    """

    run_id: str
    finished: str
    new: tuple[model_result.Finding, ...] = ()
    worse: tuple[model_result.Finding, ...] = ()
    unchanged: tuple[model_result.Finding, ...] = ()
    gone: tuple[model_result.Finding, ...] = ()
    not_judged: tuple[tuple[model_result.Finding, str], ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    def states(self) -> dict[str, str]:
        """Return {identity: new, worse or unchanged} of the present findings."""
        return {item.id: name for name in _CHANGES for item in getattr(self, name)}

    def shown(self) -> dict[str, Any]:
        """Return the comparison as report.json has it."""
        ids = {name: [item.id for item in getattr(self, name)] for name in _CHANGES}
        return {
            "run_id": self.run_id,
            "finished": self.finished,
            **ids,
            "gone": [_row(item) for item in self.gone],
            "not_judged": [{**_row(item), "reason": reason} for item, reason in self.not_judged],
            "counts": dict(self.counts),
        }


def _row(finding: model_result.Finding) -> dict[str, Any]:
    return {"id": finding.id, **{name: getattr(finding, name) for name in _FIELDS}}


def read(setting: str) -> bytes:
    """Return the report that kubemend_compare_to names, a file or the directory of a run.

    Raises SettingsError with one sentence.
    """
    try:
        data = _report_path(setting).read_bytes()
    except OSError as error:
        raise _invalid(setting, f"it cannot be read ({error.strerror})") from None
    parse(data, setting)
    return data


def _report_path(setting: str) -> Path:
    path = Path(setting)
    if path.is_dir():
        path = path / "report.json"
        if not path.exists():
            raise _invalid(
                setting,
                "that folder has no report.json: give the folder of a run, or its report.json",
            )
    if path.is_file():
        return path
    if path.exists():
        raise _invalid(setting, "that is no file")
    raise _invalid(setting, "there is no such file or folder")


def parse(data: bytes, setting: str) -> Earlier:
    """Parse a report. Raises SettingsError with one sentence."""
    try:
        report = json.loads(data)
    except (ValueError, RecursionError):
        raise _invalid(setting, "it is no report (no JSON, or cut)") from None
    problem = _problem(report)
    if problem:
        raise _invalid(setting, problem)
    try:
        return _earlier(report)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _invalid(
            setting,
            "it is no whole report: a field of its findings or verdicts is missing or of another"
            " type",
        ) from None


def _problem(report: Any) -> str:
    """Return why a document is no report that can be compared; empty if it is one."""
    if not isinstance(report, dict) or not isinstance(report.get("schema"), str):
        return "it is no report of kubemend"
    schema = report["schema"]
    if schema.startswith("kubemend.evidence/"):
        return "that is evidence of a host; what is compared is report.json, or the folder of a run"
    if not schema.startswith("kubemend.report/"):
        return "it is no report of kubemend"
    if schema != model_result.REPORT_SCHEMA:
        known_schema = model_result.REPORT_SCHEMA
        return f"its schema is {shown(schema)}, and this version compares {known_schema} only"
    if report.get("mode") == "capture":
        return "it is the report of a capture, which judges nothing"
    return ""


def _invalid(setting: str, problem: str) -> SettingsError:
    return SettingsError(f"kubemend_compare_to is {shown(setting)}: {problem}.")


def _earlier(report: Mapping[str, Any]) -> Earlier:
    findings = tuple(map(_finding, report["findings"]))
    if any(item.severity not in model_result.SEVERITIES for item in findings):
        raise ValueError("severity")
    unknown = frozenset(
        (
            _text(item["code"]),
            _text(item["cluster"], optional=True),
            _text(item["host"], optional=True),
            _text(item["component"], optional=True),
        )
        for item in report["verdicts"]
        if item["verdict"] == "unknown"
    )
    return Earlier(
        one_line(_text(report["run_id"]), 80),
        one_line(_text(report["finished"]), 80),
        findings,
        unknown,
    )


def _finding(item: Mapping[str, Any]) -> model_result.Finding:
    texts = {name: _text(item[name], name in _OPTIONAL) for name in _FIELDS}
    return model_result.Finding(**texts, waived=_waived(item.get("waived")))


def _waived(item: Mapping[str, Any] | None) -> model_result.Waived | None:
    if item is None:
        return None
    return model_result.Waived(*(_text(item[name]) for name in ("reason", "owner", "expires")))


def _text(value: Any, optional: bool = False) -> Any:
    if isinstance(value, str) or (optional and value is None):
        return value
    raise TypeError("no text")


def compare(earlier: Earlier, result: model_result.Result) -> Comparison:
    """Compare the findings of a result with those of an earlier report."""
    before, now, judged = _Index(earlier.findings), _Index(result.findings), _Judged(result)
    changes: dict[str, list[model_result.Finding]] = {name: [] for name in _CHANGES}
    for finding in now.worst():
        changes[_change(finding, before.find(finding))].append(finding)
    gone: list[model_result.Finding] = []
    not_judged: list[tuple[model_result.Finding, str]] = []
    for finding in before.worst():
        if now.find(finding) is not None:
            continue
        reason = judged.lacks(finding)
        if reason:
            not_judged.append((finding, reason))
        else:
            gone.append(finding)
    return Comparison(
        earlier.run_id,
        earlier.finished,
        tuple(changes["new"]),
        tuple(changes["worse"]),
        tuple(changes["unchanged"]),
        gone=tuple(gone),
        not_judged=tuple(not_judged),
        counts=_counts((*changes["new"], *changes["worse"]), earlier, result),
    )


def _change(finding: model_result.Finding, former: model_result.Finding | None) -> str:
    if former is None:
        return "new"
    if _severity_order(finding) < _severity_order(former):
        return "worse"
    if former.waived is not None and finding.waived is None:
        return "worse"  # its waiver is over: it counts again
    return "unchanged"


def _counts(
    findings: Sequence[model_result.Finding], earlier: Earlier, result: model_result.Result
) -> dict[str, int]:
    return {
        "critical": sum(item.state == "critical" for item in findings),
        "warning": sum(item.state == "warning" for item in findings),
        "unknown": sum(
            item.verdict == "unknown" and not _was_unknown(item, earlier)
            for item in result.verdicts
        ),
    }


class _Index:
    """Findings by place; of several of one identity the most severe.

    Hosts without a known cluster match any cluster, where a host is named.
    """

    def __init__(self, findings: Iterable[model_result.Finding]) -> None:
        self._places: dict[_Place, dict[str | None, model_result.Finding]] = {}
        self._nodes: dict[tuple[str | None, ...], model_result.Finding] = {}
        for finding in findings:
            self._nodes.setdefault(_node(finding), finding)
            for place in _places(finding):
                self._add(place, finding)

    def _add(self, place: _Place, finding: model_result.Finding) -> None:
        by_cluster = self._places.setdefault(place, {})
        known_finding = by_cluster.get(finding.cluster)
        if known_finding is None or _severity_order(finding) < _severity_order(known_finding):
            by_cluster[finding.cluster] = finding

    def worst(self) -> list[model_result.Finding]:
        """Return each finding once."""
        by_id: dict[int, model_result.Finding] = {}
        for by_cluster in self._places.values():
            by_id.update((id(finding), finding) for finding in by_cluster.values())
        return list(by_id.values())

    def find(self, finding: model_result.Finding) -> model_result.Finding | None:
        """Return the same finding: if it is about several hosts, a finding at any of them."""
        matches = (self._at(place, finding) for place in _places(finding))
        return next(filter(None, matches), None) or self._of_node(finding)

    def _of_node(self, finding: model_result.Finding) -> model_result.Finding | None:
        """Return the finding about the same Node, whose host only one of two reports knows."""
        match = self._nodes.get(_node(finding))
        if match is None or not finding.node or (finding.host and match.host):
            return None
        return match

    def _at(self, place: _Place, finding: model_result.Finding) -> model_result.Finding | None:
        by_cluster = self._places.get(place, {})
        if finding.cluster in by_cluster or not finding.host:
            return by_cluster.get(finding.cluster)
        for cluster, other in by_cluster.items():
            if _are_alike(cluster, finding.cluster, finding.host):
                return other
        return None


def _places(finding: model_result.Finding) -> list[_Place]:
    hosts = finding.everywhere or (f"node {finding.node or ''}",)
    return [(finding.code, host, finding.component or "") for host in hosts]


def _node(finding: model_result.Finding) -> tuple[str | None, ...]:
    return finding.code, finding.cluster, finding.node, finding.component


def _are_alike(cluster: str | None, other: str | None, host: str | None) -> bool:
    """Return whether two clusters may be the same for this host.

    An inventory name stands for its host also in a run that could not prove the host's cluster.
    """
    return cluster == other or (bool(host) and bool({cluster, other} & UNPROVEN))


def _severity_order(finding: model_result.Finding) -> int:
    return model_result.SEVERITIES.index(finding.severity)


def _was_unknown(verdict: model_result.Verdict, earlier: Earlier) -> bool:
    clusters = {verdict.cluster}
    if verdict.host:
        clusters |= UNPROVEN
    return any(
        (verdict.code, cluster, verdict.host, verdict.component) in earlier.unknown
        for cluster in clusters
    )


class _Judged:
    """What this run judged, by code and host."""

    def __init__(self, result: model_result.Result) -> None:
        self._hosts = {row.host: row.status for row in result.hosts}
        self._left_out = {item.code: item.reason for item in result.not_judged}
        self._verdicts: dict[tuple[str, str | None], list[model_result.Verdict]] = {}
        for verdict in result.verdicts:
            self._verdicts.setdefault((verdict.code, verdict.host), []).append(verdict)

    def lacks(self, finding: model_result.Finding) -> str:
        """Return why it is not known whether a finding is still there.

        The result is empty if its fault was judged and is gone.
        """
        code, host = finding.code, finding.host
        if host and code != SILENT and self._hosts.get(host) != "ok":
            return self._host_state(host)
        verdicts = list(self._matching(finding))
        if not verdicts:
            reason = self._left_out.get(code, "")
            return _LEFT_OUT.get(reason, "{} was not judged").format(code)
        if any(item.verdict == "unknown" for item in verdicts):
            return f"{code} is unknown"
        if any(item.verdict == "present" and item.missing for item in verdicts):
            return f"{code} is not known of every host"
        return ""

    def _host_state(self, host: str) -> str:
        status = self._hosts.get(host)
        if status is None:
            return f"{host} was not asked"
        if status == "unreachable":
            return f"{host} did not answer"
        return f"{host}: {status}"

    def _matching(self, finding: model_result.Finding) -> Iterator[model_result.Verdict]:
        """Yield the verdicts about the fault at the host of a finding, and over its cluster."""
        for host in dict.fromkeys((finding.host, None)):
            for verdict in self._verdicts.get((finding.code, host), ()):
                components = (verdict.component, finding.component)
                same_component = None in components or verdict.component == finding.component
                if same_component and _are_alike(verdict.cluster, finding.cluster, finding.host):
                    yield verdict
