# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scheduler's node tree replayed: which nodes its list holds, lost, or holds twice. Pure.

The scheduler keeps the nodes by zone and takes one of each zone in turn. It remembers in two
cursors where it stopped: which zone is next, and how far it came in each. Up to 1.18.6 nothing set
the cursors back before a list was made. What joined in between moves the start of the list, and as
the list has as many places as there are nodes, some come twice and others not at all. Up to 1.17
every round made a new list. From 1.18.0 on a new list is made only after nodes came or went, so
that a node stays lost (upstream #91601; #93355 and #93387 set the cursors back).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...parsers import json_values

# By the release that brought each: next() per node looked at; a list every round; a list when nodes
# came or went; the same with the cursors set back.
ALGORITHMS = EACH_NODE, EACH_ROUND, KEPT, FIXED = ("1.16", "1.17", "1.18", "fixed")
MAX_STEPS = 5_000_000
_UNPUBLISHED = (18, 7)  # 1.18.7
_VERSION = re.compile(
    r"v?(?P<major>[0-9]{1,3})\.(?P<minor>[0-9]{1,4})\.(?P<patch>[0-9]{1,5})"
    r"(?:-(?P<stage>alpha|beta|rc)\.(?P<number>[0-9]{1,4}))?(?P<vendor>[-+].*)?"
)


class HistoryError(ValueError):
    """A history that is impossible, with the place of the event."""


@dataclass(frozen=True)
class Replay:
    """Result of the last round.

    nodes: those of the tree
    snapshot: the list
    rounds: the number of rounds
    """

    snapshot: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    rounds: int = 0

    @property
    def lost(self) -> tuple[str, ...]:
        """Return the nodes that the list lacks, in the order of the tree."""
        listed = set(self.snapshot)
        return tuple(name for name in self.nodes if name not in listed)

    @property
    def doubled(self) -> tuple[str, ...]:
        """Return the nodes that the list has more than once, in the order of the repetitions."""
        seen_names: set[str] = set()
        repeated: dict[str, None] = {}
        for name in self.snapshot:
            if name in seen_names:
                repeated[name] = None
            seen_names.add(name)
        return tuple(repeated)


@dataclass(frozen=True)
class _Version:
    """Parsed version of Kubernetes 1."""

    minor: int
    patch: int
    stage: str | None
    number: int
    vendor: str | None


def _version(version: Any) -> _Version | None:
    match = _VERSION.fullmatch(json_values.text(version))
    if match is None or match["major"] != "1":
        return None
    return _Version(
        int(match["minor"]),
        int(match["patch"]),
        match["stage"],
        int(match["number"] or 0),
        match["vendor"],
    )


def algorithm(version: Any) -> str | None:
    """Return the algorithm of a scheduler of this version; None where it is not known.

    Builds of vendors may have the fix, or lack it.
    """
    parsed = _version(version)
    if parsed is None:
        return None
    if _is_fixed(parsed):
        return FIXED  # builds of vendors on top of it have the fix
    if parsed.vendor:
        return None
    if parsed.minor == 19:
        return _algorithm_of_prerelease(parsed)
    if parsed.stage or parsed.minor < 14 or (parsed.minor, parsed.patch) == _UNPUBLISHED:
        return None
    return {18: KEPT, 17: EACH_ROUND}.get(parsed.minor, EACH_NODE)


def _is_fixed(version: _Version) -> bool:
    """Return whether this version, and what vendors build on it, has the fix."""
    if version.minor == 19:
        return version.patch > 0 or not version.stage
    if version.minor == 18:
        return version.patch >= 8
    return version.minor >= 20


def defect(version: Any) -> bool | None:
    """Return whether a scheduler of this version loses nodes for good; None if not known.

    Up to 1.17 the next round finds them again.
    """
    parsed = _version(version)
    if parsed is not None and parsed.minor <= 17:
        return False  # a vendor's too: the faulty list was backported nowhere
    variant = algorithm(version)
    if variant is None:
        return None
    return variant == KEPT


@dataclass
class _Zone:
    """Nodes of a zone and how many of them the current sweep has taken."""

    nodes: list[str] = field(default_factory=list)
    taken: int = 0


@dataclass
class Tree:
    """Tree of nodes with its cursors, as upstream's nodeTree."""

    zones: dict[str, _Zone] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    place: int = 0
    zone_of: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, zone: str) -> None:
        """Add a node at the end of its zone, which is the last one if it is new."""
        if zone not in self.zones:
            self.zones[zone] = _Zone()
            self.order.append(zone)
        self.zones[zone].nodes.append(name)
        self.zone_of[name] = zone

    def remove(self, name: str) -> None:
        """Remove a node. The cursors stay where they are, also that of its zone."""
        zone = self.zone_of.pop(name)
        self.zones[zone].nodes.remove(name)
        if not self.zones[zone].nodes:
            del self.zones[zone]
            self.order.remove(zone)

    def reset(self) -> None:
        """Reset the cursors."""
        self.place = 0
        for zone in self.zones.values():
            zone.taken = 0

    def next(self) -> str:
        """Return the next node; the cursors are reset once all zones are exhausted."""
        exhausted = 0
        while True:
            if self.place >= len(self.order):
                self.place = 0
            zone = self.zones[self.order[self.place]]
            self.place += 1
            if zone.taken < len(zone.nodes):
                zone.taken += 1
                return zone.nodes[zone.taken - 1]
            exhausted += 1
            if exhausted >= len(self.order):
                self.reset()

    def names(self) -> tuple[str, ...]:
        """Return every node, zone by zone."""
        return tuple(name for zone in self.order for name in self.zones[zone].nodes)


