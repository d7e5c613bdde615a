# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scheduler's node tree, replayed.

The incident, each algorithm, and random histories against another formulation of the same.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from itertools import zip_longest

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.scheduling import (
    node_tree,
)

ALGORITHMS = node_tree.ALGORITHMS
HistoryError = node_tree.HistoryError
algorithm = node_tree.algorithm
defect = node_tree.defect
replay = node_tree.replay

HISTORIES = 20000
MASTERS = [{"add": f"ss-stg-ma-0{number}", "zone": "200002"} for number in (1, 2, 3)]
WORKER = {"add": "ss-stg-test-01", "zone": "200004"}
ROUND = {"round": 1}


def test_the_incident():
    """Its own list: after one round over the masters a worker of another zone joins."""
    found = replay([*MASTERS, ROUND, WORKER, ROUND], "1.18")
    assert found.snapshot == ("ss-stg-test-01", "ss-stg-ma-01", "ss-stg-test-01", "ss-stg-ma-02")
    assert (found.lost, found.doubled, found.rounds) == (("ss-stg-ma-03",), ("ss-stg-test-01",), 2)


@pytest.mark.parametrize(
    ("which", "rounds", "lost"),
    [
        ("1.18", 1, ["ss-stg-ma-03"]),
        ("1.18", 50, ["ss-stg-ma-03"]),  # for good
        ("1.17", 1, ["ss-stg-ma-03"]),
        ("1.17", 2, []),
        ("1.17", 5, []),  # the next round has it
        ("1.16", 1, ["ss-stg-ma-03"]),
        ("1.16", 2, []),
        ("fixed", 1, []),
        ("fixed", 50, []),
    ],
)
def test_how_long_it_stays_lost(which, rounds, lost):
    found = replay([*MASTERS, ROUND, WORKER, {"round": rounds}], which)
    assert (list(found.lost), found.rounds) == (lost, rounds + 1)


@pytest.mark.parametrize("which", ALGORITHMS)
@pytest.mark.parametrize(
    "history",
    [
        [*MASTERS, WORKER, ROUND],  # a scheduler that is started anew
        [*MASTERS, ROUND, {"add": "m4", "zone": "200002"}, ROUND],  # one zone
        [ROUND],
        [],
        MASTERS,
        [*MASTERS, ROUND, *({"remove": one["add"]} for one in MASTERS), ROUND],
    ],
)
def test_histories_that_lose_nothing(which, history):
    assert not replay(history, which).lost


def test_a_node_that_changed_its_zone_makes_no_new_list():
    """Upstream removes and adds it in the tree; the list stays until nodes come or go."""
    history = [*MASTERS, ROUND, {"move": "ss-stg-ma-01", "zone": "200004"}, ROUND]
    assert replay(history, "1.18").snapshot == replay([*MASTERS, ROUND], "1.18").snapshot
    # the new zone's turn, then all are exhausted and it begins anew: by hand
    assert replay(history, "1.17").snapshot == ("ss-stg-ma-01", "ss-stg-ma-02", "ss-stg-ma-01")


def test_a_node_that_came_back_under_its_name_makes_no_new_list():
    gone_and_back = [
        *MASTERS,
        ROUND,
        {"remove": "ss-stg-ma-01"},
        {"add": "ss-stg-ma-01", "zone": "200004"},
        ROUND,
    ]
    assert replay(gone_and_back, "1.18").snapshot == replay([*MASTERS, ROUND], "1.18").snapshot


def test_rounds_of_old_schedulers_that_looked_at_some_nodes():
    """1.16 and older asked the tree for each node that they looked at."""
    assert replay([*MASTERS, WORKER, {"round": 1, "looked": 3}], "1.16").snapshot == (
        "ss-stg-ma-01",
        "ss-stg-test-01",
        "ss-stg-ma-02",
    )
    assert replay([*MASTERS, WORKER, {"round": 1, "looked": 3}, ROUND], "1.16").snapshot == (
        "ss-stg-ma-03",
        "ss-stg-ma-01",
        "ss-stg-test-01",
        "ss-stg-ma-02",
    )
    assert len(replay([*MASTERS, WORKER, {"round": 1, "looked": 3}], "1.17").snapshot) == 4


