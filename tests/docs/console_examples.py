# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pages show of a terminal, against what a terminal shows.

Commands after a $, below each what it prints.

A line that is … stands for any number of lines, an … within a line for anything.
"""

from __future__ import annotations

import re
from pathlib import Path

ANY = "…"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[tuple[str, list[str]]]:
    """Return each command of a page's console blocks with the lines below it, in their order."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
    return found


def differs(shown: list[str], printed: str) -> str:
    """Return the first shown line that was not printed where it should be, or ""."""
    lines, at, loose = [line.rstrip() for line in printed.splitlines()], 0, False
    for chunk in _chunks(shown):
        if chunk is None:
            loose = True
            continue
        places = (
            range(at, len(lines) - len(chunk) + 1)
            if loose
            else range(at, min(at, len(lines) - len(chunk)) + 1)
        )
        place = next(
            (
                one
                for one in places
                if all(_fits(want, have) for want, have in zip(chunk, lines[one:], strict=False))
            ),
            None,
        )
        if place is None:
            return "\n".join(chunk)
        at, loose = place + len(chunk), False
    return "" if loose or at == len(lines) else f"after the last line shown: {lines[at]}"


def _chunks(shown: list[str]):
    """Yield lists of lines that follow each other; None for any number of lines."""
    chunk: list[str] = []
    for line in shown:
        if line.strip() == ANY:
            if chunk:
                yield chunk
            yield None
            chunk = []
        else:
            chunk.append(line.rstrip())
    if chunk:
        yield chunk


def _fits(want: str, have: str) -> bool:
    return re.fullmatch(".*".join(re.escape(part) for part in want.split(ANY)), have) is not None
