# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A result beside an earlier report: what is new, gone, unchanged, or cannot be said of now.

A finding is known again by code, cluster, host (or node) and component, never by its text. It is
gone only where its fault was judged again at that place and is not there: silence is never a cure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..evidence.document import one_line
from ..models import result as model
from ..run.settings import SettingsError, shown

UNPROVEN = frozenset((None, model.UNPROVEN))
SILENT = "KM901"  # is about hosts that do not answer
_FIELDS = ("code", "severity", "cluster", "host", "node", "component", "summary")
_LEFT_OUT = {
    "limit": "{} was left out by --limit",
    "tier": "{} needs kubemend_deep",
    "slice": "{} is left to the replay of all slices",
}
_Place = tuple[str, str, str]


@dataclass(frozen=True)
class Earlier:
    """What of an earlier report is compared. unknown.

    (code, cluster, host, component) of its unknown verdicts.
    """

    run_id: str
    finished: str
    findings: tuple[model.Finding, ...] = ()
    unknown: frozenset[tuple[str | None, ...]] = frozenset()


@dataclass(frozen=True)
class Comparison:
    """By identity: findings that are new, more severe than they were (worse), as they were, gone.

    And of which nothing is known now, each with why.

    counts: of critical and warning findings and unknown verdicts those that are new or worse, by
    which kubemend_fail_on goes.
    """

    run_id: str
    finished: str
    new: tuple[model.Finding, ...] = ()
    worse: tuple[model.Finding, ...] = ()
    unchanged: tuple[model.Finding, ...] = ()
    gone: tuple[model.Finding, ...] = ()
    not_judged: tuple[tuple[model.Finding, str], ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    def states(self) -> dict[str, str]:
        """{identity: new, worse or unchanged} of the findings that are there now."""
        return {
            item.id: name for name in ("new", "worse", "unchanged") for item in getattr(self, name)
        }

    def shown(self) -> dict[str, Any]:
        """As report.json has it."""
        listed: dict[str, Any] = {
            name: [item.id for item in getattr(self, name)]
            for name in ("new", "worse", "unchanged")
        }
        return {
            "run_id": self.run_id,
            "finished": self.finished,
            **listed,
            "gone": [_row(item) for item in self.gone],
            "not_judged": [{**_row(item), "reason": reason} for item, reason in self.not_judged],
            "counts": dict(self.counts),
        }


def _row(item: model.Finding) -> dict[str, Any]:
    return {"id": item.id, **{name: getattr(item, name) for name in _FIELDS}}


def read(given: str) -> bytes:
    """The report that kubemend_compare_to names, a file or the folder of a run.

    Raises SettingsError with one sentence.
    """
    path = Path(given)
    try:
        if path.is_dir():
            path = path / "report.json"
            if not path.exists():
                raise _wrong(
                    given,
                    "that folder has no report.json: give the folder of a run, or its report.json",
                )
        if not path.is_file():
            raise _wrong(
                given, "that is no file" if path.exists() else "there is no such file or folder"
            )
        data = path.read_bytes()
    except OSError as error:
        raise _wrong(given, f"it cannot be read ({error.strerror})") from None
    parse(data, given)
    return data


def parse(data: bytes, given: str) -> Earlier:
    """What such a report says. Raises SettingsError with one sentence."""
    try:
        report = json.loads(data)
    except (ValueError, RecursionError):
        raise _wrong(given, "it is no report (no JSON, or cut)") from None
    schema = report.get("schema") if isinstance(report, dict) else None
    if isinstance(schema, str) and schema.startswith("kubemend.evidence/"):
        raise _wrong(
            given,
            "that is evidence of a host; what is compared is report.json, or the folder of a run",
        )
    if not isinstance(schema, str) or not schema.startswith("kubemend.report/"):
        raise _wrong(given, "it is no report of kubemend")
    if schema != model.REPORT_SCHEMA:
        raise _wrong(
            given,
            f"its schema is {shown(schema)}, and this version compares {model.REPORT_SCHEMA} only",
        )
    if report.get("mode") == "capture":
        raise _wrong(given, "it is the report of a capture, which judges nothing")
    try:
        return _earlier(report)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _wrong(
            given,
            "it is no whole report: a field of its findings or verdicts is missing or of another"
            " type",
        ) from None


def _wrong(given: str, what: str) -> SettingsError:
    return SettingsError(f"kubemend_compare_to is {shown(given)}: {what}.")


def _earlier(report: Mapping[str, Any]) -> Earlier:
    findings = tuple(
        model.Finding(
            **{
                name: _text(item[name], name in ("cluster", "host", "node", "component"))
                for name in _FIELDS
            }
        )
        for item in report["findings"]
    )
    if any(item.severity not in model.SEVERITIES for item in findings):
        raise ValueError("severity")
    unknown = frozenset(
        tuple(
            _text(item[name], name != "code") for name in ("code", "cluster", "host", "component")
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


def _text(value: Any, optional: bool = False) -> Any:
    if not (isinstance(value, str) or (optional and value is None)):
        raise TypeError("no text")
    return value


def compare(earlier: Earlier, result: model.Result) -> Comparison:
    """What became of the earlier findings, and which are new."""
    before, now, judged = _Index(earlier.findings), _Index(result.findings), _Judged(result)
    found: dict[str, list[model.Finding]] = {"new": [], "worse": [], "unchanged": []}
    for item in now.worst():
        former = before.find(item)
        found[
            "new" if former is None else "worse" if _rank(item) < _rank(former) else "unchanged"
        ].append(item)
    gone: list[model.Finding] = []
    not_judged: list[tuple[model.Finding, str]] = []
    for item in before.worst():
        if now.find(item) is None:
            why = judged.lacks(item)
            if why:
                not_judged.append((item, why))
            else:
                gone.append(item)
    counts = {
        name: sum(item.severity == name for item in (*found["new"], *found["worse"]))
        for name in ("critical", "warning")
    }
    counts["unknown"] = sum(
        item.verdict == "unknown" and not _was_unknown(item, earlier) for item in result.verdicts
    )
    return Comparison(
        earlier.run_id,
        earlier.finished,
        **{name: tuple(items) for name, items in found.items()},
        gone=tuple(gone),
        not_judged=tuple(not_judged),
        counts=counts,
    )


class _Index:
    """Findings by place; of several of one identity the most severe.

    Nobody's cluster is like any, where a host is named.
    """

    def __init__(self, findings: Iterable[model.Finding]) -> None:
        self._places: dict[_Place, dict[str | None, model.Finding]] = {}
        for item in findings:
            for place in _place(item):
                known = self._places.setdefault(place, {})
                if item.cluster not in known or _rank(item) < _rank(known[item.cluster]):
                    known[item.cluster] = item

    def worst(self) -> list[model.Finding]:
        return list(
            {id(item): item for known in self._places.values() for item in known.values()}.values()
        )

    def find(self, item: model.Finding) -> model.Finding | None:
        """Of a finding of several hosts (they share a kernel) one of any of them is the same."""
        return next(
            (found for found in (self._at(place, item) for place in _place(item)) if found), None
        )

    def _at(self, place: _Place, item: model.Finding) -> model.Finding | None:
        known = self._places.get(place, {})
        if item.cluster in known or not item.host:
            return known.get(item.cluster)
        return next(
            (other for cluster, other in known.items() if _alike(cluster, item.cluster, item.host)),
            None,
        )


def _place(item: model.Finding) -> list[_Place]:
    return [
        (item.code, host, item.component or "")
        for host in item.everywhere or (f"node {item.node or ''}",)
    ]


def _alike(one: str | None, other: str | None, host: str | None) -> bool:
    """An inventory name stands for its host also in a run that could not prove the host's
    cluster.
    """
    return one == other or (bool(host) and bool({one, other} & UNPROVEN))


def _rank(item: model.Finding) -> int:
    return model.SEVERITIES.index(item.severity)


def _was_unknown(item: model.Verdict, earlier: Earlier) -> bool:
    clusters = {item.cluster, *UNPROVEN} if item.host else {item.cluster}
    return any(
        (item.code, cluster, item.host, item.component) in earlier.unknown for cluster in clusters
    )


class _Judged:
    """What this run judged, by code and host."""

    def __init__(self, result: model.Result) -> None:
        self._hosts = {row.host: row.status for row in result.hosts}
        self._left_out = {item.code: item.reason for item in result.not_judged}
        self._verdicts: dict[tuple[str, str | None], list[model.Verdict]] = {}
        for verdict in result.verdicts:
            self._verdicts.setdefault((verdict.code, verdict.host), []).append(verdict)

    def lacks(self, item: model.Finding) -> str:
        """Why nobody can say whether this finding is still there.

        Empty where its fault was judged and is gone.
        """
        if item.host and item.code != SILENT and self._hosts.get(item.host) != "ok":
            status = self._hosts.get(item.host)
            return (
                f"{item.host} was not asked"
                if status is None
                else (
                    f"{item.host} did not answer"
                    if status == "unreachable"
                    else f"{item.host}: {status}"
                )
            )
        known = [
            one
            for host in dict.fromkeys((item.host, None))
            for one in self._verdicts.get((item.code, host), ())
            if _alike(one.cluster, item.cluster, item.host)
            and (None in (one.component, item.component) or one.component == item.component)
        ]
        if not known:
            return _LEFT_OUT.get(self._left_out.get(item.code, ""), "{} was not judged").format(
                item.code
            )
        if any(one.verdict == "unknown" for one in known):
            return f"{item.code} is unknown"
        return (
            f"{item.code} is not known of every host"
            if any(one.verdict == "present" and one.missing for one in known)
            else ""
        )
