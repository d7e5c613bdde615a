# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Class of each form: by hand where a line says so, else by the first rank that matches."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tests.messages.mine import folded
from tests.messages.tables import HERE, Row, applies, lines

CLASSES = frozenset(
    (
        *("configuration", "credential", "api", "cgroup", "device", "disk", "port", "kernel"),
        *("module", "runtime", "state_file", "dependency", "network", "resources"),
        *("programming_error", "wrapper"),
    )
)
_KEYS = (
    re.compile(r"\b([A-Za-z][\w.]*) \(--[\w-]+\)"),
    re.compile(r"(?<![\w-])--([a-z][\w-]+)"),
    re.compile(r"^invalid configuration: `?([a-z][A-Za-z]+[A-Z][\w.]*)"),
    re.compile(r"\b([a-z]+[A-Z]\w*(?:\.\w+)*)\b"),
    re.compile(r"`([A-Za-z]\w*)`"),
    re.compile(r"^'?([a-z]+(?:-[a-z]+)+)\b"),
    re.compile(r"\b([a-z]+(?:-[a-z]+){2,})\b"),
)


@dataclass(frozen=True)
class Rule:
    """Pattern of forms, and their class.

    rank: a lower one is asked first; those of one rank never disagree
    """

    rank: int
    meaning: str
    component: str
    place: re.Pattern[str] | None
    form: re.Pattern[str] | None

    def matches(self, row: Row) -> bool:
        """Return whether this rule says something about a form."""
        return (
            applies(self.component, row.component)
            and (self.place is None or self.place.search(row.place) is not None)
            and (self.form is None or self.form.search(row.form) is not None)
        )


@functools.cache
def rules() -> tuple[Rule, ...]:
    """Return the rules, first rank first."""
    found = [
        Rule(
            int(line["rank"]),
            line["class"],
            line["component"],
            _pattern(line["place"]),
            _pattern(line["form"]),
        )
        for line in lines(HERE / "rules.tsv")
    ]
    return tuple(sorted(found, key=lambda rule: rule.rank))


def _pattern(text: str) -> re.Pattern[str] | None:
    return re.compile(text) if text else None


@functools.cache
def by_hand() -> dict[tuple[str, str], str]:
    """Return the classes that were given by hand, by (component, folded form); * is any."""
    return {
        (component, folded(line["form"])): line["class"]
        for line in lines(HERE / "by_hand.tsv")
        for component in line["component"].split()
    }


def meanings(row: Row) -> set[str]:
    """Return the classes of a form: one, none without a rule, several where a rank disagrees."""
    name = folded(row.form)
    given = by_hand().get((row.component, name)) or by_hand().get(("*", name))
    if given:
        return {given}
    rank = None
    found: set[str] = set()
    for rule in rules():
        if rank is not None and rule.rank > rank:
            break
        if rule.matches(row):
            rank = rule.rank
            found.add(rule.meaning)
    return found


def classified(table: Iterable[Row]) -> list[Row]:
    """Return the rows with their classes and the keys that they name."""
    return [_classified(row) for row in table]


def _classified(row: Row) -> Row:
    found = meanings(row)
    meaning = next(iter(found)) if len(found) == 1 else ""
    key = row.key
    if meaning != "configuration":
        key = ""
    elif key in {"", "%v"}:
        key = _key(row.form)
    return replace(row, meaning=meaning, key=key)


@functools.cache
def _named_keys() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(line["form"]), line["key"]) for line in lines(HERE / "keys.tsv"))


def _key(form: str) -> str:
    """Return the key that a form names itself, else those that its words mean."""
    own = next((match.group(1) for match in (key.search(form) for key in _KEYS) if match), "")
    return own or next((key for words, key in _named_keys() if words.search(form)), "")
