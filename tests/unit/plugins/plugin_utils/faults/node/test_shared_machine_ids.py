# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that have one machine id: a part of KM530."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support.api_nodes import node, silent

ID, OTHER = "f" * 32, "e" * 32
BOOTS = {"m1": "a" * 36, "m2": "b" * 36, "m3": "c" * 36, "w1": "d" * 36}


@pytest.fixture
def posted(world: Any) -> Any:
    """Return a world in which each machine has ids of its own, and its Node has them too."""
    for number, (name, boot_id) in enumerate(BOOTS.items()):
        let(world, name, machine_id=f"{number}" * 32, boot_id=boot_id)
    return world


def let(world: Any, name: str, **ids: Any) -> None:
    """Let a host and its Node have these ids."""
    world.data(name, "system").update(ids)
    node(world, name).update(ids)


def judged(world: Any) -> list[Any]:
    result = world.judge(faults={"KM530"})
    return [item for item in result.findings if item.component == "machine-id"]


def test_each_machine_has_an_id_of_its_own(posted):
    assert judged(posted) == []


def test_two_machines_of_one_image(posted):
    for name in ("m2", "w1"):
        let(posted, name, machine_id=ID)
    (found,) = judged(posted)
    assert (found.code, found.severity, found.host) == ("KM530", "warning", "m2")
    for words in (ID, "m2, w1"):
        assert words in found.summary
    assert "systemd-machine-id-setup" in found.remedy
    assert {proof.host for proof in found.evidence} == {"m2", "w1"}


def test_two_spellings_are_one_id(posted):
    let(posted, "m2", machine_id=ID.upper())
    let(posted, "w1", machine_id=ID)
    assert len(judged(posted)) == 1


def test_a_machine_that_no_host_of_the_run_is(posted):
    del posted.documents["w1"]
    node(posted, "w1")["machine_id"] = ID
    let(posted, "m2", machine_id=ID)
    (found,) = judged(posted)
    assert {proof.kind for proof in found.evidence} == {"api", "file"}


def test_an_id_that_was_changed_since_the_start_of_the_kubelet_counts(posted):
    for name in ("m2", "w1"):
        let(posted, name, machine_id=ID)
    posted.data("w1", "system")["machine_id"] = OTHER
    assert judged(posted) == []


@pytest.mark.parametrize("ids", [{"boot_id": BOOTS["m2"]}, {"boot_id": None}, {"machine_id": ""}])
def test_nodes_on_one_kernel_are_one_machine(posted, ids):
    let(posted, "m2", machine_id=ID)
    let(posted, "w1", **{"machine_id": ID, **ids})
    assert judged(posted) == []


def test_a_node_of_before_counts_no_more(posted):
    del posted.documents["w1"]
    node(posted, "w1")["machine_id"] = ID
    let(posted, "m2", machine_id=ID)
    silent(posted, "w1")
    assert judged(posted) == []


def test_a_machine_that_the_inventory_has_twice_is_one(posted):
    for name in ("m2", "w1"):
        let(posted, name, machine_id=ID)
    posted.documents["m2"]["node"] = "w1"
    posted.data("api", "nodes")["items"].remove(node(posted, "m2"))
    assert judged(posted) == []


def test_without_an_api_the_hosts_tell(posted):
    for name in ("m2", "w1"):
        posted.data(name, "system")["machine_id"] = ID
        process = {"pid": 7, "argv": ["kubelet"], "started_at": 1799990000.0}
        posted.data(name, "kubelet")["process"] = process
    posted.api.update(status="error", reason="connection refused", collectors={})
    assert len(judged(posted)) == 1
