# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Order in which a scheduler learned of its nodes, and what its list lacks then. Pure.

Its log has the whole order, at level 2 and from its beginning. Without that, only the order of the
nodes that joined after its start is known: the list that it asked for at its start has no order.
Those are replayed in every order that the zones may have, with and without a round of scheduling
after each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial
from typing import Any

from ...parsers import json_values
from . import node_tree

MAX_ZONES, MAX_STEPS = 5, 1_000_000


@dataclass(frozen=True)
class Joined:
    """Nodes that are lost after some joined.

    impossible: whether no order loses as many as are known
    unnamed: of each zone the number of those in unknown order, None where it differs
    named: the others by name
    """

    unnamed: Mapping[str, int] | None
    named: frozenset[str] = frozenset()
    impossible: bool = False


def from_log(events: Any, names: Iterable[str]) -> node_tree.Replay | None:
    """Return the list by a log of 1.18; None where it does not show how these nodes came."""
    history = _history(events)
    if history is None:
        return None
    try:
        # a round more, so that what came last is in it
        final = node_tree.replay([*history, {"round": 1}], node_tree.KEPT)
        result = node_tree.replay(history, node_tree.KEPT)
    except node_tree.HistoryError:
        return None
    if not result.rounds or not set(final.nodes) == set(result.nodes) == set(names):
        return None
    return result


def _history(events: Any) -> list[dict[str, Any]] | None:
    history = []
    for event in json_values.items(events):
        parts = json_values.texts(event)
        if len(parts) != 3 or len(event) != 3:
            return None
        history.append(_event(*parts))
    return history


def _event(kind: str, name: str, zone: str) -> dict[str, Any]:
    if kind == "round":
        return {"round": 1}
    if kind == "add":
        return {"add": name, "zone": zone}
    return {kind: name}


def from_joins(
    first: Mapping[str, str],
    later: Sequence[tuple[str, str]],
    known_losses: Mapping[str, int] | None = None,
) -> Joined:
    """Return what the list lacks when nodes joined after its start.

    first: the nodes at its start with their zones; later: (node, zone) in the order of joining;
    known_losses: of each zone how many of the first are lost for certain, which rules out what is
    less.
    """
    places, gaps = Counter(first.values()), max(0, len(later) - 1)
    if not later or not 0 < len(places) <= MAX_ZONES:
        return Joined(None)
    steps = (len(first) + len(later)) * len(later) * factorial(len(places)) * 2 ** min(gaps, 30)
    if steps > MAX_STEPS:
        return Joined(None)
    results = {
        _lost(order, places, later, (*rounds, True))
        for order in permutations(sorted(places))
        for rounds in product((True, False), repeat=gaps)
    }
    minimum = Counter(known_losses or {})
    results = {result for result in results if minimum <= Counter(dict(result[0]))}
    if len(results) != 1:
        return Joined(None, impossible=not results)
    unnamed, named = results.pop()
    return Joined(dict(unnamed), named)


def _lost(
    order: Sequence[str],
    places: Mapping[str, int],
    later: Sequence[tuple[str, str]],
    rounds: Sequence[bool],
) -> tuple[tuple[tuple[str, int], ...], frozenset[str]]:
    """Return ((zone, number of its first nodes), …) and the names of later ones that are lost.

    rounds: after which of these a pod was scheduled.
    """
    zone_of = {f"\0{zone}\0{number}": zone for zone in order for number in range(places[zone])}
    events: list[dict[str, Any]] = [{"add": name, "zone": zone} for name, zone in zone_of.items()]
    events.append({"round": 1})
    for (name, zone), has_round in zip(later, rounds, strict=True):
        events.append({"add": name, "zone": zone})
        if has_round:
            events.append({"round": 1})
    lost = node_tree.replay(events, node_tree.KEPT).lost
    first = Counter(zone_of[name] for name in lost if name in zone_of)
    return tuple(sorted(first.items())), frozenset(name for name in lost if name not in zone_of)
