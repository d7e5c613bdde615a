# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions that the start of a component runs through, by their names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from tests.messages.go_calls import calls
from tests.messages.go_source import Function, Source

# Names that nearly every type has: a call of one leads nowhere that could be told by its name.
COMMON = frozenset(
    (
        *("String", "Error", "Len", "Less", "Swap", "Name", "Close", "Lock", "Unlock", "Done"),
        *("Get", "List", "Set", "Add", "Delete", "Update", "Create", "Write", "Read", "Has"),
        *("Insert", "Equal", "Reset", "Info", "Infof", "Warn", "Warnf", "V", "Context", "Stop"),
    )
)


class Reach:
    """The functions of some sources, and which of them a start can come to."""

    def __init__(self, sources: Iterable[Source], cuts: Sequence[str]) -> None:
        self.sources = list(sources)
        self.cut = re.compile("|".join(cuts) or r"(?!)")
        self.methods: dict[str, list[tuple[Source, Function]]] = defaultdict(list)
        self.plain: dict[tuple[str, str], list[tuple[Source, Function]]] = defaultdict(list)
        for source in self.sources:
            folder = str(PurePosixPath(source.path).parent)
            for function in source.functions:
                if function.owner:
                    self.methods[function.name].append((source, function))
                else:
                    self.plain[folder, function.name].append((source, function))

    def from_roots(self, roots: Sequence[str]) -> set[tuple[str, Function]]:
        """Return (path, function) of all that these functions lead to."""
        root = re.compile("|".join(roots) or r"(?!)")
        waiting = [
            (source, function)
            for source in self.sources
            for function in source.functions
            if root.fullmatch(function.name) and not self.cut.fullmatch(function.name)
        ]
        seen: set[tuple[str, Function]] = set()
        while waiting:
            source, function = waiting.pop()
            if (source.path, function) in seen:
                continue
            seen.add((source.path, function))
            waiting += self._called(source, function)
        return seen

    def _called(self, source: Source, function: Function) -> Iterator[tuple[Source, Function]]:
        folder = str(PurePosixPath(source.path).parent)
        for call in calls(source.tokens, function.begin, function.end):
            if call.launched or self.cut.fullmatch(call.name):
                continue
            if not call.receiver:
                yield from self.plain.get((folder, call.name), ())
            elif call.receiver in source.imports:
                yield from self._of_package(source.imports[call.receiver], call.name)
            elif call.name not in COMMON:
                yield from self.methods.get(call.name, ())

    def _of_package(self, path: str, name: str) -> list[tuple[Source, Function]]:
        return self.plain.get((path, name), [])
