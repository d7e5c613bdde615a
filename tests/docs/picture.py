# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/img/report.svg: the report of the bundled example as a terminal shows it.

The picture brings its own dark ground, so it reads the same on a light and on a dark page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape

from tests.docs import ROOT, readme

FILE = ROOT / "docs" / "img" / "report.svg"
TITLE = "The report of a cluster in which two components run without leader election"
COMMAND = "$ ansible-playbook kubemend.remediation.replay -e kubemend_evidence=…/two-leaders"
# By the last number of a colour's code.
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "35": "#d2a8ff", "36": "#79c0ff"}
GROUND, TEXT, FRAME = "#0d1117", "#e6edf3", "#6e7681"
COLUMN, ROW, SIZE, MARGIN = 7.8, 18, 13, 16
# Lines of one run of ansible-playbook, or of one controller.
LEFT_OUT = re.compile(r"run \d{8}T|explained in /")
CODE = re.compile(r"\x1b\[([0-9;]*)m")
SECONDS = re.compile(r" · \d+ s\b")
WIDEST = 100
# How the line of the hosts without a finding begins: it ends the findings.
WITHOUT_FINDING = ("healthy: ", "no finding (")
SPACES, KEPT = "  ", "\u00a0\u00a0"  # SVG makes one space of several
SPANS = Iterable[tuple[str, str]]  # colour, text


def page() -> str:
    """Return the picture of the report, whose findings end before the healthy hosts."""
    return drawn(shown(readme.printed()))


def shown(text: str) -> list[str]:
    """Return the lines of the picture: the head, the findings, and the end of a report."""
    lines = [line for line in text.splitlines() if not LEFT_OUT.match(CODE.sub("", line))]
    plain = [CODE.sub("", line) for line in lines]
    first = next(at for at, line in enumerate(plain) if line.startswith("kubemend replay"))
    last = next(at for at, line in enumerate(plain) if "; report: " in line)
    middle = next(at for at in range(first, last) if plain[at].startswith(WITHOUT_FINDING))
    ending = max(at for at in range(first, last) if not plain[at]) + 1
    end = re.sub("; report: .*", "; report: ~/.kubemend/runs/…", lines[last])
    head = [SECONDS.sub("", line) for line in lines[first:middle]]
    return [COMMAND, *head, "…", "", *lines[ending:last], end]


def drawn(lines: list[str]) -> str:
    """Return the picture of coloured lines."""
    width = round(WIDEST * COLUMN + 2 * MARGIN)
    height = len(lines) * ROW + 2 * MARGIN
    rows = [
        f'<text y="{MARGIN + (number + 1) * ROW - 5}">{"".join(_spans(line))}</text>'
        for number, line in enumerate(lines)
        if line
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
            f' viewBox="0 0 {width} {height}" role="img" fill="{TEXT}" font-size="{SIZE}"'
            " font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\">",
            f"<title>{escape(TITLE)}</title>",
            f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"'
            f' fill="{GROUND}" stroke="{FRAME}"/>',
            *rows,
            "</svg>",
            "",
        ]
    )


def _spans(line: str) -> Iterator[str]:
    """Yield each part of a line at its column: fonts differ in the width of a character."""
    column = 0
    for colour, text in parts(line):
        room = WIDEST - column
        if room <= 0:
            return
        piece = text if len(text) <= room else f"{text[: room - 1]}…"
        bare = piece.lstrip(" ")
        column += len(piece) - len(bare)
        if bare:
            fill = f' fill="{colour}"' if colour else ""
            content = escape(bare.replace(SPACES, KEPT))
            yield (
                f'<tspan x="{MARGIN + column * COLUMN:.1f}" textLength="{len(bare) * COLUMN:.1f}"'
                f' lengthAdjust="spacingAndGlyphs"{fill}>{content}</tspan>'
            )
        column += len(bare)


def parts(line: str) -> Iterator[tuple[str, str]]:
    """Yield each part of a line with its colour, if it has one."""
    pieces = CODE.split(line)
    colour = ""
    for text, code in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        if text:
            yield colour, text
        colour = COLOURS.get(code.rpartition(";")[2], "")
