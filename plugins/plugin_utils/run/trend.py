# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The trend over earlier runs: which findings of a cluster came, stayed and went.

A finding went where a later run judged its fault at that place, with nothing missing, and did not
find it. Where a run says nothing of it, it is neither there nor gone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..evidence.document import UNFORESEEN
from ..models import result as model_result
from ..safe_io import bounded_json
from . import history, report_dir, retention

SHOWN = 20  # runs
MAX_BYTES = 64 << 20  # of all reports
WAIVER = ("reason", "owner", "expires")


@dataclass(frozen=True)
class Row:
    """One run for one cluster; the changes are those to the run before it.

    changes: numbers of the findings that came, stayed and went; None for the first run.
    """

    run_id: str
    started: str
    mode: str
    symptom: str | None
    answered: int
    hosts: int
    counts: Mapping[str, int]
    changes: tuple[int, int, int] | None


@dataclass
class Course:
    """What became of a finding: when it was last found, and when a run did not find it."""

    finding: model_result.Finding
    since: str
    last: str
    gone: str | None = None


@dataclass
class Cluster:
    """The runs of one cluster, the oldest first, and its findings."""

    key: str | None
    name: str | None = None
    rows: list[Row] = field(default_factory=list)
    courses: dict[str, Course] = field(default_factory=dict)


@dataclass(frozen=True)
class Trend:
    """The clusters of the runs that were read.

    folder: where the runs are. older: runs that were not read, because there are more.
    """

    folder: str
    clusters: Sequence[Cluster]
    older: int


def read(count: int = SHOWN) -> Trend:
    """Return the trend over so many of the newest runs of the user's folder."""
    root = Path(report_dir.absolute(retention.RUNS))
    names = sorted(retention.names(root), reverse=True)
    reports, remaining = [], MAX_BYTES
    for name in names[:count]:
        document, size = _document(root / name / "report.json", remaining)
        remaining -= size
        if remaining < 0:
            break
        reports.append((name, document))
    return Trend(str(root), _clusters(reports[::-1]), len(names) - len(reports))


def _document(path: Path, limit: int) -> tuple[Any, int]:
    """Return (a JSON document or None, the bytes that were read)."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
        return bounded_json.decoded(data), len(data)
    except OSError:
        return None, 0
    except (OverflowError, *UNFORESEEN):
        return None, len(data)


def _clusters(reports: Sequence[tuple[str, Any]]) -> list[Cluster]:
    """Return the clusters of some reports, the one of the newest report first."""
    clusters: dict[Hashable, Cluster] = {}
    for name, document in reports:
        try:
            parts = list(_parts(name, document))
        except UNFORESEEN:
            continue  # no report, or none of this schema
        for identity, part in parts:
            cluster = clusters.pop(identity, None) or Cluster(part.key)
            _add(cluster, part)
            clusters[identity] = cluster
    return list(clusters.values())[::-1]


@dataclass(frozen=True)
class _Part:
    """What one report says of one cluster."""

    key: str | None
    name: str | None
    row: Row
    findings: Mapping[str, model_result.Finding]
    judged: Mapping[str, Any]


def _parts(name: str, document: Any) -> Iterator[tuple[Hashable, _Part]]:
    """Yield each cluster of a report; raises what a wrong type raises."""
    if not _is_report(name, document):
        return
    names = {row["key"]: row.get("name") for row in document["clusters"]}
    verdicts = history.verdicts_by_place(document["verdicts"])
    hosts_by_key: dict[Any, dict[str, str]] = {}
    for row in document["hosts"]:
        hosts_by_key.setdefault(row["cluster"], {})[row["host"]] = row["status"]
    for key, hosts in hosts_by_key.items():
        identity: Hashable = key
        if key in (None, model_result.UNPROVEN):
            identity = (key, frozenset(hosts))  # a name may be that of a host of another cluster
        items = [item for item in document["findings"] if item["cluster"] == key]
        findings = {item["id"]: _finding(item, document["started"]) for item in items}
        row = _row(document, key, hosts, findings)
        judged = {"hosts": hosts, "verdicts": verdicts}
        yield identity, _Part(_text(key), _text(names.get(key)), row, findings, judged)


def _is_report(name: str, document: Any) -> bool:
    """Tell whether a document is the report of this run, which judged its own time."""
    if document["schema"] != model_result.REPORT_SCHEMA or document["run_id"] != name:
        return False
    return document["mode"] in history.MODES and history.is_time(document["started"])


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value)


def _finding(item: Mapping[str, Any], started: str) -> model_result.Finding:
    since, waived = item.get("since"), item.get("waived")
    if waived is not None:
        waived = model_result.Waived(*(str(waived[name]) for name in WAIVER))
    return model_result.Finding(
        code=str(item["code"]),
        severity=str(item["severity"]),
        cluster=_text(item["cluster"]),
        host=_text(item["host"]),
        component=_text(item["component"]),
        summary=str(item["summary"]),
        node=_text(item["node"]),
        hosts=tuple(str(host) for host in item.get("hosts") or ()),
        waived=waived,
        since=str(since if history.is_time(since) else started),
    )


def _row(
    document: Mapping[str, Any],
    key: Any,
    hosts: Mapping[str, str],
    findings: Mapping[str, model_result.Finding],
) -> Row:
    symptom = document.get("symptom") or {}
    counts = {
        state: sum(item.state == state for item in findings.values())
        for state in ("critical", "warning")
    }
    counts["unknown"] = sum(
        item["verdict"] == "unknown" and item["cluster"] == key for item in document["verdicts"]
    )
    return Row(
        run_id=str(document["run_id"]),
        started=str(document["started"]),
        mode=str(document["mode"]),
        symptom=_text(symptom.get("name")),
        answered=sum(status == "ok" for status in hosts.values()),
        hosts=sum(status != "not_asked" for status in hosts.values()),
        counts=counts,
        changes=None,
    )


def _add(cluster: Cluster, part: _Part) -> None:
    """Add a later report to a cluster."""
    courses, started = cluster.courses, part.row.started
    before = {name for name, course in courses.items() if course.gone is None}
    went = {
        name
        for name in before - part.findings.keys()
        if history.is_judged(part.judged, courses[name].finding)
    }
    for name in went:
        courses[name].gone = started
    for name, finding in part.findings.items():
        since = finding.since or started
        if name in before:
            since = min(since, courses[name].since)
        courses[name] = Course(finding, since, started)
    changes = None
    if cluster.rows:
        stayed = before & part.findings.keys()
        changes = (len(part.findings) - len(stayed), len(stayed), len(went))
    cluster.rows.append(replace(part.row, changes=changes))
    cluster.name = part.name or cluster.name
