# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Node of the API against its machine and its kubelet: KM530. Tables."""

from __future__ import annotations

import pytest

from tests.unit.support.api_nodes import node, silent

LONG_AGO, JUST_NOW = 1799990000.0, 1799999970.0
GIB = 1024**3
ID, OTHER = "f" * 32, "e" * 32
BOOT, LATER = "b" * 36, "c" * 36


@pytest.fixture
def running(world):
    """Return a world whose worker is what its Node says."""
    world.data("w1", "kubelet")["process"] = {
        "pid": 7,
        "argv": ["kubelet"],
        "started_at": LONG_AGO,
        "exe": "/usr/bin/kubelet",
        "exe_deleted": False,
    }
    world.data("w1", "system").update(machine_id=ID, boot_id=BOOT)
    answers = {
        "pinning": {"cpus": {"online": "0-7"}},
        "pressure": {"memory": {"total": 16 * GIB, "available": GIB}},
    }
    for name, data in answers.items():
        world.documents["w1"]["collectors"][name] = {"status": "ok", "data": data}
    node(world, "w1").update(
        machine_id=ID,
        boot_id=BOOT,
        kubelet_version="v1.30.1",
        capacity={"cpu": 8000, "memory": 16 * GIB},
        addresses=[{"type": "InternalIP", "address": "10.0.0.100"}],
    )
    return world


def judged(world, host="w1"):
    result = world.judge(faults={"KM530"})
    verdicts = {item.host: item.verdict for item in result.verdicts}
    found = [item for item in result.findings if item.host == host]
    return verdicts.get(host, "not judged"), found


def twin(world, **system):
    """Let m2 run under the name of the worker."""
    world.documents["m2"]["node"] = "w1"
    world.data("m2", "system").update(hostname="w1", **system)
    world.data("m2", "kubelet")["process"] = {
        "pid": 9,
        "argv": ["kubelet"],
        "started_at": LONG_AGO,
    }


def test_a_node_that_is_its_machine(running):
    assert judged(running) == ("clear", [])


@pytest.mark.parametrize(
    ("capacity", "words"),
    [
        ({"cpu": 4000, "memory": 16 * GIB}, ["4 of 8 CPUs"]),
        ({"cpu": 8000, "memory": 8 * GIB}, ["8.0 GiB of 16.0 GiB"]),
        ({"cpu": 4000, "memory": 8 * GIB}, ["4 of 8 CPUs", "8.0 GiB of 16.0 GiB"]),
    ],
)
def test_cpus_and_memory_that_came_after_the_kubelet(running, capacity, words):
    node(running, "w1")["capacity"] = capacity
    verdict, (found,) = judged(running)
    assert verdict == "present"
    assert all(word in found.summary for word in words)
    assert (found.node, found.component, found.severity) == ("w1", "kubelet", "warning")
    assert "restart" in found.remedy


def test_the_static_policy_needs_more_than_a_restart(running):
    node(running, "w1")["capacity"] = {"cpu": 4000, "memory": 16 * GIB}
    running.data("w1", "kubelet")["config"] = {
        "path": "/var/lib/kubelet/config.yaml",
        "kind": "file",
        "text": "cpuManagerPolicy: static\n",
    }
    _verdict, (found,) = judged(running)
    assert "cpu_manager_state" in found.remedy


@pytest.mark.parametrize(
    ("capacity", "verdict"),
    [
        ({"cpu": 8000, "memory": int(15.5 * GIB)}, "clear"),  # of another kernel
        ({"cpu": 16000, "memory": 32 * GIB}, "clear"),  # a container that sees a part of it
        ({}, "clear"),
        (None, "not judged"),  # an older release collected
    ],
)
def test_what_is_no_less_or_not_known(running, capacity, verdict):
    node(running, "w1")["capacity"] = capacity
    assert judged(running) == (verdict, [])


@pytest.mark.parametrize("collector", ["pinning", "pressure"])
def test_a_machine_that_was_not_read_is_unknown(running, collector):
    running.documents["w1"]["collectors"][collector] = {"status": "denied", "data": None}
    assert judged(running)[0] == "unknown"


@pytest.mark.parametrize(
    ("version", "deleted", "verdict"),
    [
        ("Kubernetes v1.31.2", True, "present"),
        ("Kubernetes v1.30.1", True, "clear"),  # the same package again
        ("Kubernetes v1.31.2", False, "clear"),  # a PATH of another program
        (None, True, "unknown"),
        (None, False, "clear"),
    ],
)
def test_a_kubelet_that_was_not_restarted_after_its_upgrade(running, version, deleted, verdict):
    running.data("w1", "pinning")["kubelet_version"] = version
    running.data("w1", "kubelet")["process"]["exe_deleted"] = deleted
    found_verdict, found = judged(running)
    assert found_verdict == verdict
    for item in found:
        assert "v1.30.1" in item.summary
        assert "v1.31.2" in item.summary
        assert "/usr/bin/kubelet" in [proof.path for proof in item.evidence]


@pytest.mark.parametrize("system", [{"machine_id": ID, "boot_id": LATER}, {"machine_id": OTHER}])
def test_two_machines_with_one_name_are_told_once(running, system):
    twin(running, **{"boot_id": BOOT, **system})
    verdict, (found,) = judged(running)
    assert verdict == "present"
    assert found.severity == "critical"
    assert "m2" in found.summary
    assert "w1" in found.summary
    assert {proof.host for proof in found.evidence} == {"m2", "w1"}
    assert judged(running, "m2")[1] == []


