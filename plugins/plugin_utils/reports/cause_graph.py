# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The causes that were found, as a drawing: boxes in columns, a cause left of what it leads to.

Places are computed here, so that the page needs no script and no style of its own for them.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .groups import Entry

BOX_WIDTH, BOX_HEIGHT = 260, 62
COLUMN, ROW = 320, 76
TITLE_LENGTH, TITLE_LINES = 34, 2
ARROW = "m-7,-4 l7,4 l-7,4"
BOXES = 40  # a drawing with more is no help


@dataclass(frozen=True)
class Box:
    """One fault of the drawing."""

    code: str
    title: tuple[str, ...]  # its lines
    severity: str
    hosts: int
    left: int
    top: int
    target: str


@dataclass(frozen=True)
class Drawing:
    """Boxes, and a path from each cause to each of its consequences."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    paths: tuple[str, ...]


def draw(
    entries: Sequence[Entry], titles: Mapping[str, str], targets: Mapping[str, str]
) -> Drawing | None:
    """Return the drawing of all faults that cause one or have a cause; None without any."""
    edges = _edges(entries)
    columns = _columns(edges)
    if not columns or len(columns) > BOXES:
        return None
    boxes = _boxes([entry for entry in entries if entry.group.first.code in columns], columns)
    boxes = {
        code: replace(box, title=_lines(titles.get(code, "")), target=targets.get(code, ""))
        for code, box in boxes.items()
    }
    return Drawing(
        max(box.left for box in boxes.values()) + BOX_WIDTH,
        max(box.top for box in boxes.values()) + BOX_HEIGHT,
        tuple(boxes.values()),
        tuple(_path(boxes[cause], boxes[effect]) for cause, effect in edges),
    )


def _boxes(entries: Sequence[Entry], columns: Mapping[str, int]) -> dict[str, Box]:
    """Return a box for each fault, below those of its column that come before it."""
    severities: dict[str, str] = {}
    hosts: dict[str, set[str]] = {}
    for entry in entries:
        code = entry.group.first.code
        severities.setdefault(code, entry.group.first.state)
        hosts.setdefault(code, set()).update(entry.group.hosts)
    rows = Counter[int]()
    boxes = {}
    for code, severity in severities.items():
        column = columns[code]
        boxes[code] = Box(
            code, (), severity, len(hosts[code]), column * COLUMN, rows[column] * ROW, ""
        )
        rows[column] += 1
    return boxes


def _edges(entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """Return (cause, consequence) of the faults that were found."""
    codes = {entry.group.first.code for entry in entries}
    edges = set()
    for entry in entries:
        finding = entry.group.first
        causes = codes.intersection(finding.because) - {finding.code}
        edges |= {(cause, finding.code) for cause in causes}
    return sorted(edges)


def _columns(edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return how many causes lie before each fault; a circle ends after as many rounds."""
    columns = {code: 0 for edge in edges for code in edge}
    for _round in columns:
        for cause, effect in edges:
            columns[effect] = min(max(columns[effect], columns[cause] + 1), len(columns) - 1)
    used = sorted(set(columns.values()))
    return {code: used.index(column) for code, column in columns.items()}


def _lines(title: str) -> tuple[str, ...]:
    """Return as many lines for each title, so that no text changes the elements of the page."""
    lines = textwrap.wrap(title, TITLE_LENGTH, max_lines=TITLE_LINES, placeholder="…")
    return (*lines, *[""] * (TITLE_LINES - len(lines)))


def _path(cause: Box, effect: Box) -> str:
    """Return the line from the right side of a cause to the left side of its consequence."""
    start, top = cause.left + BOX_WIDTH, cause.top + BOX_HEIGHT // 2
    end, bottom = effect.left, effect.top + BOX_HEIGHT // 2
    middle = (start + end) // 2
    return f"M{start},{top} C{middle},{top} {middle},{bottom} {end},{bottom} {ARROW}"