def replay(events: Iterable[Mapping[str, Any]], variant: str) -> Replay:
    """Return the list of the last round of scheduling, after these events in their order.

    An event is {add: name, zone: key}, {remove: name}, {move: name, zone: key} (a change of
    labels), or {round: how often}, with looked: how many nodes a round of 1.16 or older inspected,
    which are all by default. Raises HistoryError.
    """
    if variant not in ALGORITHMS:
        raise HistoryError(f"the algorithm must be one of {', '.join(ALGORITHMS)}")
    if isinstance(events, (str, bytes, Mapping)) or not isinstance(events, Iterable):
        raise HistoryError("the history must be a list of events")
    tree, result, steps = Tree(), Replay(), 0
    for place, event in enumerate(events):
        kind = _kind(event, place)
        if kind != "round":
            _change(tree, kind, event, place)
            continue
        times, looked = _count(event, "round", place), None
        if event.get("looked") is not None:
            looked = _count(event, "looked", place)
        steps += _steps(tree, variant, times)
        if steps > MAX_STEPS:
            raise HistoryError(f"event {place}: too many rounds to replay")
        result = _rounds(tree, result, variant, times, looked)
    return result


def _steps(tree: Tree, variant: str, times: int) -> int:
    if variant in (EACH_NODE, EACH_ROUND):
        return len(tree.zone_of) * times
    return len(tree.zone_of)


def _kind(event: Any, place: int) -> str:
    kinds = []
    if isinstance(event, Mapping):
        kinds = [kind for kind in ("add", "remove", "move", "round") if kind in event]
    if len(kinds) != 1:
        raise HistoryError(f"event {place} must have one of add, remove, move and round")
    return kinds[0]


def _count(event: Mapping[str, Any], name: str, place: int) -> int:
    value = event[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise HistoryError(f"event {place}: {name} must be a number of 0 or more")
    return value


def _algorithm_of_prerelease(version: _Version) -> str:
    """Return the algorithm of a 1.19 that is not fixed as a release: rc.3 has the fix."""
    if version.stage == "rc" and version.number > 2:
        return FIXED
    return KEPT


def _change(tree: Tree, kind: str, event: Mapping[str, Any], place: int) -> None:
    name, zone = event[kind], event.get("zone", "")
    if not isinstance(name, str) or not name or not isinstance(zone, str):
        raise HistoryError(f"event {place}: names of nodes and zones are texts")
    _require_presence(tree, kind, name, place)
    if kind == "move" and tree.zone_of[name] == zone:
        return  # upstream does nothing then
    if kind != "add":
        tree.remove(name)
    if kind != "remove":
        tree.add(name, zone)


def _require_presence(tree: Tree, kind: str, name: str, place: int) -> None:
    if kind == "add" and name in tree.zone_of:
        raise HistoryError(f"event {place}: {name} is there already")
    if kind != "add" and name not in tree.zone_of:
        raise HistoryError(f"event {place}: {name} is not there")


def _rounds(tree: Tree, former: Replay, variant: str, times: int, looked: int | None) -> Replay:
    """Run these rounds: each makes the list that its algorithm makes.

    An algorithm that keeps its list makes none while the same nodes are there.
    """
    count, rounds = len(tree.zone_of), former.rounds + times
    if not times:
        return former
    if variant in (KEPT, FIXED):
        if set(former.nodes) == tree.zone_of.keys():
            return Replay(former.snapshot, former.nodes, rounds)
        if variant == FIXED:
            tree.reset()
        return Replay(tuple(tree.next() for _node in range(count)), tree.names(), rounds)
    if looked is not None and variant == EACH_NODE:
        count = min(count, looked)
    snapshot: tuple[str, ...] = ()
    for _round in range(times):
        snapshot = tuple(tree.next() for _node in range(count))
    return Replay(snapshot, tree.names(), rounds)
