# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a component's command line and configuration a later release refuses. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..parsers import pflag, release_table
from ..parsers.release_table import API, FLAG, GATE, GROUP, LOCK, PLUGIN, Release
from .result import EvidenceRef

API_SERVER, KUBELET, SCHEDULER = "kube-apiserver", "kubelet", "kube-scheduler"
COMPONENTS = (API_SERVER, "kube-controller-manager", SCHEDULER, KUBELET)
GATES_FLAG = "feature-gates"
PLUGIN_FLAGS = ("enable-admission-plugins", "disable-admission-plugins", "admission-control")
GROUPS_FLAG = "runtime-config"
SHOWN = 200  # characters of a text

Place = tuple[str | None, int | None]
NOWHERE: Place = (None, None)


@dataclass(frozen=True)
class Refusal:
    """One setting that releases from one on refuse.

    since: the first release that refuses it
    name: the flag, feature gate, plugin, group or version
    value: what it is set to; of a locked gate the value that is refused
    path, line: where it stands; None on a command line
    """

    kind: str
    component: str
    name: str
    since: Release
    value: str = ""
    text: str = ""
    path: str | None = None
    line: int | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what it is, wherever it stands."""
        return self.kind, self.component, self.name

    def proof(self, host: str | None) -> EvidenceRef:
        """Return its place, for a report."""
        kind = "process"
        if self.path:
            kind = "file"
        return EvidenceRef(
            kind, host, path=self.path, line=self.line, object=self.component, text=self.text
        )


def of_words(component: str, words: Sequence[str], places: Sequence[Place] = ()) -> list[Refusal]:
    """Return what a later release refuses of a command line.

    places: file and line of each word
    """
    if component not in COMPONENTS:
        return []
    rows: list[Refusal] = []
    placed = zip(words, places or [NOWHERE] * len(words), strict=True)
    for index, (word, place) in enumerate(placed):
        if word.startswith("--") and len(word) > len("--"):
            rows += _Use(component, word, _value(words, index), *place).refusals()
    return rows


def _value(words: Sequence[str], index: int) -> str:
    """Return the value of a flag: what follows its equals sign, else the next word."""
    _name, equals, value = words[index].partition("=")
    if equals:
        return value
    following = next(iter(words[index + 1 : index + 2]), "-")
    if following.startswith("-"):
        return ""
    return following


class _Use(NamedTuple):
    """A flag on a command line, with its value and its place."""

    component: str
    word: str
    value: str
    path: str | None
    line: int | None

    @property
    def text(self) -> str:
        text = self.word
        if "=" not in text and self.value:
            text = f"{text} {self.value}"
        return text[:SHOWN]

    def refusals(self) -> Iterator[Refusal]:
        """Yield what a later release refuses of it: its name, and what stands in its value."""
        flag = pflag.normalise(self.word[2:].partition("=")[0])
        last = release_table.last_release(FLAG, self.component, flag)
        if last is not None:
            yield self._refusal(FLAG, flag, after(last))
        if flag == GATES_FLAG:
            yield from self._gates()
        elif self.component == API_SERVER and flag in PLUGIN_FLAGS:
            yield from self._named(PLUGIN, self.value.split(","))
        elif self.component == API_SERVER and flag == GROUPS_FLAG:
            yield from self._groups()

    def _gates(self) -> Iterator[Refusal]:
        for pair in self.value.split(","):
            name, _equals, value = pair.partition("=")
            for kind, since in of_gate(name.strip(), value.strip()):
                yield self._refusal(kind, name.strip(), since, value.strip())

    def _groups(self) -> Iterator[Refusal]:
        """Yield the groups that a release lacks, and the versions that a group then lacks."""
        for pair in self.value.split(","):
            group, _slash, rest = pair.partition("=")[0].strip().partition("/")
            names = (group, f"{group}/{rest.partition('/')[0]}")
            rows = [
                (after(last), name)
                for name, last in ((name, self._last(name)) for name in names)
                if last is not None
            ]
            for since, name in sorted(rows)[:1]:
                yield self._refusal(GROUP, name, since)

    def _last(self, group: str) -> Release | None:
        return release_table.last_release(GROUP, self.component, group)

    def _named(self, kind: str, names: Iterable[str]) -> Iterator[Refusal]:
        for name in names:
            last = release_table.last_release(kind, self.component, name.strip())
            if last is not None:
                yield self._refusal(kind, name.strip(), after(last))

    def _refusal(self, kind: str, name: str, since: Release, value: str = "") -> Refusal:
        return Refusal(
            kind, self.component, name, since, value, self.text, path=self.path, line=self.line
        )


def of_gate(name: str, value: str) -> Iterator[tuple[str, Release]]:
    """Yield how releases refuse a feature gate with this value, and the first that does."""
    last = release_table.last_release(GATE, "", name)
    if last is not None:
        yield GATE, after(last)
    lock = release_table.locked(name)
    if lock is not None and pflag.parse_bool(value) is (not lock[1]):
        yield LOCK, lock[0]


def of_version(component: str, version: str, text: str, place: Place) -> list[Refusal]:
    """Return whether a later release does not read a configuration of this version."""
    last = release_table.last_release(API, component, version)
    if last is None:
        return []
    path, line = place
    return [Refusal(API, component, version, after(last), "", text[:SHOWN], path, line)]


def after(release: Release) -> Release:
    """Return the minor release that follows one."""
    return release[0], release[1] + 1
