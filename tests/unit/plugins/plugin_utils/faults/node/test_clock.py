# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clocks that differ, KM526.

Who is right is what most agree on, and a slow connection is no difference.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node import (
    clock as node_clock,
)
from tests.unit.support.clock_evidence import NOW, judge_clocks, set_clocks


def test_clocks_that_agree(world):
    set_clocks(world)
    assert judge_clocks(world) == ("clear", [])


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(3600.0, "ahead of"), (-90.0, "behind"), (35.0, "ahead of"), (30.0, ""), (-20.0, "")],
)
def test_one_that_is_off_is_named(world, seconds, said):
    set_clocks(world, w1=seconds)
    verdict, found = judge_clocks(world)
    assert (verdict, [item.host for item in found]) == (
        ("present", ["w1"]) if said else ("clear", [])
    )
    assert not said or (
        said in found[0].summary
        and found[0].component == "clock"
        and found[0].severity == "warning"
        and "timedatectl" in found[0].remedy
    )


def test_a_controller_that_is_off_makes_nobody_wrong(world):
    set_clocks(world, **dict.fromkeys(world.documents, 900.0))
    assert judge_clocks(world) == ("clear", [])


def test_a_slow_answer_is_no_difference(world):
    set_clocks(world, w1=40.0)
    world.documents["w1"].update(received_at=NOW + 60)
    assert judge_clocks(world) == ("clear", [])


def test_one_node_against_the_controller_is_unknown(world):
    for name in [name for name in world.documents if name != "m1"]:
        del world.documents[name]
    set_clocks(world, m1=500.0)
    assert judge_clocks(world) == ("unknown", [])


def test_evidence_of_an_older_release_is_not_judged(world):
    for document in world.documents.values():
        del document["asked_at"], document["received_at"]
    assert judge_clocks(world)[0] == "not judged"
    world.documents["w1"].update(status="unreachable", collectors={})
    assert judge_clocks(world)[0] == "not judged"
    world.documents["m1"]["collectors"]["system"]["status"] = "error"
    assert judge_clocks(world)[0] == "not judged"


def test_hosts_none_of_which_answered_leave_it_unknown(world):
    for document in world.documents.values():
        document["collectors"]["system"]["status"] = "error"
    assert judge_clocks(world)[0] == "unknown"


def test_a_host_that_is_silent_leaves_it_unknown(world):
    set_clocks(world)
    world.documents["w1"].update(status="unreachable", collectors={})
    assert judge_clocks(world)[0] == "unknown"


def test_bounds():
    assert node_clock.agreed([(0.0, 1.0), (50.0, 51.0)]) is None
    assert node_clock.agreed([(0.0, 1.0), (0.5, 2.0), (50.0, 51.0)]) == (-0.5, 2.0)
    # a majority on either side of one in the middle: the order of the hosts decides nothing
    tie = [(0.0, 10.0), (9.0, 21.0), (20.0, 30.0)]
    assert node_clock.agreed(tie) is None
    assert node_clock.agreed(tie[::-1]) is None
    # those of a slow connection agree with both sides and have no say, and the one that is left is
    # no majority
    assert node_clock.agreed([(0.0, 0.0), (500.0, 560.0)]) is None
    assert node_clock.agreed([(0.0, 1.0), (50.0, 51.0), (-10.0, 60.0)]) is None
    assert node_clock.agreed([(-10.0, 60.0)]) is None
    assert node_clock.agreed([(0.0, 30.0), (0.0, 30.0)]) == (-1.0, 31.0)
    assert node_clock.away((5.0, 6.0), (0.0, 1.0)) == 4.0
    assert node_clock.away((-6.0, -5.0), (0.0, 1.0)) == -5.0
    assert node_clock.away((0.0, 9.0), (5.0, 6.0)) == 0.0
