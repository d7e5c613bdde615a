# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM178: the address in front of the API servers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support import doubled_addresses, saying_pods

CLOCK = 1_800_000_000.0
FRONT = "https://192.0.2.10:6443"
HANGS = "_ssl.c:1112: The handshake operation timed out"


def ways(
    world: Any,
    server: str = FRONT,
    failed: str | None = "connection",
    error: str | None = "[Errno 113] No route to host",
    hosts: tuple[str, ...] = ("m1", "m2", "m3", "w1"),
) -> None:
    for host in hosts:
        data = {"server": server, "address": "192.0.2.10", "failed": failed, "error": error}
        world.documents[host]["collectors"]["api_way"] = {"status": "ok", "data": data}


def without_pods(world: Any, started: float = CLOCK - 1200) -> None:
    """Let the kubelets of the masters run, and no static pod."""
    for host in ("m1", "m2", "m3"):
        world.data(host, "instances")["processes"] = []
        world.data(host, "kubelet")["process"]["started_at"] = started


def found(world: Any) -> list[Any]:
    return [item for item in world.judge(faults={"KM178"}).findings if item.code == "KM178"]


def verdict(world: Any) -> str:
    return next(row.verdict for row in world.judge(faults={"KM178"}).verdicts)


@pytest.mark.parametrize(
    ("failed", "error", "word"),
    [
        ("connection", "[Errno 113] No route to host", "192.0.2.10:6443"),
        ("connection", "[Errno 111] Connection refused", "refused"),
        ("certificate", HANGS, "timed out"),
        ("certificate", "EOF occurred in violation of protocol (_ssl.c:997)", "EOF"),
    ],
)
def test_no_node_reaches_it_although_api_servers_run(world, failed, error, word):
    ways(world, failed=failed, error=error)
    (one,) = found(world)
    assert (one.severity, one.component) == ("critical", "kube-apiserver")
    assert word in one.summary
    for host in ("m1", "m2", "m3"):
        assert host in one.summary
    assert "none of the machines that were asked has that address" in one.summary
    assert "KeepConfiguration=yes" in one.remedy
    assert "ip address add 192.0.2.10/32" in one.remedy


@pytest.mark.parametrize(("failed", "words"), [("connection", "answers at"), ("name", "finds an")])
def test_one_node_alone_tells_of_it(world, failed, words):
    ways(world, failed=failed, error="x", hosts=("m1",))
    (one,) = found(world)
    assert f"nothing {words}" in one.summary
    assert "for m1, the only node that reported it" in one.summary


def test_the_machine_that_has_the_address(world):
    world.data("m2", "system")["addresses"].append("192.0.2.10")
    ways(world)
    (one,) = found(world)
    assert "m2 has that address" in one.summary
    assert "ss -ltnp" in one.remedy


def test_a_name_that_nobody_finds(world):
    ways(world, "https://api.example.com:6443", "name", "Name or service not known")
    (one,) = found(world)
    assert "api.example.com" in one.summary
    assert "getent hosts api.example.com" in one.remedy


@pytest.mark.parametrize(
    ("failed", "error"), [(None, None), ("certificate", "certificate has expired")]
)
def test_an_address_that_answers(world, failed, error):
    ways(world, failed=failed, error=error)
    assert found(world) == []
    assert verdict(world) == "clear"


def test_one_node_alone_does_not_reach_it(world):
    ways(world, failed=None, error=None, hosts=("m1", "m2", "m3"))
    ways(world, hosts=("w1",))
    assert found(world) == []


@pytest.mark.parametrize(
    "server", ["https://10.0.0.1:6443", "https://127.0.0.1:6443", "https://localhost:6443"]
)
def test_an_api_server_s_own_address(world, server):
    ways(world, server)
    assert found(world) == []


