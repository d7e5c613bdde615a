# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a text with which a component ends means, read by the whole table of its forms. Pure.

A text is taken apart from outside. Of the forms that match all of it the one with the most letters
of its own counts. The error in that one is read next, and so on. The innermost form that is more
than a prefix gives the class; an error of the kernel or of Go inside it (go_error) decides over
that.

An error never begins within a quoted part, unless it is all of that part: names that users chose
stand in quotes.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import go_error, message_table
from .message_table import Form, Span

LONGEST = 2048  # characters that are read
DEPTH = 8  # errors in one another
TAILS = 4  # colons behind which an error may begin whose prefix no table has
OWN_LETTERS = 12  # that a form has at least which is read behind such a prefix
PARTS = 8  # errors of one aggregate
JOINED = 3  # parts of an aggregate that one error with commas may have
CACHED = 1024
# Classes that tell what a file holds: where it cannot be read that is not known.
OF_CONTENTS = frozenset(("configuration", "state_file"))
# Classes that tell of another program: a file that is not there is no answer of it.
OF_OTHERS = frozenset(("port", "api", "network", "dependency", "runtime"))
_COLON = re.compile(r": ")
_MARKS = re.compile(r'["\[\]]|, ')
# Of the program around a component: component-base's run.go, and k3s.
_PREFIX = re.compile(r"^(?:command failed|kubelet exited): ")
_PLACEHOLDER = re.compile(r"%[a-z]")
_VAGUE = re.compile(
    r"(?:context deadline exceeded|context canceled|timed out|timeout|EOF|connection refused"
    r"|connection reset by peer|unavailable)[\s.\])}\"]*$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Reading:
    """Meaning of a text.

    meaning: its class
    key: the keys of a configuration that it names, divided by spaces, else empty
    text: the part of the text that tells it
    values: what stands in that part for the verbs of its form
    chain: the forms from outside in
    weak: whether it tells only that something did not answer, or not in time
    error: the error of the kernel or of Go that stands in it, else empty
    """

    meaning: str
    key: str
    text: str
    values: tuple[str, ...]
    chain: tuple[str, ...]
    weak: bool = False
    error: str = ""


@dataclass(frozen=True)
class Step:
    """Form of one error, with its text and its values."""

    form: Form
    text: str
    values: tuple[str, ...]


@functools.lru_cache(maxsize=CACHED)
def read(text: str, component: str) -> Reading | None:
    """Return the meaning of a component's text, or None where no class is known. Never raises."""
    text = _PREFIX.sub("", " ".join(text[:LONGEST].split()))
    steps = tuple(_steps(text, component, DEPTH))
    classed = [step for step in steps if step.form.meaning != message_table.WRAPPER]
    error = go_error.find(text, component)
    chain = tuple(step.form.text for step in steps)
    if not classed:
        error = error or go_error.of_file(text) or go_error.of_schema(text)
        return _by_error(error, _innermost(text, steps), (), chain)
    last = classed[-1]
    error = error or _of_file(text, last.form.meaning)
    if error is not None and error.meaning != last.form.meaning:
        return _by_error(error, last.text, last.values, chain)
    return _by_form(last, error, chain)


def _by_form(last: Step, error: go_error.GoError | None, chain: tuple[str, ...]) -> Reading:
    weak, words = is_vague(last.text), ""
    if error is not None:
        weak, words = error.weak, error.text
    return Reading(last.form.meaning, _key(last), last.text, last.values, chain, weak, words)


def _of_file(text: str, meaning: str) -> go_error.GoError | None:
    """Return the error of a file that decides over a class, or None."""
    if meaning in OF_CONTENTS:
        return go_error.denied(text)
    if meaning in OF_OTHERS:
        return go_error.of_file(text)
    return None


def is_vague(text: str) -> bool:
    """Return whether a text tells only that something did not answer, or not in time."""
    return bool(_VAGUE.search(go_error.unquoted(text[:LONGEST])))


def _by_error(
    error: go_error.GoError | None, text: str, values: tuple[str, ...], chain: tuple[str, ...]
) -> Reading | None:
    if error is None:
        return None
    return Reading(error.meaning, "", text, values, chain, error.weak, error.text)


def _innermost(text: str, steps: Sequence[Step]) -> str:
    """Return what stands in the last of the prefixes."""
    if not steps or steps[-1].form.inner is None:
        return text
    return steps[-1].values[steps[-1].form.inner] or text


def _key(step: Step) -> str:
    """Return the keys of a form, with its first values where its path has verbs."""
    values = iter(step.values)
    return _PLACEHOLDER.sub(lambda _verb: next(values, ""), step.form.keys)


def _steps(text: str, component: str, depth: int) -> Iterator[Step]:
    """Yield the errors of a text, from outside in."""
    while depth and text:
        depth -= 1
        text = text.strip()
        quoted = [match.span() for match in go_error.QUOTED.finditer(text)]
        match = _match(text, component, quoted)
        if match is None and text.startswith("[") and text.endswith("]"):
            yield from _of_aggregate(text[1:-1], component, depth)
            return
        if match is None:
            return
        form, begin, spans = match
        whole = text[begin:]
        yield Step(form, whole, tuple(_value(whole[span[0] : span[1]]) for span in spans))
        if form.inner is None:
            return
        text = _inner(text, (spans[form.inner][0] + begin, spans[form.inner][1] + begin), quoted)


def _match(
    text: str, component: str, quoted: Sequence[Span]
) -> tuple[Form, int, tuple[Span, ...]] | None:
    """Return (form, where it begins, places of its verbs), also behind a prefix without one."""
    table = message_table.table(component)
    for begin in (0, *_tails(text, quoted)):
        for whole in dict.fromkeys((text, text.rstrip(".! "))):
            match = table.match(message_table.text(whole[begin:]))
            if match is not None and (not begin or match[0].letters >= OWN_LETTERS):
                return match[0], begin, match[1]
    return None


def _tails(text: str, quoted: Sequence[Span]) -> Iterator[int]:
    """Yield where a text behind a colon begins."""
    places = (colon.end() for colon in _COLON.finditer(text))
    count = 0
    for place in places:
        if not _is_within(place, quoted):
            yield place
            count += 1
        if count == TAILS:
            return


def _is_within(place: int, quoted: Sequence[Span]) -> bool:
    """Return whether a place is within a quoted part."""
    index = bisect.bisect_right(quoted, (place, 0)) - 1
    return index >= 0 and quoted[index][0] < place < quoted[index][1]


def _inner(text: str, span: Span, quoted: Sequence[Span]) -> str:
    """Return the error at a place, or "" where that is within a quoted part."""
    if span in quoted:
        return _value(text[span[0] : span[1]])
    if _is_within(span[0], quoted):
        return ""
    return text[span[0] : span[1]]


def _value(text: str) -> str:
    """Return a value without its quotes."""
    if len(text) > 1 and text.startswith('"') and text.endswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _of_aggregate(text: str, component: str, depth: int) -> Iterator[Step]:
    """Yield the steps of the first error of an aggregate that tells a class."""
    parts = list(_parts(text))
    for first in range(len(parts)):
        steps: list[Step] = []
        for width in range(1, JOINED + 1):
            joined = ", ".join(parts[first : first + width])
            candidate = list(_steps(joined, component, min(depth, 2)))
            if _letters(candidate) > _letters(steps):
                steps = candidate
        if steps:
            yield from steps
            return


def _letters(steps: Sequence[Step]) -> int:
    """Return the letters of the innermost form with a class, 0 where there is none."""
    forms = [step.form for step in steps if step.form.meaning != message_table.WRAPPER]
    return forms[-1].letters if forms else 0


def _parts(text: str) -> Iterator[str]:
    """Yield the errors of an aggregate: commas within quotes and brackets divide none."""
    depth, begin, count = 0, 0, 0
    is_quoted = False
    for mark in _MARKS.finditer(text):
        sign = mark.group()
        if sign == '"':
            escapes = len(text[: mark.start()]) - len(text[: mark.start()].rstrip("\\"))
            is_quoted ^= escapes % 2 == 0
        elif is_quoted:
            continue
        elif sign in "[]":
            depth += 1 if sign == "[" else -1
        elif depth == 0:
            yield text[begin : mark.start()]
            begin, count = mark.end(), count + 1
            if count == PARTS:
                return
    yield text[begin:]
