# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands at the top of a report: which run, of which cluster, with which result.

Pure, and not escaped: each format escapes its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from ...module_utils.shared.text import counted
from ..faults import CATALOGUE
from ..models import result as model_result
from . import host_names, phrases, times
from .groups import Cause, Entry
from .run_info import Run, summary

SEPARATOR = " · "
SHORT_KEY = 8
UNASSIGNED = "Hosts not assigned to a cluster"
CHANGED = {
    "observe": "nothing was changed",
    "replay": "nothing was changed",
    "plan": "check mode, nothing was changed",
    "repair": "before the repair",
    "verify": "after the repair",
}
LEFT_OUT = {
    "tier": "without evidence, which an older release did not collect",
    "limit": "on hosts that --limit left out",
    "slice": "for a whole cluster: replay the slices together",
}
DEEP = "only with -e kubemend_deep=true"


def cluster_name(key: str | None, run: Run) -> str:
    """Return the name of a cluster, else a short form of its key."""
    if key is None or key == model_result.UNPROVEN:
        return UNASSIGNED
    return run.cluster_names.get(key) or f"cluster {key[:SHORT_KEY]}"


def version(key: str | None, result: model_result.Result) -> str:
    """Return the release of a cluster; empty for hosts of none."""
    if key is None or key == model_result.UNPROVEN:
        return ""
    versions = (item.kubernetes_version for item in result.clusters if item.key == key)
    return f"Kubernetes {next(versions, None) or 'version unknown'}"


def read(key: str | None, result: model_result.Result) -> str:
    """Return how many of the known nodes of a cluster were read; hosts where no API said it."""
    rows = [row for row in result.hosts if row.cluster == key]
    for coverage in result.coverage:
        if coverage.cluster == key and coverage.nodes is not None:
            text = f"{coverage.audited} of {counted(coverage.nodes, 'node')} read"
            return text + _unread(coverage, coverage.nodes)
    answered = sum(row.status == "ok" for row in rows)
    return f"{answered} of {counted(len(rows), 'host')} read"


def _unread(coverage: model_result.Coverage, nodes: int) -> str:
    """Return how many hosts were not read that are none of the API's nodes."""
    count = len(coverage.left) - (nodes - coverage.audited)
    if count <= 0:
        return ""
    return f", {counted(count, 'other host')} not read"


def identity(result: model_result.Result, run: Run) -> str:
    """Return one line: run, cluster, release, nodes read, seconds, what was changed."""
    keys = phrases.cluster_keys(result)
    parts = [f"kubemend {phrases.about(run)}"]
    if len(keys) == 1:
        parts += of_cluster(keys[0], result, run)
    elif keys:
        proven = [key for key in keys if key not in (None, model_result.UNPROVEN)]
        answered = sum(row.status == "ok" for row in result.hosts)
        parts += [
            counted(len(proven), "cluster"),
            f"{answered} of {counted(len(result.hosts), 'host')} read",
        ]
    seconds = _seconds(run)
    if seconds:
        parts.append(seconds)
    parts.append(CHANGED.get(run.mode, run.mode))
    return SEPARATOR.join(parts)


def of_cluster(key: str | None, result: model_result.Result, run: Run) -> list[str]:
    """Return the name of a cluster, its release, and how many of its nodes were read."""
    parts = (cluster_name(key, run), version(key, result), read(key, result))
    return [part for part in parts if part]


def _seconds(run: Run) -> str:
    started, finished = times.moment(run.started), times.moment(run.finished)
    if started is None or finished is None or finished < started:
        return ""
    return f"{int((finished - started).total_seconds())} s"


def now(run: Run) -> datetime | None:
    """Return the time to which ages relate: that of recorded evidence, else the run's end."""
    if run.mode == "replay":
        return times.moment(run.evidence_time)
    return times.moment(run.finished)


def counts(result: model_result.Result) -> dict[str, int]:
    """Return findings by severity and unknown verdicts, as the last line has them, with info.

    Waived findings are counted apart, where there is one.
    """
    numbers = summary(result)
    counts = {
        "critical": numbers["critical"],
        "warning": numbers["warning"],
        "info": sum(finding.state == "info" for finding in result.findings),
        "unknown": numbers["unknown"],
    }
    if model_result.WAIVED in numbers:
        counts[model_result.WAIVED] = numbers[model_result.WAIVED]
    return counts


def checked(result: model_result.Result) -> str:
    """Return how many faults were checked, and how many were not, each reason with its number."""
    codes = {item.code for item in result.verdicts}
    parts = [f"{counted(len(codes), 'fault')} checked"]
    codes_by_reason: dict[str, set[str]] = {}
    for item in result.not_judged:
        if item.code not in codes:
            codes_by_reason.setdefault(_left_reason(item), set()).add(item.code)
    ordered = sorted(codes_by_reason.items(), key=lambda item: (item[0] != DEEP, item[0]))
    parts += [f"{len(names)} {reason}" for reason, names in ordered]
    return "; ".join(parts)


def _left_reason(item: model_result.NotJudged) -> str:
    fault = CATALOGUE.get(item.code)
    if item.reason == "tier" and fault is not None and fault.tier == "deep":
        return DEEP
    return LEFT_OUT.get(item.reason, item.reason)


def chains(entries: Sequence[Entry]) -> str:
    """Return how many findings the causes explain; empty where no finding explains another."""
    explained = sum(entry.group.count for entry in entries if entry.depth)
    if not explained:
        return ""
    further = [cause for entry in entries for cause in entry.others]
    roots = [entry for entry in entries if entry.depth == 0 and _explains(entry, further)]
    findings = counted(sum(entry.group.count for entry in entries), "finding")
    verb = "explains" if len(roots) == 1 else "explain"
    return f"{findings}, {counted(len(roots), 'cause')} {verb} {explained} of them"


def _explains(entry: Entry, further: Iterable[Cause]) -> bool:
    """Return whether another entry is below this one, or names it as a further cause."""
    return bool(entry.leads_to) or any(
        cause.code == entry.group.first.code
        and (not cause.hosts or not set(cause.hosts).isdisjoint(entry.group.hosts))
        for cause in further
    )


def causes(further: Iterable[Cause], run: Run) -> str:
    """Join further causes, each with its title, and with its hosts where they tell it apart."""
    texts = []
    for cause in further:
        text = titled([cause.code], run)
        if cause.hosts:
            text += f" ({host_names.join(cause.hosts)})"
        texts.append(text)
    return "; ".join(texts)


def titled(codes: Iterable[str], run: Run) -> str:
    """Join codes, each with its title."""
    return "; ".join(f"{code} {run.titles.get(code, '')}".rstrip() for code in codes)
