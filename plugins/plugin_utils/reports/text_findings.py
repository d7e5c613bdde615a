# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings in the text report: each group with its proof and its fix, then one line for each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ...module_utils.shared.text import counted
from . import conclusion, groups, headline, host_names, phrases, times
from .groups import Entry, Group
from .run_info import Run
from .text_page import Page, clip, columns, escape

# Lines of evidence; all of it is in the other formats.
PROOFS = {"critical": 6}
PROOFS_OTHERS = 3
PROOFS_BELOW = 2  # of a consequence
LABEL = "  evidence: "
NAMES_TRIED = (host_names.ITEMS_SHOWN, 4, 2)  # in one line: the title is more than names
MIN_ROOM = 30
STEP = 4  # columns by which a consequence stands below its cause


def head(group: Group, run: Run, shown: int = host_names.ITEMS_SHOWN) -> str:
    """Return code, place (so many names and ranges) and title of a group."""
    first = group.first
    names = host_names.counted(group.hosts, shown)
    place = " ".join(part for part in (first.code, names, first.component) if part)
    return f"{place}: {run.titles.get(first.code) or first.summary}"


def write(page: Page, entries: Sequence[Entry], run: Run) -> None:
    """Write every group with its proof and its fix, a consequence indented below its cause."""
    now = headline.now(run)
    for entry in entries:
        if entry.depth == 0:
            page.gap()
        _entry(page, entry, run, now)


def _entry(page: Page, entry: Entry, run: Run, now: datetime | None) -> None:
    group, indent = entry.group, STEP * entry.depth
    first = group.first
    page.prose(f" {head(group, run)}", label=phrases.label(first), kind=first.state, indent=indent)
    if first.waived is not None:
        page.prose(phrases.waiver(first.waived), indent=indent + 2)
    if run.titles.get(first.code) and first.summary:
        page.prose(times.readable(groups.summary_of(group), now), indent=indent + 2)
    since = groups.since_of(group, run.started)
    if since:
        page.prose(times.readable(since, now), indent=indent + 2)
    if entry.others:
        label = "also because of: " if entry.depth else "because of: "
        page.prose(headline.causes(entry.others, run), label=label, indent=indent + 2)
    _proofs(page, entry, indent)
    _fix(page, group, run, indent)
    differing = groups.differences(group)
    if differing:
        page.prose(f"the other {differing} differ: {run.path('report.json')}", indent=indent + 2)
    if entry.leads_to:
        page.line(" " * (indent + 2) + "leads to:")


def _proofs(page: Page, entry: Entry, indent: int) -> None:
    group = entry.group
    limit = PROOFS.get(group.first.severity, PROOFS_OTHERS)
    if entry.depth:
        limit = PROOFS_BELOW
    lines = phrases.proof_lines(group.first, named=len(group.hosts) > 1)
    label = LABEL
    for line in lines[:limit]:
        page.line(" " * indent + label + line)
        label = " " * len(LABEL)
    more = []
    if len(lines) > limit:
        more.append(f"+{counted(len(lines) - limit, 'more line')}")
    if len(group.hosts) > 1:
        other = " with other evidence" if group.other_evidence else ""
        more.append(f"+{counted(len(group.hosts) - 1, 'more host')}{other}")
    if more and (lines or group.other_evidence):
        margin = len(LABEL) if lines else 2
        page.prose(f"({', '.join(more)}, all in report.json)", indent=indent + margin)


def _fix(page: Page, group: Group, run: Run, indent: int) -> None:
    first = group.first
    if not first.remedy and not first.command:
        return
    label = f"{conclusion.fix_label(first, run.plan)}: "
    page.prose(groups.remedy_of(group), label=label, kind="good", indent=indent + 2)
    if first.command:
        page.line(" " * (indent + len(LABEL)) + first.command)


def write_list(page: Page, entries: Sequence[Entry], run: Run) -> None:
    """Write one line for each group, cut to the width: a terminal shows its end."""
    for entry in entries:
        first = entry.group.first
        label = " " * (2 * entry.depth) + phrases.label(first)
        room = max(page.width - len(label), MIN_ROOM)
        texts = (f" {head(entry.group, run, shown)}" for shown in (*NAMES_TRIED, 1))
        fitting = (text for text in texts if columns(escape(text)) <= room)
        text = next(fitting, "") or clip(f" {head(entry.group, run, 1)}", room)
        page.line(text, label=label, kind=first.state)