class Sweeps:
    """Another formulation: no next(), but the rest of the running sweep, and then whole sweeps.

    Each sweep is given as columns of the zones.
    """

    def __init__(self):
        self.zones, self.taken, self.start = {}, Counter(), 0

    def change(self, event):
        names = {name: zone for zone, listed in self.zones.items() for name in listed}
        if "add" not in event:
            name = event.get("remove", event.get("move"))
            zone = names[name]
            self.zones[zone] = [one for one in self.zones[zone] if one != name]
            if not self.zones[zone]:
                del self.zones[zone], self.taken[zone]
        if "remove" not in event:
            self.zones.setdefault(event["zone"], []).append(event.get("add", event.get("move")))

    def columns(self, turned, after):
        rows = [[(name, zone) for name in self.zones[zone][after[zone] :]] for zone in turned]
        return [one for column in zip_longest(*rows) for one in column if one]

    def take(self, count):
        """Return the next names: the rest of the sweep in the zones' order, then new sweeps."""
        zones = list(self.zones)
        at = self.start if self.start < len(zones) else 0
        rest, found = self.columns(zones[at:] + zones[:at], self.taken), []
        while count:
            part = rest[:count]
            count -= len(part)
            found += [name for name, _zone in part]
            self.taken.update(zone for _name, zone in part)
            self.start = zones.index(part[-1][1]) + 1 if part else self.start
            if count:
                self.taken, rest = Counter(), self.columns(zones, Counter())
        return tuple(found)

    def rounds(self, which, last, known, times):
        now = {name for listed in self.zones.values() for name in listed}
        if which in ("1.18", "fixed"):
            if now == known:
                return last, now
            if which == "fixed":
                self.taken, self.start = Counter(), 0
            return self.take(len(now)), now
        for _one in range(times):
            last = self.take(len(now))
        return last, now


def history_of(rng):
    """Return a random history: nodes of a few zones that come, go, move, and rounds between."""
    zones, there, gone, events = [f"z{number}" for number in range(rng.randint(1, 4))], [], [], []
    for number in range(rng.randint(1, 14)):
        kind = rng.choices(("add", "remove", "move", "round"), (5, 1.5, 0.7, 3))[0]
        if kind == "round":
            events.append({"round": rng.randint(1, 3)})
        elif kind == "add" or not there:
            name = gone.pop() if gone and rng.random() < 0.3 else f"n{number}"
            there.append(name)
            events.append({"add": name, "zone": rng.choice(zones)})
        else:
            name = rng.choice(there)
            if kind == "remove":
                there.remove(name)
                gone.append(name)
                events.append({"remove": name})
            else:
                events.append({"move": name, "zone": rng.choice(zones)})
    return [*events, ROUND]


def test_random_histories_against_the_other_formulation():
    """Every algorithm gives the same list as the other formulation, in each round of each history.

    The list of a corrected algorithm holds every node once.
    """
    rng, struck = random.Random(93355), 0
    for _history in range(HISTORIES):
        events = history_of(rng)
        for which in ALGORITHMS:
            other, last, known, zone_of = Sweeps(), (), set(), {}
            for event in events:
                if "round" in event:
                    last, known = other.rounds(which, last, known, event["round"])
                elif "move" not in event or zone_of[event["move"]] != event["zone"]:
                    other.change(event)
                zone_of.update(
                    {event[kind]: event["zone"] for kind in ("add", "move") if kind in event}
                )
            found = replay(events, which)
            assert found.snapshot == last, (which, events)
            assert set(found.lost) == known - set(last)
            assert len(found.snapshot) == len(known)
            struck += which == "1.18" and bool(found.lost)
            assert which != "fixed" or (not found.lost and not found.doubled), events
    assert struck > HISTORIES // 20  # else the histories would show nothing


