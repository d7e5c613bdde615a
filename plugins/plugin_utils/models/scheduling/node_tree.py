# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scheduler's node tree replayed.

Which nodes its list holds, which it lost, which it holds twice. Pure.

The scheduler keeps the nodes by zone and takes one of each zone in turn. It remembers in two
cursors where it stopped: which zone is next, and how far it came in each. Up to 1.18.6 they were
not set back before a list was made: what joined in between moves the start of the list, and as the
list has as many places as there are nodes, some come twice and others not at all. Up to 1.17 every
round made a new list, from 1.18.0 on only one after nodes came or went, so that a node stays lost
(upstream #91601; #93355 and #93387 set the cursors back).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

# By the release that brought each: next() per node looked at; a list every round; a list when nodes
# came or went; the same with the cursors set back.
ALGORITHMS = EACH_NODE, EACH_ROUND, KEPT, FIXED = ("1.16", "1.17", "1.18", "fixed")
MAX_STEPS = 5_000_000
_VERSION = re.compile(
    r"v?(?P<major>[0-9]{1,3})\.(?P<minor>[0-9]{1,4})\.(?P<patch>[0-9]{1,5})"
    r"(?:-(?P<stage>alpha|beta|rc)\.(?P<number>[0-9]{1,4}))?(?P<vendor>[-+].*)?"
)


class HistoryError(ValueError):
    """A history that cannot have been, with the place of the event."""


@dataclass(frozen=True)
class Replay:
    """What the last round saw. nodes: those of the tree then; snapshot: the list that it was given.

    Rounds: how many there were.
    """

    snapshot: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    rounds: int = 0

    @property
    def lost(self) -> tuple[str, ...]:
        """Nodes that the list does not hold, in the order of the tree."""
        held = set(self.snapshot)
        return tuple(name for name in self.nodes if name not in held)

    @property
    def doubled(self) -> tuple[str, ...]:
        """Nodes that the list holds more than once."""
        seen: set[str] = set()
        return tuple(
            dict.fromkeys(name for name in self.snapshot if name in seen or seen.add(name))
        )


def algorithm(version: Any) -> str | None:
    """Which algorithm a scheduler of this version has; None where nobody can tell.

    Builds of vendors may have the cure, or lack it.
    """
    found = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if found is None or found["major"] != "1":
        return None
    minor, patch, stage = int(found["minor"]), int(found["patch"]), found["stage"]
    if minor >= 20 or (minor == 19 and (patch or not stage)) or (minor == 18 and patch >= 8):
        return FIXED  # whoever builds on it has the cure
    if found["vendor"]:
        return None
    if minor == 19:
        return KEPT if stage != "rc" or int(found["number"]) <= 2 else FIXED
    if stage or minor < 14 or (minor == 18 and patch == 7):  # 1.18.7 was never published
        return None
    return KEPT if minor == 18 else EACH_ROUND if minor == 17 else EACH_NODE


def defect(version: Any) -> bool | None:
    """Whether a scheduler of this version loses nodes for good; None where nobody can tell.

    Up to 1.17 the next round finds them again.
    """
    found = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if found is not None and found["major"] == "1" and int(found["minor"]) <= 17:
        return False  # a vendor's too: nobody carried the faulty list back
    which = algorithm(version)
    return None if which is None else which == KEPT


@dataclass
class _Zone:
    """The nodes of a zone and how many of them the current sweep has taken."""

    nodes: list[str] = field(default_factory=list)
    taken: int = 0


@dataclass
class Tree:
    """The tree with its cursors, as upstream's nodeTree."""

    zones: dict[str, _Zone] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    place: int = 0
    zone_of: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, zone: str) -> None:
        """A node joins: at the end of its zone, which is the last one if it is new."""
        if zone not in self.zones:
            self.zones[zone] = _Zone()
            self.order.append(zone)
        self.zones[zone].nodes.append(name)
        self.zone_of[name] = zone

    def remove(self, name: str) -> None:
        """A node goes. The cursors stay where they are, also that of its zone."""
        zone = self.zone_of.pop(name)
        self.zones[zone].nodes.remove(name)
        if not self.zones[zone].nodes:
            del self.zones[zone]
            self.order.remove(zone)

    def reset(self) -> None:
        """The cursors set back."""
        self.place = 0
        for zone in self.zones.values():
            zone.taken = 0

    def next(self) -> str:
        """The node that is next; the cursors are set back once no zone has any left."""
        exhausted = 0
        while True:
            self.place = 0 if self.place >= len(self.order) else self.place
            zone = self.zones[self.order[self.place]]
            self.place += 1
            if zone.taken < len(zone.nodes):
                zone.taken += 1
                return zone.nodes[zone.taken - 1]
            exhausted += 1
            if exhausted >= len(self.order):
                self.reset()

    def names(self) -> tuple[str, ...]:
        """Every node, zone by zone."""
        return tuple(name for zone in self.order for name in self.zones[zone].nodes)


