# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ages by the clock of the host that reads.

The Date of the API servers' answers confirms that clock or not.
"""

from __future__ import annotations

from email.utils import formatdate
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    http_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import ages, cluster

READ = 1_800_000_000.0  # 2027-01-15T08:00:00Z


def clock(ahead: float = 0.0, took: float = 0.2) -> dict[str, Any]:
    """Tell what a collector notes of an answer by an API server whose clock is that far ahead."""
    return {
        "asked_at": READ - took,
        "read_at": READ,
        "date": formatdate(READ - took + ahead, usegmt=True),
    }


def of(*servers: Any, **more: Any) -> cluster.Cluster:
    rows = [
        {"address": f"10.0.0.{number}:6443", "objects": [], "clock": one}
        for number, one in enumerate(servers, 1)
    ]
    api = {"locks": {"status": "ok", "data": {"servers": rows}}, **more}
    return cluster.Cluster(
        "k", [], api=api, api_host="m1", api_status="ok", collected_at="2027-01-15T07:59:50Z"
    )


def test_evidence_of_an_older_release_has_the_time_of_its_reading_only():
    known = ages.clocks(of(None, None))
    assert (known.checked, known.doubt, dict(known.read)) == (False, "", {})
    assert ages.age(of(None), "2027-01-15T07:59:00Z", "locks") == 50.0


def test_the_time_of_each_reading_counts():
    found = of(
        clock(),
        nodes={
            "status": "ok",
            "data": {"items": [], "clock": {**clock(), "read_at": READ + 7, "asked_at": READ + 7}},
        },
    )
    assert ages.age(found, "2027-01-15T07:59:00Z", "locks") == 60.0
    assert ages.age(found, "2027-01-15T07:59:00Z", "nodes") == 67.0
    # of another collector: the time at which the reading began
    assert ages.age(found, "2027-01-15T07:59:00Z") == 50.0
    assert ages.clocks(found).checked


@pytest.mark.parametrize(
    ("ahead", "took", "apart"),
    [
        (0.0, 0.2, False),
        (9.0, 0.2, False),
        (-9.0, 0.2, False),
        (13.0, 0.2, True),
        (-13.0, 0.2, True),
        (3600.0, 0.2, True),
        (18.0, 30.0, False),  # a slow answer is no difference
        (45.0, 30.0, True),
        (-12.0, 30.0, True),
    ],
)
def test_clocks_that_differ_make_ages_unknown(ahead, took, apart):
    found = of(clock(ahead, took))
    known = ages.clocks(found)
    assert bool(known.doubt) is apart
    assert known.checked is not apart
    assert (ages.age(found, "2027-01-15T07:59:00Z", "locks") is None) is apart
    assert ("KM526" in known.doubt) is apart


@pytest.mark.parametrize(
    ("servers", "doubt"),
    [
        ((0.0, 60.0, 0.0), False),  # that one is off
        ((0.0, 60.0, 60.0), True),  # the first is on the host that reads: it has the same clock
        ((0.0, 60.0), True),
        ((60.0, -60.0, 0.0), True),
    ],
)
def test_of_several_api_servers_most_decide(servers, doubt):
    known = ages.clocks(of(*(clock(ahead) for ahead in servers)))
    assert bool(known.doubt) is doubt
    assert set(known.apart) == {f"10.0.0.{n}:6443" for n, ahead in enumerate(servers, 1) if ahead}


@pytest.mark.parametrize(
    "broken",
    [
        "soon",
        7,
        [],
        {"asked_at": "x"},
        {**clock(), "date": None},
        {**clock(), "date": "Mon"},
        {**clock(), "date": 7},
        {**clock(), "asked_at": True},
        {**clock(), "asked_at": READ + 99},
        {**clock(), "read_at": 1e30},
        {**clock(), "date": "Thu, 99 Foo 2027 99:99:99 GMT"},
    ],
)
def test_a_clock_of_another_shape_tells_nothing(broken):
    known = ages.clocks(of(broken))
    assert not known.checked
    assert not known.doubt


@pytest.mark.parametrize("since", [None, 7, [], "soon", {}])
def test_a_time_of_another_shape_has_no_age(since):
    assert ages.age(of(clock()), since) is None


def test_the_difference_of_two_hosts(world):
    world.data("m2", "system")["clock"] -= 100.0
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
        engine as fault_engine,
    )

    (found,) = [
        one
        for one in fault_engine.evaluate_clusters([*world.documents.values(), world.api])[1]
        if one.key
    ]
    hosts = {host.host: host for host in found.hosts}
    low, high = ages.difference(found, hosts["m2"])
    assert low < -99
    assert high > -101
    assert high - low == 2.0
    assert ages.difference(found, hosts["m1"]) == (0.0, 0.0)
    assert ages.difference(found, None) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(7, 7.0), (0, 0.0), (True, None), (-1, None), ("7", None), (1e300, None), (None, None)],
)
def test_seconds(value, seconds):
    decoded = decode(http_answer.Clock, {"read_at": value}).answer  # as evidence reaches it
    assert ages.seconds_of(decoded.read_at) == seconds
