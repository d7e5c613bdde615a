# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a lock of leader election is renewed, by which clock, and why no instance leads."""

from __future__ import annotations

import pytest

from tests.unit.support.api_nodes import FRESH, MANAGER, STALE, judged, lock, node
from tests.unit.support.facts import facts


@pytest.mark.parametrize(
    ("changes", "lease", "verdict"),
    [
        ({"renew_time": FRESH}, FRESH, "clear"),
        ({"renew_time": STALE}, FRESH, "present"),
        # its holder's lease stopped with it: that is no clock
        ({"renew_time": STALE}, "2027-01-15T07:50:05.000000Z", "present"),
        # a clock that is ahead of ours cannot make it fresh
        ({"renew_time": "2027-01-15T08:05:00Z"}, "2027-01-15T08:10:00Z", "present"),
        # another may be about to take it
        ({"renew_time": "2027-01-15T07:59:10Z"}, "2027-01-15T08:00:00Z", "clear"),
        ({"renew_time": "2027-01-15T07:58:30Z"}, "2027-01-15T08:00:00Z", "present"),
        (
            {"renew_time": "2027-01-15T07:58:30Z", "lease_duration_s": 60},
            "2027-01-15T08:00:00Z",
            "clear",
        ),
        # by our clock, with a larger margin
        ({"renew_time": STALE}, None, "present"),
        ({"renew_time": "2027-01-15T07:58:30Z"}, None, "clear"),
        ({"renew_time": STALE, "holder": "nobody-here_x"}, FRESH, "present"),
        ({"renew_time": STALE, "holder": None}, FRESH, "present"),
        ({"renew_time": None}, FRESH, "unknown"),
        ({"renew_time": "soon"}, FRESH, "unknown"),
    ],
)
def test_a_lock_that_stands_still(world, changes, lease, verdict):
    lock(world, **changes)
    node(world, "m1")["lease"] = lease
    verdicts, found = judged(world, "KM511")
    assert verdicts == {"KM511": verdict}
    assert len(found) == (verdict == "present")
    assert all(
        (one.host, one.component, one.severity, one.risk) == (None, MANAGER, "critical", 0)
        for one in found
    )


def test_no_controller_manager_runs(world):
    lock(world, renew_time=STALE)
    for name in ("m1", "m2", "m3"):
        running = world.data(name, "instances")["processes"]
        running[:] = [one for one in running if one["component"] != MANAGER]
    _dummy, (found,) = judged(world, "KM511")
    facts(found.summary, STALE, "no host", "m1, m2, m3", "manifest", "container")
    assert "kube-controller-manager.yaml" in found.remedy
    assert "held by m1_x" in found.evidence[0].text
    world.silence("m3")
    assert judged(world, "KM511")[1][0].summary.endswith(
        "it runs on no host that answered; m3 did not; m1, m2: its manifest is there, and its"
        " container does not start or does not stay up"
    )


def test_controller_managers_that_run_and_do_not_renew(world):
    lock(world, renew_time=STALE)
    _dummy, (found,) = judged(world, "KM511")
    assert found.summary.endswith("it runs on m1, m2, m3 and does not renew its lock")
    assert "log" in found.remedy


def test_any_fresh_lock_is_a_leader(world):
    """Endpoints that an older release's lock left behind, an API server that answers late."""
    objects = world.data("api", "locks")["servers"]
    objects[0]["objects"].append(
        {
            "kind": "Endpoints",
            "name": MANAGER,
            "holder": "m9_x",
            "renew_time": "2020-01-01T00:00:00Z",
        }
    )
    next(one for one in objects[1]["objects"] if one["name"] == MANAGER)["renew_time"] = STALE
    assert judged(world, "KM511")[0] == {"KM511": "clear"}


def test_without_a_lock_nobody_knows_but_where_one_works_without(world):
    for server in world.data("api", "locks")["servers"]:
        server["objects"] = [one for one in server["objects"] if one["name"] != MANAGER]
    assert judged(world, "KM511")[0] == {"KM511": "unknown"}
    world.run("m1", MANAGER, "--leader-elect=false", elect=False)
    assert judged(world, "KM511")[0] == {"KM511": "clear"}


def test_a_lock_that_was_left_behind_where_one_works_without(world):
    lock(world, renew_time=STALE)
    world.run("m1", MANAGER, "--leader-elect=false", elect=False)
    assert judged(world, "KM511") == ({"KM511": "clear"}, [])


@pytest.mark.parametrize(
    ("behind", "verdict"), [(600.0, "clear"), (0.0, "present"), (None, "unknown")]
)
def test_the_clock_of_the_holder_counts_where_its_host_told_it(world, behind, verdict):
    """Its lock and its lease look ten minutes old: they are, or its clock is behind.

    If its host reported no clock, that is not known.
    """
    lock(world, renew_time=STALE, holder="m2_x")
    node(world, "m2")["lease"] = "2027-01-15T07:50:05.000000Z"
    if behind is None:
        del world.documents["m2"]["asked_at"]
    else:
        world.data("m2", "system")["clock"] -= behind
    assert judged(world, "KM511")[0] == {"KM511": verdict}
    lock(world, holder="m1_x")
    assert judged(world, "KM511")[0] == {"KM511": "present"}


def test_a_holder_whose_node_stopped_took_its_clock_with_it(world):
    """Its lease stopped with the lock, whatever its Node still says.

    The time since counts by the clock of the host that asked.
    """
    lock(world, renew_time=STALE)
    node(world, "m1")["lease"] = "2027-01-15T07:50:20.000000Z"
    for ready in ("True", "Unknown"):
        node(world, "m1")["ready"] = ready
        assert judged(world, "KM511")[0] == {"KM511": "present"}


def test_without_any_clock_nobody_knows(world):
    lock(world, renew_time=STALE)
    node(world, "m1")["lease"] = None
    world.api["collected_at"] = None
    assert judged(world, "KM511")[0] == {"KM511": "unknown"}


def test_a_lock_of_another_name_is_the_one_that_counts(world):
    for name in ("m1", "m2", "m3"):
        answers = world.data(name, "component_http")["components"]
        next(one for one in answers if one["component"] == MANAGER)["configz"]["leader_election"][
            "resourceName"
        ] = "own"
    lock(world, renew_time=STALE)
    assert judged(world, "KM511")[0] == {"KM511": "unknown"}
    lock(world, name="own")
    assert judged(world, "KM511")[0] == {"KM511": "present"}


def test_no_control_plane_among_the_hosts(world):
    """A hosted control plane has left a lock of another time: the verdict is unknown."""
    lock(world, renew_time=STALE)
    for item in world.data("api", "nodes")["items"]:
        item["control_plane"] = False
    world.data("api", "endpoints")["addresses"] = []
    for name in ("m1", "m2", "m3"):
        del world.documents[name]
    assert judged(world, "KM511")[0] == {"KM511": "unknown"}
