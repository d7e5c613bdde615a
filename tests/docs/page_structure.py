# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the structure of a Chinese page with that of its English one, section by section.

A section is a heading and what stands below it, up to the next heading of any level.
"""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs import chinese

HEADING = re.compile(r"(#+) (.*)")
ITEM = re.compile(r"\s*(?:-|\d+[.]) ")
# The line that leads to the same page in the other language.
SWITCH = re.compile(r"\[(?:English|中文)\]\([^)]*\)")
HTML_COMMENT = re.compile(r"<!--.*-->")
# A comment of a shell, which is translated.
COMMENT = re.compile(r"\s+# .*")
# What a translation keeps: codes of faults, and commands, options and files as code.
NAME = re.compile(r"`[^`\n]+`|\bKM\d{3}\b")


@dataclass
class Section:
    """A heading, and what a translation of its text keeps."""

    level: int
    heading: str
    code: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)
    links: Counter[str] = field(default_factory=Counter)

    @property
    def parts(self) -> dict[str, object]:
        """Return each part that must be equal in both languages."""
        text = "\n".join(self.prose)
        return {
            "level of its heading": self.level,
            "code blocks": tuple(self.code),
            "rows of its tables": tuple(self.rows),
            "items of its lists": sum(bool(ITEM.match(line)) for line in self.prose),
            "paragraphs": len([part for part in re.split(r"\n\s*\n", text) if part.strip()]),
            "links": _counted(self.links),
            "names": _counted(Counter(NAME.findall(chinese.LINK.sub(r"\1)", text)))),
        }


def _counted(counter: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counter.items()))


def sections(text: str, page: str) -> list[Section]:
    """Return the sections of a page; its links name files by their paths in the checkout."""
    found = [Section(0, "the title")]
    block: list[str] | None = None
    for line in text.splitlines():
        heading = HEADING.fullmatch(line)
        if line.startswith("```"):
            found[-1].code += [] if block is None else ["\n".join(block)]
            block = [line] if block is None else None
        elif block is not None:
            block.append(COMMENT.sub("", line))
        elif heading:
            found.append(Section(len(heading[1]), heading[2]))
        elif not SWITCH.fullmatch(line):
            found[-1].prose.append(HTML_COMMENT.sub("", line))
    for section in found:
        section.rows = list(_rows(section.prose))
        section.links = Counter(_links("\n".join(section.prose), page))
    return found


def _rows(lines: list[str]) -> Iterator[int]:
    """Yield the number of rows of each table."""
    count = 0
    for line in [*lines, ""]:
        if line.startswith("|"):
            count += 1
        elif count:
            yield count
            count = 0


def _links(text: str, page: str) -> Iterator[str]:
    """Yield the target of each link; that of a translated page without its anchor."""
    translated = set(map(chinese.counterpart, chinese.english_pages()))
    for _before, target, _after in chinese.LINK.findall(text):
        path, mark, anchor = target.partition("#")
        if "://" not in path:
            path = Path(os.path.normpath(Path(page).parent / path)).as_posix()
        yield path if path in translated else f"{path}{mark}{anchor}"


def differences(page: str, english: str, translation: str) -> list[str]:
    """Return a sentence for each section of an English page and its Chinese one that differ."""
    other = chinese.counterpart(page)
    # With the links that the Chinese page needs, both sides name the same files.
    ours = sections(chinese.relocated(english, page), other)
    theirs = sections(translation, other)
    matcher = difflib.SequenceMatcher(
        a=[repr(section.parts) for section in ours],
        b=[repr(section.parts) for section in theirs],
        autojunk=False,
    )
    found = []
    for tag, start, end, begin, stop in matcher.get_opcodes():
        if tag != "equal":
            found += _group(page, ours[start:end], theirs[begin:stop])
    return found


def _group(page: str, ours: list[Section], theirs: list[Section]) -> Iterator[str]:
    """Yield the sentences for sections in one place, of which none is equal to its opposite."""
    other = chinese.counterpart(page)
    for section, opposite in zip(ours, theirs, strict=False):
        names = [name for name in section.parts if section.parts[name] != opposite.parts[name]]
        details = "; ".join(_detail(name, section, opposite) for name in names)
        yield (
            f'{other}: update "{opposite.heading}" after "{section.heading}" of {page}, or the'
            f" other way round: {details}"
        )
    for section in ours[len(theirs) :]:
        yield f'{other}: add the heading "{section.heading}" of {page}, with its text'
    for opposite in theirs[len(ours) :]:
        yield f'{other}: remove the heading "{opposite.heading}", or add it to {page}'


def _detail(name: str, section: Section, opposite: Section) -> str:
    """Return how one part of two sections differs."""
    ours, theirs = section.parts[name], opposite.parts[name]
    if isinstance(ours, int):
        return f"{name}: {ours} in English, {theirs} in Chinese"
    english, translation = set(ours), set(theirs)  # type: ignore[call-overload]
    return (
        f"{name}: only in English {sorted(english - translation)}, only in Chinese"
        f" {sorted(translation - english)}"
    )
