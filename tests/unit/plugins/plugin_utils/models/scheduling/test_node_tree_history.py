# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Order in which a scheduler learned of its nodes, and what its list lacks then."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.scheduling import (
    node_tree,
    node_tree_history,
)

MASTERS = {f"ss-stg-ma-0{n}": "sh/200002" for n in (1, 2, 3)}
WORKER = ("ss-stg-test-01", "sh/200004")
LOG = [
    *(["add", name, zone] for name, zone in MASTERS.items()),
    ["round", "", ""],
    ["add", *WORKER],
    ["round", "", ""],
]


def test_the_incident_by_its_log():
    found = node_tree_history.from_log(LOG, [*MASTERS, WORKER[0]])
    assert found.snapshot == (
        "ss-stg-test-01",
        "ss-stg-ma-01",
        "ss-stg-test-01",
        "ss-stg-ma-02",
    )
    assert found.lost == ("ss-stg-ma-03",)


@pytest.mark.parametrize(
    "log",
    [
        [],
        None,
        "x",
        LOG[1:],
        LOG[:-2],
        [*LOG, ["add", "other", ""]],
        [*LOG, LOG[0]],
        [["add", "x"]],
        [["add", 1, ""]],
        [["remove", "gone", ""], *LOG],
        [["what", "x", ""], *LOG],
        [one for one in LOG if one[0] != "round"],
    ],
)
def test_a_log_that_does_not_tell_all(log):
    assert node_tree_history.from_log(log, [*MASTERS, WORKER[0]]) is None


def test_a_node_that_left_is_part_of_it():
    log = [
        ["add", "old", "sh/200002"],
        *LOG[:-1],
        ["remove", "old", "sh/200002"],
        ["round", "", ""],
    ]
    assert node_tree_history.from_log(log, [*MASTERS, WORKER[0]]) is not None


def test_the_incident_by_who_joined():
    found = node_tree_history.from_joins(MASTERS, [WORKER])
    assert (found.unnamed, found.named) == ({"sh/200002": 1}, frozenset())


def test_nobody_joined_or_too_much_to_try():
    assert node_tree_history.from_joins(MASTERS, []).unnamed is None
    assert node_tree_history.from_joins({}, [WORKER]).unnamed is None
    assert (
        node_tree_history.from_joins({f"n{zone}": str(zone) for zone in range(9)}, [WORKER]).unnamed
        is None
    )
    assert (
        node_tree_history.from_joins(
            {f"n{number}": str(number % 5) for number in range(5000)}, [WORKER] * 100
        ).unnamed
        is None
    )


def test_what_depends_on_the_order_of_zones_is_not_known():
    """Of two zones of one size, a node of either pushes out the last of the later zone, or none."""
    assert node_tree_history.from_joins(
        {"a": "1", "b": "1", "c": "2", "d": "2"}, [("e", "1")]
    ) == node_tree_history.Joined({})
    assert (
        node_tree_history.from_joins(
            {"a": "1", "b": "1", "c": "2"}, [("e", "2"), ("f", "3")]
        ).unnamed
        is None
    )


def test_what_is_known_to_be_lost_rules_out_the_rest():
    later = [WORKER, ("ss-stg-test-02", WORKER[1])]
    # with a round between the two nobody is lost
    assert node_tree_history.from_joins(MASTERS, later).unnamed is None
    assert node_tree_history.from_joins(MASTERS, later, {"sh/200002": 1}).unnamed == {
        "sh/200002": 1
    }
    assert node_tree_history.from_joins(
        MASTERS, later, {"sh/200002": 2}
    ) == node_tree_history.Joined(None, impossible=True)


def test_what_is_said_holds_for_every_history():
    """Each claim is compared with the replay of a whole history that it leaves open.

    Any order of the first nodes, any rounds but the first and the last.
    """
    rng, claims = random.Random(7), 0
    for _each in range(500):
        zones = [f"z{n}" for n in range(rng.randint(1, 4))]
        first = {f"n{n}": rng.choice(zones) for n in range(rng.randint(1, 7))}
        later = [(f"x{n}", rng.choice([*zones, "new"])) for n in range(rng.randint(1, 3))]
        found = node_tree_history.from_joins(first, later)
        if found.unnamed is None:
            continue
        claims += 1
        listed, each = rng.sample(sorted(first), len(first)), [rng.random() < 0.5 for _one in later]
        events = [{"add": name, "zone": first[name]} for name in listed] + [{"round": 1}]
        for (name, zone), rounds in zip(later, each, strict=False):
            events += [
                {"add": name, "zone": zone},
                *([{"round": rng.randint(1, 3)}] if rounds else []),
            ]
        lost = node_tree.replay([*events, {"round": 1}], node_tree.KEPT).lost
        assert dict(Counter(first[name] for name in lost if name in first)) == found.unnamed
        assert {name for name in lost if name not in first} == found.named
    assert claims > 60