def test_closed_form_of_what_joins_after_a_complete_list():
    """The k nodes that joined come first, then the whole order without its last k.

    Lost is what of those is not new, twice what is new and not of those.
    """
    rng = random.Random(91601)
    for _one in range(HISTORIES // 10):
        first = [
            {"add": f"a{number}", "zone": f"z{rng.randint(0, 3)}"}
            for number in range(rng.randint(1, 12))
        ]
        later = [
            {"add": f"b{number}", "zone": f"z{rng.randint(0, 5)}"}
            for number in range(rng.randint(1, 6))
        ]
        found, new = (
            replay([*first, ROUND, *later, ROUND], "1.18"),
            {event["add"] for event in later},
        )
        order = replay([*first, *later, ROUND], "fixed").snapshot
        kept = order[: len(order) - len(new)]
        assert set(found.snapshot[: len(new)]) == new
        assert found.snapshot[len(new) :] == kept
        assert (set(found.lost), set(found.doubled)) == (
            set(order) - set(kept) - new,
            new & set(kept),
        )


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([{"add": "a"}, {"add": "a"}], "event 1: a is there already"),
        ([{"remove": "a"}], "event 0: a is not there"),
        ([{"move": "a", "zone": "b"}], "not there"),
        ([{}], "event 0 must have one of"),
        ([{"add": "a", "remove": "b"}], "must have one of"),
        (["round"], "must have one of"),
        ("round", "must be a list"),
        ([{"round": -1}], "must be a number"),
        ([{"round": True}], "must be a number"),
        ([{"round": 1, "looked": "b"}], "looked must be a number"),
        ([{"add": 5}], "are texts"),
        ([{"add": ""}], "are texts"),
        ([{"add": "a", "zone": 200002}], "are texts"),
        ({"round": 1}, "must be a list"),
        (None, "must be a list"),
        ([{"add": "a"}, {"round": 10**9}], "too many rounds"),
    ],
)
def test_histories_that_cannot_have_been(events, words):
    with pytest.raises(HistoryError, match=words):
        replay(events, "1.17")


@pytest.mark.parametrize(
    ("version", "which", "bad"),
    [
        ("v1.14.10", "1.16", False),
        ("v1.16.15", "1.16", False),
        ("v1.17.0", "1.17", False),
        ("v1.17.17", "1.17", False),
        ("v1.18.0", "1.18", True),
        ("v1.18.4", "1.18", True),
        ("1.18.6", "1.18", True),
        ("v1.18.7", None, None),
        ("v1.18.8", "fixed", False),
        ("v1.18.20", "fixed", False),
        ("v1.19.0-alpha.3", "1.18", True),
        ("v1.19.0-rc.2", "1.18", True),
        ("v1.19.0-rc.3", "fixed", False),
        ("v1.19.0", "fixed", False),
        ("v1.36.3", "fixed", False),
        ("v1.37.0-alpha.1", "fixed", False),
        ("v1.18.4-tke.5", None, None),
        ("v1.18.6-gke.3504", None, None),
        ("v1.18.0+k3s1", None, None),
        ("v1.18.9-eks-d1db3c", "fixed", False),
        ("v1.30.1+rke2r1", "fixed", False),
        ("v1.16.15-eks-ad4801", None, False),
        ("v1.17.9-gke.600", None, False),
        ("v1.18.0-beta.1", None, None),
        ("v1.18", None, None),
        ("v1.9.6", None, False),
        ("v2.0.0", None, None),
        ("", None, None),
        (None, None, None),
        ("v1.18.4\n", None, None),
    ],
)
def test_versions(version, which, bad):
    assert (algorithm(version), defect(version)) == (which, bad)


def test_5000_nodes_in_100_zones_are_replayed_in_less_than_a_second():
    """Every node joins in another order than by zone, a hundredth leaves, a tenth joins later.

    The time is the processor's, which other processes do not change.
    """
    names = list(range(5000))
    random.Random(5000).shuffle(names)
    events = [{"add": f"n{number}", "zone": f"z{number % 100}"} for number in names]
    events += [ROUND, *({"remove": f"n{number}"} for number in range(50)), ROUND]
    events += [{"add": f"late{number}", "zone": f"new{number % 7}"} for number in range(500)]
    assert len({event["zone"] for event in events[:5000]}) == 100
    for which in ALGORITHMS:
        begin = time.process_time()
        found = replay([*events, ROUND], which)
        assert time.process_time() - begin < 1.0, which
        assert len(found.snapshot) == len(found.nodes) == 5450
        assert (which == "fixed") is not bool(found.lost)
