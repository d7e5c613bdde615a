# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of the control plane: their stores, their kubeadm-config, strangers and surplus pods."""

from __future__ import annotations

import pytest

from tests.unit.support.verdicts import MANAGER, SCHEDULER, missing_hosts, present, verdicts


def test_master_that_is_no_host_of_the_inventory(world):
    del world.documents["m3"]
    result = world.judge()
    assert present(result) == {("KM112", None, None)}
    assert result.findings[0].node == "m3"
    assert verdicts(result, "KM101")[MANAGER] == "unknown"
    assert missing_hosts(result, "KM101") == {"m3"}


def held_by(world, holder):
    for server in world.data("api", "locks")["servers"]:
        for lock in server["objects"]:
            if lock["name"] == SCHEDULER:
                lock["holder"] = f"{holder}_5d0cf9b4-2a39-4f0e-9c1d-6e6a7f0a2d11"


POD = "kosmos-scheduler-7c9fd5c6bd-x8k2w"


def test_a_lock_that_another_program_takes_part_in(world):
    held_by(world, POD)
    findings = [item for item in world.judge().findings if item.code == "KM112"]
    (found,) = findings
    assert (found.component, found.severity, found.node) == (SCHEDULER, "critical", None)
    assert POD in found.summary
    assert "kosmos-scheduler" in found.remedy
    assert "inventory" not in found.remedy


@pytest.mark.parametrize("change", ["name", "node", "nodes", "processes"])
def test_a_holder_that_may_be_a_host_is_none_of_another_program(world, change):
    held_by(world, "m4" if change == "name" else POD)
    if change == "node":
        nodes = world.data("api", "nodes")["items"]
        nodes.append({**nodes[0], "name": POD, "addresses": []})
    if change == "nodes":
        world.api["collectors"]["nodes"] = {"status": "denied", "data": None}
    for host in ("m1", "m2", "m3") if change == "processes" else ():
        running = world.data(host, "instances")["processes"]
        running[:] = [item for item in running if item["component"] != SCHEDULER]
    found = [item for item in world.judge().findings if item.code == "KM112"]
    assert all("inventory" in item.remedy for item in found)


def test_a_silent_host_of_another_name_may_be_the_stranger(world):
    """An inventory may call a master otherwise than its Node is called.

    Silent, it is known by its address or not at all.
    """
    document = world.documents.pop("m3")
    world.documents["master-three"] = {**document, "host": "master-three"}
    world.silence("master-three")
    assert present(world.judge()) == {("KM901", "master-three", None)}
    assert verdicts(world.judge(), "KM112") == {None: "unknown"}
    world.documents["master-three"]["address"] = "10.0.0.3"
    assert verdicts(world.judge(), "KM112") == {None: "clear"}
    assert missing_hosts(world.judge(), "KM101") == {"master-three"}


@pytest.mark.parametrize(
    "text",
    [
        'controllerManager:\n  extraArgs:\n    leader-elect: "false"\n',
        'controllerManager:\n  extraArgs:\n  - name: leader-elect\n    value: "false"\n',
    ],
)
def test_kubeadm_config_in_both_forms(world, text):
    world.api["collectors"]["kubeadm_config"] = {"status": "ok", "data": {"text": text}}
    result = world.judge()
    assert present(result) == {("KM110", None, MANAGER)}
    assert "kubeadm-config" in result.findings[0].remedy


def test_api_servers_with_different_stores(world):
    servers = world.data("api", "locks")["servers"]
    for server in servers:
        server["kube_system_uid"] = "2f6d8a51-77c4-4b0e-8b6f-0c9d3f1e5a20"
    servers[1]["kube_system_uid"] = "b3a0c7de-1f52-4e6a-9f0d-5d8e21c4a796"
    assert present(world.judge()) == {("KM111", None, None)}


def test_members_with_different_etcd_clusters(world):
    world.data("m3", "etcd")["cluster_id"] = "99"
    assert present(world.judge()) == {("KM111", None, None)}


def job(*creations, deleted=(), pods=()):
    events = [
        {
            "reason": "SuccessfulCreate",
            "message": f"Created pod: {name}",
            "first": f"2027-01-15T08:00:{at:02}Z",
            "last": None,
            "count": 1,
            "pod": name,
        }
        for name, at in creations
    ]
    events += [
        {
            "reason": "SuccessfulDelete",
            "message": f"Deleted pod: {name}",
            "first": "2027-01-15T08:00:50Z",
            "last": None,
            "count": 1,
            "pod": name,
        }
        for name in deleted
    ]
    return {
        "namespace": "default",
        "name": "j",
        "uid": "u",
        "completions": 1,
        "parallelism": 1,
        "events": events,
        "pods": list(pods),
    }


def pod(name, created, ended=None):
    stamp = "2027-01-15T08:00:{:02}Z".format
    return {
        "name": name,
        "uid": name,
        "created": stamp(created),
        "deletion_requested": None,
        "phase": "Failed" if ended else "Running",
        "finished_at": stamp(ended) if ended is not None else None,
    }


@pytest.mark.parametrize(
    ("item", "found"),
    [
        # two within a second
        (job(("a", 1), ("b", 1)), True),
        # one of them deleted again
        (job(("a", 1), ("b", 2), deleted=("b",)), True),
        (job(("a", 1)), False),
        # a retry, much later
        (job(("a", 1), ("b", 40)), False),
        # the first had failed
        (job(("a", 1), ("b", 3), pods=(pod("a", 1, ended=2), pod("b", 3))), False),
        # in the same second, whatever their names
        (job(("b", 1), ("a", 1), pods=(pod("b", 1, ended=1), pod("a", 1))), False),
        (
            job(
                ("b", 1), ("a", 1), ("c", 1), pods=(pod("b", 1, ended=1), pod("a", 1), pod("c", 1))
            ),
            True,
        ),
        # the first still runs
        (job(("a", 1), ("b", 3), pods=(pod("a", 1), pod("b", 3))), True),
        # somebody else took the first away
        (job(("a", 1), ("b", 3), pods=(pod("b", 3),)), False),
        # the Job controller itself did
        (job(("a", 1), ("b", 3), deleted=("a",), pods=(pod("b", 3),)), True),
    ],
)
def test_surplus_pods_of_a_job(world, item, found):
    world.data("api", "jobs")["items"] = [item]
    assert (("KM113", None, None) in present(world.judge())) is found


def test_a_list_of_jobs_that_was_cut_proves_no_absence(world):
    world.api["collectors"]["jobs"]["truncated"] = True
    assert set(verdicts(world.judge(), "KM113").values()) == {"unknown"}


def test_surplus_pods_name_the_fault_that_makes_them(world):
    world.data("api", "jobs")["items"] = [job(("a", 1), ("b", 1))]
    for component in (SCHEDULER, MANAGER):
        assert next(item for item in world.judge().findings if item.code == "KM113").because == ()
        world.manifest("m2", component, "--leader-elect=false")
        world.run("m2", component, "--leader-elect=false", elect=False)
    assert next(item for item in world.judge().findings if item.code == "KM113").because == (
        "KM101",
    )
