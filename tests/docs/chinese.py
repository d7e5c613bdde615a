# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Chinese pages: which they are, and the Chinese of every generated text.

chinese.tsv has one text a line, English before the tab. What is in braces is filled in.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.docs import ROOT, readme, symptoms
from tests.docs.language import Language

PHRASES = ROOT / "tests" / "docs" / "chinese.tsv"
FOLDER = "docs/zh-CN"
# The English pages that are translated by hand; the README has generated blocks.
WRITTEN = ("README.md", "docs/quickstart.md", "docs/faq.md", "docs/glossary.md")
LINK = re.compile(r"(?<!!)(\[[^\]\n]+\]\()([^)\s]+)(\))")


def english_pages() -> list[str]:
    """List the English pages that have a Chinese one, by their paths in the checkout."""
    symptoms = sorted((ROOT / "docs" / "symptoms").glob("*.md"))
    return [*WRITTEN, *(page.relative_to(ROOT).as_posix() for page in symptoms)]


def counterpart(page: str) -> str:
    """Return the path of the Chinese page of an English one."""
    if page.startswith("docs/"):
        return f"{FOLDER}/{page.removeprefix('docs/')}"
    return page.replace(".md", ".zh-CN.md")


def switch(page: str) -> str:
    """Return the line below the title of a Chinese page that leads to the English page."""
    return f"[English]({os.path.relpath(page, Path(counterpart(page)).parent)})"


def relocated(text: str, page: str) -> str:
    """Return the text of an English page with links as its Chinese page needs them."""
    translated = set(english_pages())
    start = Path(counterpart(page)).parent

    def link(match: re.Match) -> str:
        path, mark, anchor = match[2].partition("#")
        if "://" in path or not path:
            return match[0]
        target = Path(os.path.normpath(Path(page).parent / path)).as_posix()
        if target in translated:
            target = counterpart(target)
        return f"{match[1]}{os.path.relpath(target, start)}{mark}{anchor}{match[3]}"

    return LINK.sub(link, text)


class Chinese(Language):
    """The texts of chinese.tsv; a text that it lacks stays English and is remembered."""

    comma = semicolon = "、"

    def __init__(self, phrases: dict[str, str]):
        self.phrases = phrases
        self.spoken: dict[str, None] = {}

    def say(self, text: str) -> str:
        self.spoken[text] = None
        return self.phrases.get(text, text)

    def within(self, title: str) -> str:
        return self.say(title)

    def problems(self) -> list[str]:
        """Return a line for each text without Chinese, and for each that no page has."""
        name = PHRASES.relative_to(ROOT)
        missing = [text for text in self.spoken if text not in self.phrases]
        unused = [text for text in self.phrases if text not in self.spoken]
        return [
            *(f"{name} lacks the Chinese of: {text}" for text in missing),
            *(f"{name} has a text that no page has, remove or adapt it: {text}" for text in unused),
        ]


def read() -> Chinese:
    """Read chinese.tsv."""
    lines = PHRASES.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return Chinese(dict(rows))


def pages(catalogue, all_symptoms, repaired, chinese: Chinese) -> dict[Path, str]:
    """Return every Chinese page that is generated, or has generated blocks, with its text."""
    found = {}
    for symptom in all_symptoms.values():
        english = f"docs/symptoms/{symptom.name}.md"
        text = symptoms.page(symptom, catalogue, repaired, chinese)
        title, rest = relocated(text, english).split("\n", 1)
        found[ROOT / counterpart(english)] = f"{title}\n\n{switch(english)}\n{rest}"
    blocks = readme.blocks(all_symptoms, chinese)
    texts = {name: relocated(text, "README.md") for name, text in blocks.items()}
    page = ROOT / counterpart("README.md")
    found[page] = readme.page(page, texts)
    return found
