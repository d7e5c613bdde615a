# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubelets whose way to the API is the load balancer of their own agent: a part of KM525."""

from __future__ import annotations

import pytest

from tests.unit.support.api_nodes import silent

LOCAL = "https://127.0.0.1:6443"
SILENT = ("connection", "the connection is taken, and no TLS handshake follows")
CLOSED = ("certificate", "EOF occurred in violation of protocol (_ssl.c:1000)")
REFUSED = ("connection", "[Errno 111] Connection refused")
LOST = (
    'time="2024-06-14T12:37:04Z" level=error msg="Remotedialer proxy error; reconnecting..."'
    ' error="dial tcp {}:9345: connect: no route to host" url="wss://x/v1-rke2/connect"'
)


def unit(world, host, name, state="active"):
    world.data(host, "kubelet")["unit"] |= {
        "name": name,
        "active_state": state,
        "start_words": [],
        "fragment_path": f"/usr/lib/systemd/system/{name}",
    }


def judged(world, way=SILENT, server=LOCAL, agent="rke2-agent.service", lost=""):
    silent(world, "w1")
    unit(world, "w1", agent)
    for host in ("m1", "m2", "m3"):
        unit(world, host, agent.replace("-agent", "-server" if "rke2" in agent else ""))
    world.data("w1", "kubelet")["process"] = {
        "pid": 1,
        "argv": ["kubelet"],
        "started_at": 1799990000.0,
    }
    failed, error = way
    data = {"server": server, "address": "127.0.0.1", "failed": failed, "error": error}
    world.documents["w1"]["collectors"]["api_way"] = {"status": "ok", "data": data}
    if lost:
        entry = {"count": 60, "minutes": 10, "first": 1.8e9 - 590, "last": 1.8e9 - 5}
        rows = [{"component": "rke2", "source": agent, "entries": [entry | {"line": lost}]}]
        world.documents["w1"]["collectors"]["repeated_errors"] = {
            "status": "ok",
            "data": {"read_at": 1.8e9, "components": rows},
        }


def found(world):
    (one,) = [item for item in world.judge().findings if item.code == "KM525"]
    return one


@pytest.mark.parametrize(
    ("way", "words"),
    [
        (SILENT, "answers nothing"),
        (CLOSED, "closes it"),
        (REFUSED, "does not listen there"),
    ],
)
@pytest.mark.parametrize("agent", ["rke2-agent", "k3s-agent"])
def test_what_the_load_balancer_does(world, way, words, agent):
    judged(world, way, agent=f"{agent}.service")
    one = found(world)
    assert f"127.0.0.1:6443, the load balancer of its own {agent}, which" in one.summary
    assert words in one.summary
    assert f"systemctl restart {agent}.service on w1" in one.remedy
    assert "load-balancer.json" in one.remedy
    assert one.because == ()


@pytest.mark.parametrize(
    ("way", "server", "agent"),
    [
        (("certificate", "certificate has expired"), LOCAL, "rke2-agent.service"),
        (SILENT, "https://10.0.0.9:6443", "rke2-agent.service"),
        (SILENT, LOCAL, "kubelet.service"),
        (SILENT, LOCAL, "rke2-server.service"),
    ],
)
def test_what_is_no_load_balancer_of_an_agent(world, way, server, agent):
    judged(world, way, server, agent)
    one = found(world)
    assert "load balancer of its own" not in one.summary
    assert "systemctl restart" not in one.remedy


@pytest.mark.parametrize(("address", "is_gone"), [("10.0.0.99", True), ("10.0.0.2", False)])
def test_a_server_that_the_agent_does_not_reach(world, address, is_gone):
    line = LOST.format(address)
    judged(world, lost=line)
    one = found(world)
    assert f"{address}:9345" in one.summary
    assert ("no Node and no API server" in one.summary) is is_gone
    assert line in [ref.text for ref in one.evidence]


@pytest.mark.parametrize(
    ("way", "release", "is_named"),
    [
        (SILENT, "v1.28.9+rke2r1", True),
        (SILENT, "v1.28.12+rke2r1", False),
        (SILENT, "v1.27.11+rke2r1", False),
        (SILENT, "v1.30.2+rke2r1", True),
        (SILENT, None, False),
        (CLOSED, "v1.28.9+rke2r1", False),
    ],
)
def test_the_releases_with_a_deadlock(world, way, release, is_named):
    judged(world, way)
    if release is not None:
        world.documents["w1"]["collectors"]["pinning"] = {
            "status": "ok",
            "data": {"kubelet_version": f"Kubernetes {release}"},
        }
    one = found(world)
    assert ("deadlock of that load balancer" in one.summary) is is_named
    assert ("Then update RKE2" in one.remedy) is (release != "v1.28.12+rke2r1")


@pytest.mark.parametrize(
    ("state", "way", "because"),
    [
        ("inactive", CLOSED, ("KM502",)),
        ("failed", CLOSED, ()),
        ("active", CLOSED, ()),
        ("inactive", REFUSED, ()),
    ],
)
def test_a_server_whose_unit_is_stopped(world, state, way, because):
    judged(world, way)
    unit(world, "m3", "rke2-server.service", state)
    one = found(world)
    is_told = state != "active" and way == CLOSED
    assert ("rke2-server of m3 does not run" in one.summary) is is_told
    assert ("systemctl start rke2-server.service on m3" in one.remedy) is is_told
    assert one.because == because


@pytest.mark.parametrize(
    ("agent", "release", "stays"),
    [
        ("rke2-agent.service", "v1.27.11+rke2r1", True),
        ("rke2-agent.service", "v1.27.13+rke2r1", False),
        ("rke2-agent.service", None, True),
        ("k3s-agent.service", "v1.27.11+k3s1", False),
    ],
)
def test_the_releases_whose_agents_stay_with_a_stopped_server(world, agent, release, stays):
    judged(world, CLOSED, agent=agent)
    world.data("m3", "kubelet")["unit"]["active_state"] = "inactive"
    if release is not None:
        world.documents["w1"]["collectors"]["pinning"] = {
            "status": "ok",
            "data": {"kubelet_version": f"Kubernetes {release}"},
        }
    one = found(world)
    assert "of m3 does not run" in one.summary
    assert ("stay with such a server" in one.summary) is stays


def test_without_an_api_server_the_agent_is_not_to_blame(world):
    judged(world)
    for host in ("m1", "m2", "m3"):
        running = world.data(host, "instances")["processes"]
        running[:] = [row for row in running if row["component"] != "kube-apiserver"]
    one = found(world)
    assert one.remedy.startswith("first see that an API server runs")
