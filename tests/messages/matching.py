# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which form a text has: a model of how the collection could read it with the whole table.

A text is taken apart from outside: of the forms that match all of it the one with the most letters
of its own counts, and the error in that one is read next. The innermost form that is no wrapper
tells the class.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from tests.messages import tables
from tests.messages.tables import Row

DEPTH = 8
_VERB = re.compile(r"%[-+# 0]*\d*(?:\.\d+)?(?:\[\d+\])?([a-zA-Z])")
_VALUES = {"d": r"-?\d+", "q": r'"(?:[^"\\]|\\.)*"', "t": r"(?:true|false)"}
# Components whose errors stand in those of another.
_INSIDE = {"kubelet": ("library",), "kube-apiserver": ("library",), "kube-scheduler": ("library",)}


@dataclass(frozen=True)
class Form:
    """Form as a pattern.

    letters: how many letters and digits it has of its own
    inner: the group of the error that stands in it, 0 for none
    """

    row: Row
    pattern: re.Pattern[str]
    letters: int
    inner: int


@functools.cache
def forms(component: str) -> tuple[Form, ...]:
    """Return the forms of a component, those with the most letters first."""
    rows = [row for name in (component, *_INSIDE.get(component, ())) for row in tables.forms(name)]
    return tuple(sorted(map(_form, rows), key=lambda form: -form.letters))


def _form(row: Row) -> Form:
    parts, last, kinds = [], 0, []
    for verb in _VERB.finditer(row.form.replace("%%", "\0\0")):
        kinds.append(verb.group(1))
        parts += [_own(row.form[last : verb.start()]), f"({_VALUES.get(kinds[-1], '.+?')})"]
        last = verb.end()
    parts.append(_own(row.form[last:]))
    words = re.sub(r"[\W_]", "", _VERB.sub("", row.form))
    pattern = re.compile("".join(parts), re.DOTALL | re.IGNORECASE)
    return Form(row, pattern, len(words), _inner(kinds, row.nested))


def _own(text: str) -> str:
    return re.escape(text.replace("%%", "%"))


def _inner(kinds: list[str], nested: bool) -> int:
    """Return the group of the error: that of %w, else of the last %v or %s of a nested form."""
    groups = list(enumerate(kinds, 1))
    wrapped = [group for group, kind in groups if kind == "w"]
    plain = [group for group, kind in groups if kind in "vs" and nested]
    return next(iter(wrapped or plain[-1:]), 0)


def matching(text: str, component: str) -> Form | None:
    """Return the form that a whole text has, or None."""
    return next((form for form in forms(component) if form.pattern.fullmatch(text)), None)


def meaning(text: str, component: str) -> str:
    """Return the class of a text, "" where no form of the table has it."""
    found = ""
    for _level in range(DEPTH):
        text = text.strip()
        if text.startswith("[") and text.endswith("]") and matching(text, component) is None:
            text = text[1:-1]
        form = matching(text, component)
        if form is None:
            return found
        if form.row.meaning != "wrapper":
            found = form.row.meaning
        if not form.inner:
            return found
        match = form.pattern.fullmatch(text)
        text = match.group(form.inner) if match else ""
    return found
