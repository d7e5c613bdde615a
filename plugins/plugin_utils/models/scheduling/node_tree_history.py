# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order a scheduler learned of its nodes, as far as that is known, and what its list lacks
then. Pure.

Its log tells it all, at level 2 and from its beginning. Else only those are in order that joined
after it started: the list that it asked for at its start has none. Those are replayed in every
order that the zones may have, with and without a round of scheduling after each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial
from typing import Any

from . import node_tree

MAX_ZONES, MAX_STEPS = 5, 1_000_000


@dataclass(frozen=True)
class Joined:
    """What is lost after these joined.

    Of each zone how many of those whose order is not known, and by name those whose is. None where
    it differs.

    impossible: no order loses as many as are known to be lost.
    """

    unnamed: Mapping[str, int] | None
    named: frozenset[str] = frozenset()
    impossible: bool = False


def from_log(events: Any, names: Iterable[str]) -> node_tree.Replay | None:
    """The list as a log of 1.18 tells it.

    None where it does not tell how exactly these nodes came.
    """
    history: list[dict[str, Any]] = []
    for one in events if isinstance(events, (list, tuple)) else ():
        if (
            not isinstance(one, (list, tuple))
            or len(one) != 3
            or not all(isinstance(part, str) for part in one)
        ):
            return None
        history.append(
            {"round": 1}
            if one[0] == "round"
            else {one[0]: one[1], "zone": one[2]}
            if one[0] == "add"
            else {one[0]: one[1]}
        )
    try:
        # a round more, so that what came last is in it
        if set(node_tree.replay([*history, {"round": 1}], node_tree.KEPT).nodes) != set(names):
            return None
        found = node_tree.replay(history, node_tree.KEPT)
    except node_tree.HistoryError:
        return None
    return found if found.rounds and set(found.nodes) == set(names) else None


def from_joins(
    first: Mapping[str, str],
    later: Sequence[tuple[str, str]],
    known: Mapping[str, int] | None = None,
) -> Joined:
    """What the list lacks when these had been there at its start, node.

    Zone, and those joined later, in this order.

    known: of each zone how many of the first are lost for certain, which rules out what is less.
    """
    places, gaps = Counter(first.values()), max(0, len(later) - 1)
    if (
        not later
        or not 0 < len(places) <= MAX_ZONES
        or (len(first) + len(later)) * len(later) * factorial(len(places)) * 2 ** min(gaps, 30)
        > MAX_STEPS
    ):
        return Joined(None)
    seen = {
        _lost(order, places, later, (*rounds, True))
        for order in permutations(sorted(places))
        for rounds in product((True, False), repeat=gaps)
    }
    seen = {
        one
        for one in seen
        if all(dict(one[0]).get(zone, 0) >= count for zone, count in (known or {}).items())
    }
    if len(seen) != 1:
        return Joined(None, impossible=not seen)
    unnamed, named = seen.pop()
    return Joined(dict(unnamed), named)


def _lost(
    order: Sequence[str],
    places: Mapping[str, int],
    later: Sequence[tuple[str, str]],
    rounds: Sequence[bool],
) -> tuple[tuple[tuple[str, int], ...], frozenset[str]]:
    """((zone, how many of its first nodes), …), and the names of later ones. rounds.

    After which of these a pod was scheduled.
    """
    zone_of = {f"\0{zone}\0{number}": zone for zone in order for number in range(places[zone])}
    events: list[dict[str, Any]] = [
        {"add": name, "zone": zone} for name, zone in zone_of.items()
    ] + [{"round": 1}]
    for (name, zone), each in zip(later, rounds):
        events += [{"add": name, "zone": zone}, *([{"round": 1}] if each else [])]
    found = node_tree.replay(events, node_tree.KEPT).lost
    return tuple(
        sorted(Counter(zone_of[name] for name in found if name in zone_of).items())
    ), frozenset(name for name in found if name not in zone_of)