def test_the_load_balancers_of_agents(world):
    world.documents["w2"] = {**world.documents["w1"], "host": "w2", "node": "w2"}
    unit = {"name": "rke2-agent.service", "start_words": [], "fragment_path": "/x"}
    world.data("w1", "kubelet")["unit"] |= unit
    ways(world, "https://127.0.0.1:6443", hosts=("w1", "w2"))
    (one,) = found(world)
    assert "127.0.0.1:6443" in one.summary
    assert "systemctl restart rke2-agent.service" in one.remedy
    assert "keepalived" not in one.remedy


def test_an_api_server_that_runs_and_does_not_answer_itself(world):
    ways(world)
    none = {"status": None, "error": "timed out"}
    for host in ("m1", "m2", "m3"):
        server = {"pid": 90, "livez": none, "readyz": none, "version": none}
        world.documents[host]["collectors"]["api_server"] = {
            "status": "ok",
            "data": {"servers": [server]},
        }
    assert found(world) == []


def test_kubelets_that_wait_for_an_address_that_hangs(world):
    ways(world, failed="certificate", error=HANGS)
    without_pods(world)
    (one,) = found(world)
    assert one.severity == "critical"
    assert "start no static pod" in one.summary
    assert "192.0.2.10:6443" in one.summary


@pytest.mark.parametrize("change", ["refused", "young", "etcd runs", "runtime", "kubelet"])
def test_what_else_keeps_static_pods_from_starting(world, change):
    ways(world, failed="certificate", error=HANGS)
    without_pods(world)
    if change == "refused":
        ways(world, failed="connection", error="Connection refused")
    for host in ("m1", "m2", "m3"):
        if change == "young":
            world.data(host, "kubelet")["process"]["started_at"] = CLOCK - 30
        if change == "etcd runs":
            row = {"component": "etcd", "pid": 5, "argv": ["etcd"], "static": True}
            world.data(host, "instances")["processes"] = [row | {"started_at": CLOCK - 999}]
        if change == "runtime":
            world.documents[host]["collectors"]["runtime"] = {
                "status": "ok",
                "data": {"asked": True, "error": "connection refused"},
            }
        if change == "kubelet":
            world.data(host, "kubelet")["process"] = None
    assert found(world) == []


def test_without_the_ways_it_is_unknown(world):
    for document in world.documents.values():
        document["collectors"]["api_way"] = {"status": "denied", "data": None}
    assert verdict(world) == "unknown"


def test_two_machines_have_the_address(world):
    doubled_addresses.machines(world)
    doubled_addresses.give(world, "m2", "w1", address="192.0.2.10")
    ways(world)
    (one,) = found(world)
    assert "m2, w1 have that address at the same time, and no API server runs on w1" in one.summary
    assert "virtual_router_id" in one.remedy
    assert "--server=https://ADDRESS:6443" in one.remedy
    codes = {item.code: item for item in world.judge(faults={"KM178", "KM530"}).findings}
    assert codes["KM178"].because == ("KM530",)


LOCK = (
    "E1214 09:30:42.2 1 leaderelection.go:332] error retrieving resource lock"
    ' kube-system/plndr-cp-lock: leases.coordination.k8s.io "plndr-cp-lock" is forbidden: User'
    ' "kubernetes-admin" cannot get resource "leases" in API group "coordination.k8s.io"'
)


@pytest.mark.parametrize(
    ("failed", "holder", "is_told"),
    [("connection", "", True), ("connection", "m2", False), ("name", "", False)],
)
def test_why_kube_vip_does_not_hold_the_address(world, failed, holder, is_told):
    saying_pods.say(world, LOCK, host="m1", pod="kube-vip-m1", container="kube-vip", count=200)
    if holder:
        world.data(holder, "system")["addresses"].append("192.0.2.10")
    ways(world, failed=failed)
    (one,) = found(world)
    assert ("super-admin.conf" in one.summary) is is_told
    assert ("super-admin.conf" in one.remedy) is is_told
    assert any("plndr-cp-lock" in proof.text for proof in one.evidence) is is_told
