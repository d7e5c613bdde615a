# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms of the texts with which components end at start, as their sources have them.

messages/COMPONENT.tsv has one form in a line: Go's format string, whether the text of another error
stands in it, the keys of a configuration that it names, and its class. `python3 -m tests.messages
product` writes these files.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("messages")
COLUMNS = ("form", "nested", "key", "class")
WRAPPER, DEFECT = "wrapper", "programming_error"
LIBRARY = "library"
COMPONENTS = frozenset(
    (
        *("kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"),
        *("containerd", "cri-o", "k3s", LIBRARY),
    )
)
# What runs within the program of k3s and RKE2, whose errors it logs with its own.
EMBEDDED = {
    "k3s": ("kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"),
}
# Components that parse their flags with the libraries of the table `library`.
WITH_LIBRARY = frozenset(
    ("kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
)
INDEXED = 3  # letters of a form's beginning by which it is looked up

_VERB = re.compile(r"%%|\"%[+#]?[sv]\"|%[-+# 0]*\d*(?:\.\d+)?(?:\[\d+\])?[a-zA-Z]")
_QUOTE = r'"(?:[^"\\]|\\.)*"'
# A word stands for a quoted part too: releases differ in their quotes. A list is ["a" "b"].
_TYPED = {
    "d": r"-?\d+",
    "q": rf"(?:{_QUOTE}|\[{_QUOTE}(?: {_QUOTE})*\]|[^\s\"]+)",
    "t": r"(?:true|false)",
}
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

Span = tuple[int, int]


@dataclass(frozen=True)
class Segment:
    """Part of a form between two verbs that stand for anything.

    source: its pattern; empty where it is a plain text
    plain: its texts in lower case
    """

    plain: tuple[str, ...]
    source: str = ""

    def find(self, text: Text, begin: int, first: bool, last: bool) -> tuple[Span, ...] | None:
        """Return the place of this segment, and those of its verbs, or None.

        first: whether it is at the beginning; last: whether it reaches to the end
        """
        if not self.source:
            return self._find_text(text.lower, begin, first, last)
        if any(part not in text.lower for part in self.plain):
            return None
        pattern = _compiled(self.source, last)
        match = pattern.search(text.whole, begin)
        if first:
            match = pattern.match(text.whole, begin)
        if match is None:
            return None
        return tuple(match.span(group) for group in range(pattern.groups + 1))

    def _find_text(
        self, lower: str, begin: int, first: bool, last: bool
    ) -> tuple[Span, ...] | None:
        part = self.plain[0]
        place = lower.find(part, begin)
        if first:
            place = 0 if lower.startswith(part) else -1
        if last:
            end = len(lower) - len(part)
            fits = lower.endswith(part) and end >= begin and (not first or end == 0)
            place = end if fits else -1
        if place < 0:
            return None
        return ((place, place + len(part)),)


@dataclass(frozen=True)
class Part:
    """Part of a form: a text, or the kind of a verb that stands for a number or a word."""

    text: str
    is_verb: bool = False


@dataclass(frozen=True)
class Text:
    """Text of a log line, and the same in lower case."""

    whole: str
    lower: str


@dataclass(frozen=True)
class Form:
    """Form of a text.

    keys: what it names of the configuration
    meaning: its class
    letters: how many letters and digits it has of its own
    inner: the number of the verb in which another error stands, else None
    """

    text: str
    keys: str
    meaning: str
    letters: int
    segments: tuple[Segment, ...]
    inner: int | None

    def spans(self, text: Text) -> tuple[Span, ...] | None:
        """Return the places of its verbs, where it is the form of the whole text, else None.

        A verb that stands for anything takes as little as possible.
        """
        places: list[Span] = []
        position, last = 0, len(self.segments) - 1
        for index, segment in enumerate(self.segments):
            begin = position + min(index, 1)
            match = segment.find(text, begin, index == 0, index == last)
            if match is None:
                return None
            if index:
                places.append((position, match[0][0]))
            places += match[1:]
            position = match[0][1]
        return tuple(places)


def text(whole: str) -> Text:
    """Return a text as forms are compared with it."""
    return Text(whole, lowered(whole))


def lowered(whole: str) -> str:
    """Return a text with its ASCII letters in lower case: each stays in its place."""
    return whole.translate(_LOWER)


@functools.cache
def _compiled(source: str, last: bool) -> re.Pattern[str]:
    end = r"\Z" if last else ""
    return re.compile(source + end, re.IGNORECASE)


@dataclass(frozen=True)
class Table:
    """Forms of one component, those with the most letters first.

    indexed: the places of those that begin with a text, by its first letters
    free: the places of the others
    """

    forms: tuple[Form, ...]
    indexed: dict[str, list[int]]
    free: list[int]

    def match(self, whole: Text) -> tuple[Form, tuple[Span, ...]] | None:
        """Return the form of a whole text and the places of its verbs, or None."""
        places = self.indexed.get(whole.lower[:INDEXED], [])
        for place in sorted((*places, *self.free)):
            spans = self.forms[place].spans(whole)
            if spans is not None:
                return self.forms[place], spans
        return None


def table(component: str) -> Table:
    """Return the forms of a component; none for one that has no table."""
    if component in COMPONENTS:
        return _table(component)
    return Table((), {}, [])


@functools.cache
def _table(component: str) -> Table:
    names = [component, *EMBEDDED.get(component, ())]
    if not WITH_LIBRARY.isdisjoint(names):
        names.append(LIBRARY)
    forms = sorted(
        (form for name in names for form in _read(FOLDER / f"{name}.tsv")),
        key=lambda form: -form.letters,
    )
    indexed: dict[str, list[int]] = {}
    free: list[int] = []
    for place, form in enumerate(forms):
        begin = form.segments[0]
        if begin.source or len(begin.plain[0]) < INDEXED:
            free.append(place)
        else:
            indexed.setdefault(begin.plain[0][:INDEXED], []).append(place)
    return Table(tuple(forms), indexed, free)


def _read(path: Path) -> list[Form]:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return [written for row in rows for written in _as_written(*row)]


def _as_written(words: str, nested: str, keys: str, meaning: str) -> Iterator[Form]:
    """Yield a form, and with its error where a logger writes that behind it."""
    yield form(words, nested == "yes", keys, meaning)
    if nested == "yes" and _VERB.search(words) is None:
        yield form(f"{words}: %v", True, keys, meaning)


def form(words: str, nested: bool, keys: str, meaning: str) -> Form:
    """Return a form by its format string."""
    kinds: list[str] = []
    segments: list[Segment] = []
    parts: list[Part] = []
    last = 0
    for verb in _VERB.finditer(words):
        parts.append(Part(words[last : verb.start()]))
        last = verb.end()
        if verb.group() == "%%":
            parts.append(Part("%"))
            continue
        kinds.append(_kind(verb.group()))
        if kinds[-1] in _TYPED:
            parts.append(Part(kinds[-1], is_verb=True))
            continue
        segments.append(_segment(parts))
        parts = []
    segments.append(_segment([*parts, Part(words[last:])]))
    letters = len(re.sub(r"[\W_]", "", _VERB.sub("", words)))
    return Form(words, keys, meaning, letters, tuple(segments), _inner(kinds, nested))


def _kind(verb: str) -> str:
    if verb.startswith('"'):
        return "q"
    return verb[-1]


def _segment(parts: Sequence[Part]) -> Segment:
    """Return the segment of these parts of a form."""
    plain, source = [""], ""
    for part in parts:
        if part.is_verb:
            source += f"({_TYPED[part.text]})"
            plain.append("")
        else:
            source += re.escape(part.text)
            plain[-1] += lowered(part.text)
    if len(plain) == 1:
        return Segment(tuple(plain))
    return Segment(tuple(filter(None, plain)), source)


def _inner(kinds: Sequence[str], nested: bool) -> int | None:
    """Return the verb of the error: %w, else the last %v or %s of a form that has one."""
    wrapped = [place for place, kind in enumerate(kinds) if kind == "w"]
    if wrapped:
        return wrapped[0]
    texts = [place for place, kind in enumerate(kinds) if kind in "vsq" and nested]
    unquoted = [place for place in texts if kinds[place] != "q"]
    return next(iter(unquoted[-1:] or texts[-1:]), None)
