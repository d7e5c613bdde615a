# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The trend over earlier runs, in plain text: a table of runs, then the findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone

from ...module_utils.shared.text import counted
from ..faults import CATALOGUE
from ..models.result import SEVERITIES, UNPROVEN, WAIVED
from ..run.trend import Cluster, Course, Row, Trend
from . import host_names, times
from .text_page import Page, Paint, plain

KEY_DIGITS = 8
HEAD = ("run", "what", "hosts", "critical", "warning", "unknown", "came", "gone")
NUMBERS = 6  # the last columns, aligned to the right
NO_CHANGE = "-"  # of a first run
ORDER = {state: index for index, state in enumerate((*SEVERITIES, WAIVED))}


def render(trend: Trend, width: int, paint: Paint = plain, now: datetime | None = None) -> str:
    """Return the trend of each cluster, ending with a newline."""
    page = Page(width, paint)
    now = now or datetime.now(timezone.utc)
    if not trend.clusters:
        page.line(f"No run in {trend.folder} has a report that judged a cluster.")
    for cluster in trend.clusters:
        page.gap()
        _cluster(page, cluster, now)
    if trend.older:
        page.gap()
        page.prose(f"{counted(trend.older, 'older run')} not read", indent=0)
    return page.text()


def _cluster(page: Page, cluster: Cluster, now: datetime) -> None:
    page.line(f"{_name(cluster)}: {counted(len(cluster.rows), 'run')}")
    page.gap()
    _table(page, [HEAD, *(_cells(row) for row in cluster.rows)])
    newest = cluster.rows[-1].started
    courses = cluster.courses.values()
    _findings(
        page,
        "there now",
        [item for item in courses if item.gone is None and item.last == newest],
        lambda item: times.readable(f"since {item.since}", now),
    )
    _findings(
        page,
        "not judged by the newest run, which had them before",
        [item for item in courses if item.gone is None and item.last != newest],
        lambda item: times.readable(f"last found at {item.last}", now),
    )
    _findings(
        page,
        "gone",
        [item for item in courses if item.gone is not None],
        lambda item: _between(item, now),
    )


def _name(cluster: Cluster) -> str:
    if cluster.key in (None, UNPROVEN):
        return "hosts of no proven cluster"
    # Where a name alone does not tell clusters apart, the name has the key.
    return cluster.name or f"cluster {str(cluster.key)[:KEY_DIGITS]}"


def _cells(row: Row) -> tuple[str, ...]:
    kind = row.symptom or row.mode
    came = gone = NO_CHANGE
    if row.changes is not None:
        came, gone = str(row.changes[0]), str(row.changes[2])
    counts = (str(row.counts[name]) for name in ("critical", "warning", "unknown"))
    return (row.run_id, kind, f"{row.answered}/{row.hosts}", *counts, came, gone)


def _table(page: Page, rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[index]) for row in rows) for index in range(len(HEAD))]
    first_number = len(HEAD) - NUMBERS
    for row in rows:
        cells = [
            cell.rjust(widths[index]) if index >= first_number else cell.ljust(widths[index])
            for index, cell in enumerate(row)
        ]
        page.line("  " + "  ".join(cells).rstrip())


def _findings(page: Page, title: str, courses: list[Course], time: Callable[[Course], str]) -> None:
    """Write findings below a title; those that differ only in the host are one line."""
    if not courses:
        return
    page.gap()
    page.line(f"{title}:")
    for course, places, when in _groups(courses, time):
        item = course.finding
        label = item.state.upper()
        fault = CATALOGUE.get(item.code)
        text = fault.title if fault is not None else item.summary
        head = " ".join(part for part in (item.code, places, item.component) if part)
        page.prose(f" {head}: {text}; {when}", label=label, kind=item.state)


def _groups(
    courses: Iterable[Course], time: Callable[[Course], str]
) -> Iterator[tuple[Course, str, str]]:
    groups: dict[tuple[object, ...], list[Course]] = {}
    for item in sorted(courses, key=_order):
        finding = item.finding
        key = (finding.state, finding.code, finding.component, time(item))
        groups.setdefault(key, []).append(item)
    for items in groups.values():
        hosts = {host for item in items for host in _hosts(item)}
        yield items[0], host_names.counted(hosts), time(items[0])


def _hosts(item: Course) -> tuple[str, ...]:
    finding = item.finding
    if finding.node is None:
        return finding.everywhere
    return finding.everywhere or (finding.node,)


def _order(item: Course) -> tuple[int, str]:
    return ORDER.get(item.finding.state, len(ORDER)), item.finding.code


def _between(item: Course, now: datetime) -> str:
    period = times.readable(f"from {item.since} until {item.last}", None)
    return times.readable(f"{period}, not found at {item.gone}", now)