def test_a_machine_that_the_inventory_has_twice_is_one(running):
    twin(running, machine_id=ID, boot_id=BOOT)
    assert judged(running) == ("clear", [])


def test_a_machine_with_the_name_and_another_certificate_is_told_by_its_own_fault(running):
    twin(running, machine_id=OTHER, boot_id=LATER)
    running.documents["m2"]["node"] = "m2"
    assert judged(running) == ("clear", [])


@pytest.mark.parametrize(
    ("machine_id", "boot_id", "verdict"),
    [
        (OTHER, LATER, "present"),
        (ID, LATER, "clear"),
        (OTHER, BOOT, "clear"),
        (None, None, "clear"),
    ],
)
def test_a_node_that_another_machine_posts(running, machine_id, boot_id, verdict):
    node(running, "w1").update(machine_id=machine_id, boot_id=boot_id)
    found_verdict, found = judged(running)
    assert found_verdict == verdict
    assert [item.severity for item in found] == ["critical"] * (verdict == "present")


def test_a_machine_that_was_renamed_leaves_its_former_node(running):
    former = {**node(running, "w1"), "name": "old", "machine_id": ID}
    running.data("api", "nodes")["items"].append(former)
    silent(running, "old")
    verdict, (found,) = judged(running)
    assert verdict == "present"
    assert found.node == "old"
    assert "10.0.0.100" in found.summary
    assert "kubectl delete node old" in found.remedy
    node(running, "old").update(addresses=[{"type": "InternalIP", "address": "10.0.0.101"}])
    assert judged(running)[0] == "clear"


def test_a_host_that_is_down_and_shares_an_address_is_no_node_of_before(running):
    """A virtual address may be an InternalIP, and moves to another node when its own is down."""
    virtual = {"type": "InternalIP", "address": "10.0.0.250"}
    for name in ("m2", "w1"):
        former = node(running, name).get("addresses") or []
        node(running, name)["addresses"] = [*former, virtual]
    silent(running, "m2")
    assert judged(running) == ("clear", [])


def test_an_address_that_all_nodes_have_tells_nothing(running):
    """Machines behind the same translation of addresses all post the same one."""
    shared = [{"type": "InternalIP", "address": "10.0.2.15"}]
    running.data("api", "nodes")["items"].append({**node(running, "w1"), "name": "old"})
    for item in running.data("api", "nodes")["items"]:
        item["addresses"] = shared
    silent(running, "old")
    assert judged(running) == ("clear", [])


def test_less_memory_tells_of_the_memory_manager_s_state(running):
    node(running, "w1")["capacity"] = {"cpu": 8000, "memory": 8 * GIB}
    _verdict, (found,) = judged(running)
    assert "memory_manager_state" in found.remedy
    assert "cpu_manager_state" not in found.remedy


@pytest.mark.parametrize(
    ("kubeconfig", "started"), [(None, LONG_AGO), ({"error": "missing"}, LONG_AGO), ({}, JUST_NOW)]
)
def test_machines_of_one_template_that_have_not_joined_are_no_twins(running, kubeconfig, started):
    twin(running, machine_id=OTHER, boot_id=LATER)
    kubelet = running.data("m2", "kubelet")
    kubelet["process"]["started_at"] = started
    kubelet["kubeconfig"] = {**(kubelet.get("kubeconfig") or {}), **(kubeconfig or {})}
    if kubeconfig is None:
        kubelet["kubeconfig"] = None
    assert [item.severity for item in judged(running)[1]] == []


def test_one_machine_that_was_booted_between_two_readings_is_no_twin(running):
    twin(running, machine_id=ID, boot_id=LATER)
    for name in ("m2", "w1"):
        running.data(name, "system")["addresses"] = ["10.0.0.100"]
    assert judged(running) == ("clear", [])


@pytest.mark.parametrize("ready", ["Unknown", None])
def test_a_node_that_nobody_posts_is_not_compared(running, ready):
    silent(running, "w1", ready)
    node(running, "w1")["capacity"] = {"cpu": 1000}
    assert judged(running) == ("not_applicable", [])


def test_a_kubelet_that_has_just_started_and_posts_its_machine_is_clear(running):
    running.data("w1", "kubelet")["process"]["started_at"] = JUST_NOW
    assert judged(running) == ("clear", [])


def test_a_kubelet_that_has_just_started_has_time(running):
    running.data("w1", "kubelet")["process"]["started_at"] = JUST_NOW
    node(running, "w1").update(capacity={"cpu": 1000}, machine_id=OTHER, boot_id=LATER)
    assert judged(running) == ("unknown", [])


def test_no_api(running):
    running.api.update(status="error", reason="connection refused", collectors={})
    assert judged(running)[0] == "unknown"


def test_a_machine_whose_processors_the_kubelet_does_not_find(running):
    running.data("w1", "system")["kernel"] = "5.6.0"
    node(running, "w1")["capacity"] = {"cpu": 0, "memory": 16 * GIB}
    verdict, (found,) = judged(running)
    assert (verdict, found.severity) == ("present", "critical")
    assert "CONFIG_NUMA (its kernel is 5.6.0)" in found.summary
    assert "more came online" not in found.summary
    assert "89859" in found.remedy
