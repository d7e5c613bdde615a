# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of removed masters in the Service kubernetes, and masters that the inventory lacks."""

from __future__ import annotations

import pytest

ADDRESS = "10.0.0.44"
PLACE = f"{ADDRESS}:6443"
TIMEOUT = "Get https://10.96.0.1:443/api/v1/nodes: dial tcp 10.96.0.1:443: i/o timeout"
NO_ROUTE = f"Get https://{PLACE}: dial tcp {PLACE}: connect: no route to host"


def named(world, error=NO_ROUTE):
    """Let the Service have an address more, which answers a question for locks with this error."""
    world.data("api", "endpoints")["addresses"].append(PLACE)
    if error is not None:
        row = {"address": PLACE, "error": error, "kube_system_uid": None, "objects": []}
        world.data("api", "locks")["servers"].append(row)


def pods_say(world, line):
    entry = {"count": 60, "minutes": 10, "first": 1.8e9 - 590, "last": 1.8e9 - 5, "line": line}
    row = {
        "namespace": "kube-system",
        "pod": "coredns-1",
        "container": "coredns",
        "path": "/log",
        "since": 1.8e9 - 600,
        "entries": [entry],
    }
    world.documents["w1"]["collectors"]["system_pods"] = {
        "status": "ok",
        "data": {"containers": [], "running": [row]},
    }


def found(world):
    return [item for item in world.judge(faults={"KM112"}).findings if item.code == "KM112"]


@pytest.mark.parametrize(
    "error",
    [
        NO_ROUTE,
        "GET /api/v1/namespaces/kube-system: no answer within the time limit",
        "no connection or no handshake in time: its machine is off or not reached, or it hangs",
    ],
)
def test_an_address_that_does_not_answer(world, error):
    named(world, error)
    (one,) = found(world)
    assert (one.severity, one.component) == ("warning", "masterleases")
    assert ADDRESS in one.summary
    assert f"$E del /registry/masterleases/{ADDRESS}" in one.remedy
    assert [ref.text for ref in one.evidence] == [error]


def test_an_address_that_was_not_asked_while_pods_time_out(world):
    named(world, None)
    pods_say(world, f'E0115 07:59:00.000001 1 x.go:1] "no answer" err="{TIMEOUT}"')
    (one,) = found(world)
    assert one.component == "masterleases"
    assert "coredns-1 on w1" in one.summary


@pytest.mark.parametrize(
    "change",
    [
        *("node", "etcd", "answers", "answers in part", "refused", "no nodes", "external etcd"),
        "not a node",
    ],
)
def test_a_master_that_the_inventory_lacks(world, change):
    named(world, 'forbidden: User "x"' if change == "refused" else NO_ROUTE)
    nodes = world.data("api", "nodes")["items"]
    if change == "node":
        addresses = [{"type": "InternalIP", "address": ADDRESS}]
        nodes.append({**nodes[0], "name": "m4", "addresses": addresses, "control_plane": True})
    if change == "etcd":
        member = {"id": "9", "name": "m4", "peer_urls": [f"https://{ADDRESS}:2380"]}
        world.data("m1", "etcd")["members"].append(member)
    if change == "answers":
        world.data("api", "locks")["servers"][-1].update(error=None, kube_system_uid="u")
    if change == "answers in part":  # and its locks not in time
        world.data("api", "locks")["servers"][-1]["kube_system_uid"] = "u"
    if change == "no nodes":
        world.api["collectors"]["nodes"] = {"status": "denied", "data": None}
    if change == "external etcd":
        for name in ("m1", "m2", "m3"):
            world.data(name, "etcd")["members"] = []
    if change == "not a node":  # masters without a kubelet have no Nodes
        nodes[:] = [node for node in nodes if node["name"] != "m1"]
    assert [item for item in found(world) if item.component == "masterleases"] == []


@pytest.mark.parametrize(("like", "groups"), [("m3", ["control_plane"]), ("w1", [])])
def test_a_silent_host_may_be_that_master(world, like, groups):
    named(world)
    document = {**world.documents[like], "host": "m9", "address": "10.0.0.77", "groups": groups}
    world.documents["m9"] = document
    world.silence("m9")
    assert [item for item in found(world) if item.component == "masterleases"] == []


@pytest.mark.parametrize(
    "line",
    [
        TIMEOUT.replace("10.96.0.1", "10.0.0.1"),  # an API server's own address
        TIMEOUT.replace("i/o timeout", "connect: connection refused"),
        TIMEOUT.replace("/api/v1/nodes", "/metrics"),
    ],
)
def test_what_pods_say_of_something_else(world, line):
    named(world, None)
    pods_say(world, f'E0115 07:59:00.000001 1 x.go:1] "no answer" err="{line}"')
    (one,) = found(world)
    assert one.component is None
    assert "inventory" in one.remedy
