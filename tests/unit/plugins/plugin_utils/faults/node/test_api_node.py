# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API says of nodes that do not come back: KM511 to KM514. Tables."""

from __future__ import annotations

import pytest

from tests.unit.support.api_nodes import CODES, LONG, NODE, judged, node, silent
from tests.unit.support.facts import facts


def test_a_healthy_cluster(world):
    assert judged(world) == (dict.fromkeys(CODES, "clear"), [])


def test_evidence_of_an_older_release(world):
    """Locks and Ready stand in it: they are judged; taints and pods are not."""
    for item in world.data("api", "nodes")["items"]:
        for name in ("taints", "conditions", "lease"):
            del item[name]
    del world.api["collectors"]["pending"]
    assert judged(world) == (
        {"KM511": "clear", "KM512": "clear", "KM513": "not judged", "KM514": "not judged"},
        [],
    )
    node(world, "w1")["unschedulable"] = True
    assert judged(world)[0]["KM514"] == "present"


def test_no_api(world):
    world.api.update(status="error", reason="connection refused", collectors={})
    assert judged(world) == (dict.fromkeys(CODES, "unknown"), [])


def test_no_cluster(world):
    world.api = None
    for name in list(world.documents):
        world.documents[name].update(cluster_key=None, node=None)
        world.documents[name]["collectors"] = {"kubelet": {"status": "absent", "data": None}}
    assert set(judged(world)[0].values()) <= {"not_applicable"}


# KM511


@pytest.mark.parametrize(
    ("key", "effect", "added", "since", "verdict"),
    [
        ("unreachable", "NoExecute", LONG, LONG, "present"),
        ("unreachable", "NoSchedule", LONG, LONG, "present"),
        ("not-ready", "NoExecute", LONG, LONG, "present"),
        # the controller has a few seconds
        ("unreachable", "NoExecute", LONG, "2027-01-15T07:59:30Z", "clear"),
        ("unreachable", "NoExecute", "2027-01-15T07:59:30Z", LONG, "clear"),
        ("unreachable", "NoExecute", None, LONG, "clear"),
        ("unreachable", "PreferNoSchedule", LONG, LONG, "clear"),
        ("disk-pressure", "NoSchedule", LONG, LONG, "clear"),
        ("unreachable", "NoExecute", LONG, None, "clear"),
    ],
)
def test_taints_that_stay_although_the_kubelet_is_well(world, key, effect, added, since, verdict):
    node(world, "w1")["taints"] = [{"key": NODE + key, "effect": effect, "added": added}]
    node(world, "w1")["conditions"][0]["since"] = since
    verdicts, found = judged(world, "KM511")
    assert verdicts == {"KM511": verdict}
    assert len(found) == (verdict == "present")
    for one in found:
        facts(one.summary, "taints", "w1", "posts Ready")
    node(world, "w1")["ready"] = "Unknown"
    assert judged(world, "KM511")[0] == {"KM511": "clear"}


@pytest.mark.parametrize(
    ("since", "verdict"), [(LONG, "present"), ("2027-01-15T07:58:40Z", "clear")]
)
def test_taints_that_stay_on_a_node_without_a_lease(world, since, verdict):
    """The controller's clock decides, which may differ from the node's: the margin is larger."""
    node(world, "w1").update(
        lease=None, taints=[{"key": NODE + "unreachable", "effect": "NoExecute", "added": since}]
    )
    node(world, "w1")["conditions"][0]["since"] = LONG
    assert judged(world, "KM511")[0] == {"KM511": verdict}
    world.api["collected_at"] = None  # then nobody knows how old the lock is either
    assert judged(world, "KM511")[0] == {"KM511": "unknown"}


# KM512


@pytest.mark.parametrize(
    ("ready", "status", "verdict"),
    [
        ("Unknown", "unreachable", "present"),
        ("False", "unreachable", "present"),
        ("True", "unreachable", "clear"),
        ("Unknown", None, "clear"),
        ("Unknown", "error", "unknown"),
        ("Unknown", "not_asked", "not judged"),
    ],
)
def test_a_node_is_down_when_nobody_hears_of_it(world, ready, status, verdict):
    silent(world, "w1", ready)
    if status:
        world.silence("w1", status)
    verdicts, found = judged(world, "KM512")
    assert verdicts == {"KM512": verdict}
    assert len(found) == (verdict == "present")
    for one in found:
        assert (one.host, one.node, one.severity) == ("w1", "w1", "critical")
        says = "posts nothing" if ready == "Unknown" else "not ready"
        facts(one.summary, says, "2027-01-15T07:55:00Z", "host does not answer")


def test_a_node_that_is_no_host_of_the_inventory_is_not_judged_by_guess(world):
    silent(world, "w1")
    node(world, "w1")["name"] = "stranger"
    assert judged(world, "KM512") == ({"KM512": "unknown"}, [])
    node(world, "stranger")["addresses"] = [{"type": "InternalIP", "address": "w1"}]
    world.silence("w1")
    assert judged(world, "KM512")[0] == {"KM512": "present"}


def test_an_older_release_does_not_say_since_when(world):
    silent(world, "w1")
    for name in ("conditions", "taints", "lease"):
        del node(world, "w1")[name]
    world.silence("w1")
    facts(judged(world, "KM512")[1][0].summary, "posts nothing", "host does not answer")


@pytest.mark.parametrize(
    ("zone", "change", "stated"),
    [
        (
            None,
            None,
            ("every worker", "3", "w1, w2, w3", "NotReady"),
        ),
        (None, "one is well", None),
        (None, "one kubelet is dead", None),
        (
            "b",
            "one is well",
            ("zone b", "2", "w2, w3", "NotReady"),
        ),
    ],
)
def test_all_at_once_is_the_way_to_the_api(world, zone, change, stated):
    for number in (2, 3):
        world.documents[f"w{number}"] = world._host(f"w{number}", f"10.0.0.10{number}", ["node"])
        world.data("api", "nodes")["items"].append(
            {
                "name": f"w{number}",
                "control_plane": False,
                "devices": {},
                "addresses": [],
                "labels": {"topology.kubernetes.io/zone": zone} if zone else {},
            }
        )
    for name in ("w1", "w2", "w3"):
        world.data(name, "kubelet")["process"]["started_at"] = 1_799_990_000.0
        silent(world, name)
    if change == "one is well":
        node(world, "w1")["ready"] = "True"
    elif change:
        world.data("w1", "kubelet")["process"] = None
    verdicts, found = judged(world, "KM512")
    assert verdicts == {"KM512": "present" if stated else "clear"}
    assert len(found) == bool(stated)
    for one in found:
        facts(one.summary, *stated)
    assert all(one.host is None and "load balancer" in one.remedy for one in found)


# KM513


# KM514
