# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Since when each finding is there, by the reports of earlier runs.

The newest report that says anything about a finding decides: it has the finding, with its own
`since`, or it judged the fault at this place and did not find it. Silence says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..evidence.document import UNFORESEEN
from ..models import result as model_result
from ..safe_io import bounded_json
from . import report_dir, retention
from .variable_kinds import is_run_id

MODES = frozenset(("observe", "plan", "repair"))  # a replay is of another time
SILENT = "KM901"  # is about hosts that do not answer
MOST_REPORTS = 20
MOST_BYTES = 64 << 20  # of all reports that one run reads
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_UNPROVEN = (None, model_result.UNPROVEN)


def with_since(
    result: model_result.Result, folder: str, run_id: str, started: str, compared: str | None = None
) -> model_result.Result:
    """Return a result whose findings say since when they are there.

    folder: the folder of this run, which may have a report of an earlier one. compared: an earlier
    report that the operator named. A finding about which no report that could be read says
    anything has none, where there are more reports.
    """
    times: dict[str, str] = {}
    open_findings = {finding.id: finding for finding in result.findings}
    hosts = frozenset(row.host for row in result.hosts)
    reports = _Reports(folder, run_id, compared)
    for report in reports if open_findings else ():
        for name, time in _times_in(report, open_findings.values(), hosts):
            times[name] = time or started
            open_findings.pop(name)
        if not open_findings:
            break
    if not reports.incomplete:
        times.update(dict.fromkeys(open_findings, started))
    findings = tuple(replace(finding, since=times.get(finding.id)) for finding in result.findings)
    return replace(result, findings=findings)


class _Reports:
    """The reports of earlier runs, the newest first, as far as they may be read.

    Attributes:
        incomplete: whether a report was left out.
    """

    def __init__(self, folder: str, run_id: str, compared: str | None) -> None:
        self.incomplete = False
        self._run_id = run_id
        self._remaining = MOST_BYTES
        root = Path(report_dir.absolute(retention.RUNS))
        present = Path(report_dir.absolute(folder))
        self._paths = {
            name: root / name / "report.json"
            for name in retention.names(root)
            if name <= run_id and root / name != present
        }
        self._others = [present / "report.json"]
        if compared is not None:
            self._others.append(Path(report_dir.absolute(compared)))

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        reports: dict[str, Mapping[str, Any] | None] = dict.fromkeys(self._paths)
        for path in self._others:
            document = self._read(path)
            if document is not None:
                reports[document["run_id"]] = document
        for name in sorted(reports, reverse=True)[:MOST_REPORTS]:
            document = reports[name] or self._read(self._paths[name])
            if document is not None:
                yield document
        self.incomplete = self.incomplete or len(reports) > MOST_REPORTS

    def _read(self, path: Path) -> Mapping[str, Any] | None:
        """Return a report that judged this time and no later one; None for any other file."""
        try:
            with path.open("rb") as file:
                data = file.read(self._remaining + 1)
            if len(data) > self._remaining:
                self.incomplete = True
                return None
            self._remaining -= len(data)
            return _valid(bounded_json.decoded(data), self._run_id)
        except OverflowError:
            self.incomplete = True
        except (OSError, ValueError, *UNFORESEEN):
            pass  # no report, or none of this schema
        return None


def _valid(document: Any, run_id: str) -> Mapping[str, Any] | None:
    """Return a report whose fields have their types; raises what a wrong type raises."""
    if document["schema"] != model_result.REPORT_SCHEMA or document["mode"] not in MODES:
        return None
    name = document["run_id"]
    if not is_run_id(name) or name > run_id or not is_time(document["started"]):
        return None
    findings = {item["id"]: _time_of(item, document) for item in document["findings"]}
    return {
        "run_id": name,
        "findings": findings,
        "verdicts": verdicts_by_place(document["verdicts"]),
        "hosts": {row["host"]: row["status"] for row in document["hosts"]},
    }


def _time_of(item: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    time = item.get("since")
    return str(time if is_time(time) else document["started"])


def is_time(value: Any) -> bool:
    """Tell whether a value is a time as reports have it."""
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


_Place = tuple[Any, Any, Any]  # code, cluster, host


def verdicts_by_place(rows: Iterable[Mapping[str, Any]]) -> dict[_Place, list[tuple[Any, bool]]]:
    """Return (component, whether nothing is missing) of the verdicts of each place."""
    verdicts: dict[_Place, list[tuple[Any, bool]]] = {}
    for row in rows:
        is_whole = row["verdict"] != "unknown" and not row["missing"]
        place = row["code"], row["cluster"], row["host"]
        verdicts.setdefault(place, []).append((row["component"], is_whole))
    return verdicts


def _times_in(
    report: Mapping[str, Any], findings: Iterable[model_result.Finding], hosts: frozenset[str]
) -> list[tuple[str, str]]:
    """Return (identity, since when) of the findings about which a report says anything.

    The time is empty where the report judged the fault there and did not find it.
    """
    is_same_inventory = report["hosts"].keys() == hosts
    known_times = []
    for finding in findings:
        if finding.cluster in _UNPROVEN and not is_same_inventory:
            continue  # a name may be that of a host of another cluster
        if finding.id in report["findings"]:
            known_times.append((finding.id, report["findings"][finding.id]))
        elif is_judged(report, finding):
            known_times.append((finding.id, ""))
    return known_times


def is_judged(report: Mapping[str, Any], finding: model_result.Finding) -> bool:
    """Return whether a report judged the fault at this place, with nothing missing.

    report: the status of each of its `hosts`, and its `verdicts` by place.
    """
    status = report["hosts"].get(finding.host)
    if finding.host and finding.code != SILENT and status != "ok":
        return False
    answers = [
        answer
        for host in dict.fromkeys((finding.host, None))
        for answer in report["verdicts"].get((finding.code, finding.cluster, host), ())
    ]
    wholes = [is_whole for component, is_whole in answers if component in (None, finding.component)]
    return bool(wholes) and all(wholes)