def replay(events: Iterable[Mapping[str, Any]], which: str) -> Replay:
    """The list that the last round of scheduling was given, after these events in their order.

    An event is {add: name, zone: key}, {remove: name}, {move: name, zone: key} (a change of
    labels), or {round: how often}, with looked: how many nodes a round of 1.16 or older looked at,
    which are all where it is not said. Raises HistoryError.
    """
    if which not in ALGORITHMS:
        raise HistoryError(f"the algorithm must be one of {', '.join(ALGORITHMS)}")
    if isinstance(events, (str, bytes, Mapping)) or not isinstance(events, Iterable):
        raise HistoryError("the history must be a list of events")
    tree, seen, steps = Tree(), Replay(), 0
    for place, event in enumerate(events):
        kind = _kind(event, place)
        if kind == "round":
            times, looked = (
                _count(event, "round", place),
                (_count(event, "looked", place) if event.get("looked") is not None else None),
            )
            steps += len(tree.zone_of) * (times if which in (EACH_NODE, EACH_ROUND) else 1)
            if steps > MAX_STEPS:
                raise HistoryError(f"event {place}: too many rounds to replay")
            seen = _rounds(tree, seen, which, times, looked)
        else:
            _change(tree, kind, event, place)
    return seen


def _kind(event: Any, place: int) -> str:
    kinds = (
        [kind for kind in ("add", "remove", "move", "round") if kind in event]
        if isinstance(event, Mapping)
        else []
    )
    if len(kinds) != 1:
        raise HistoryError(f"event {place} must have one of add, remove, move and round")
    return kinds[0]


def _count(event: Mapping[str, Any], name: str, place: int) -> int:
    value = event[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise HistoryError(f"event {place}: {name} must be a number of 0 or more")
    return value


def _change(tree: Tree, kind: str, event: Mapping[str, Any], place: int) -> None:
    name, zone = event[kind], event.get("zone", "")
    if not isinstance(name, str) or not name or not isinstance(zone, str):
        raise HistoryError(f"event {place}: names of nodes and zones are texts")
    if (name in tree.zone_of) is (kind == "add"):
        raise HistoryError(
            f"event {place}: {name} is {'there already' if kind == 'add' else 'not there'}"
        )
    if kind == "move" and tree.zone_of[name] == zone:
        return  # upstream does nothing then
    if kind != "add":
        tree.remove(name)
    if kind != "remove":
        tree.add(name, zone)


def _rounds(tree: Tree, seen: Replay, which: str, times: int, looked: int | None) -> Replay:
    """These rounds: each makes the list that its algorithm makes.

    One that keeps its list makes none while the same nodes are there.
    """
    count = len(tree.zone_of)
    if not times:
        return seen
    if which in (KEPT, FIXED):
        if set(seen.nodes) == tree.zone_of.keys():
            return Replay(seen.snapshot, seen.nodes, seen.rounds + times)
        if which == FIXED:
            tree.reset()
        return Replay(
            tuple(tree.next() for _one in range(count)), tree.names(), seen.rounds + times
        )
    reach = count if looked is None or which == EACH_ROUND else min(count, looked)
    found: tuple[str, ...] = ()
    for _round in range(times):
        found = tuple(tree.next() for _one in range(reach))
    return Replay(found, tree.names(), seen.rounds + times)
