# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every link between pages leads to a file, and to a heading that it has."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+?) *$", re.MULTILINE)
ELSEWHERE = ("http://", "https://", "mailto:")


def pages() -> list[str]:
    command = ["git", "ls-files", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = listed.stdout.split() or [path.as_posix() for path in ROOT.glob("docs/**/*.md")]
    return [name for name in found if not name.startswith("tests/fixtures/")]


@functools.cache
def anchors(page: Path) -> set[str]:
    """Return what a link to a part of a page can name, as GitHub makes it of headings."""
    text = page.read_text(encoding="utf-8")
    headings = HEADING.findall(re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE))
    found: set[str] = set()
    for heading in headings:
        name = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-")
        same = [f"{name}-{number}" for number in range(1, 9)]
        found.add(next(each for each in (name, *same) if each not in found))
    return found


def broken(page: Path, text: str) -> list[str]:
    found = []
    for target in LINK.findall(BLOCK.sub("", text)):
        if target.startswith(ELSEWHERE):
            continue
        name, _hash, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        if not there.exists() or (
            anchor and there.suffix == ".md" and anchor not in anchors(there)
        ):
            found.append(target)
    return found


@pytest.mark.parametrize("name", pages())
def test_every_link_of_a_page_leads_somewhere(name):
    assert broken(ROOT / name, (ROOT / name).read_text(encoding="utf-8")) == []


def test_a_link_to_no_file_or_no_heading_is_named():
    page = ROOT / "docs" / "faq.md"
    text = "[a](nothing.md) [b](installers.md#nothing) [c](installers.md#tested) `[d](x.md)`"
    assert broken(page, text) == ["nothing.md", "installers.md#nothing"]
