# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that no host of the run is, and hosts that are no node: what is judged of them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import installer
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    node_hosts,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    result as model_result,
)
from tests.unit.plugins.plugin_utils.faults.test_recorded import FOLDER


def verdict(result, code, host=None):
    return next(
        (item.verdict for item in result.verdicts if (item.code, item.host) == (code, host)), None
    )


def found(result, code):
    return [item.host or item.node for item in result.findings if item.code == code]


def covered(result):
    return next(one for one in result.coverage if one.cluster)


def test_a_worker_that_no_host_of_the_run_is(world):
    del world.documents["w1"]
    result = world.judge()
    assert found(result, "KM904") == ["w1"]
    assert found(result, "KM112") == []
    assert covered(result) == model_result.Coverage(
        covered(result).cluster, 4, 3, (("w1", node_hosts.NO_HOST),)
    )


def test_a_master_is_told_by_the_other_fault(world):
    del world.documents["m3"]
    result = world.judge()
    assert found(result, "KM112") == ["m3"]
    assert found(result, "KM904") == []
    assert covered(result).left == (("m3", node_hosts.NO_HOST),)


def test_every_node_audited(world):
    result = world.judge()
    assert verdict(result, "KM904") == "clear"
    assert (
        covered(result).nodes,
        covered(result).audited,
        covered(result).left,
    ) == (4, 4, ())


def test_an_address_is_as_good_as_a_name(world):
    node = world.data("api", "nodes")["items"][-1]
    node.update(name="ip-10-0-0-100", addresses=[{"type": "InternalIP", "address": "10.0.0.100"}])
    result = world.judge()
    assert verdict(result, "KM904") == "clear"
    assert covered(result).audited == 4


@pytest.mark.parametrize("status", ["unreachable", "error", "not_asked"])
def test_a_silent_host_of_another_name_may_be_it(world, status):
    world.documents["worker"] = {**world.documents.pop("w1"), "host": "worker"}
    world.silence("worker", status)
    result = world.judge()
    assert found(result, "KM904") == []
    assert verdict(result, "KM904") in ("unknown", None)
    assert ("worker", node_hosts.LIMIT if status == "not_asked" else status) in covered(result).left


def test_more_nodes_than_silent_hosts_are_told_all(world):
    del world.documents["w1"]
    items = world.data("api", "nodes")["items"]
    items.append({**items[-1], "name": "w2"})
    world.documents["other"] = {**world.documents["m1"], "host": "other"}
    world.silence("other")
    assert sorted(found(world.judge(), "KM904")) == ["w1", "w2"]


def test_a_host_left_out_by_limit_is_named_so(world):
    world.silence("w1", "not_asked")
    result = world.judge()
    assert covered(result).left == (("w1", node_hosts.LIMIT),)
    assert found(result, "KM904") == []


def test_a_host_left_out_by_kubemend_hosts_is_named_so(world):
    world.silence("w1", "not_asked")
    world.documents["w1"]["reason"] = document.NOT_NAMED
    assert covered(world.judge()).left == (("w1", node_hosts.PATTERN),)


def test_an_api_that_did_not_answer(world):
    world.api.update(status="error", reason="connection refused", collectors={})
    result = world.judge()
    assert verdict(result, "KM904") == "unknown"
    assert (
        covered(result).nodes,
        covered(result).audited,
    ) == (None, 4)


@pytest.mark.parametrize(
    "items", [None, "w1", [None, 1, "w1", {"name": 7}, {"name": ["w1"]}, {"addresses": "x"}]]
)
def test_nodes_of_another_shape_cost_nothing_else(world, items):
    world.data("api", "nodes")["items"] = items
    assert found(world.judge(), "KM904") == []


def test_hosts_of_the_inventory_outside_the_run():
    one = model_result.Coverage(
        "k", 3, 1, (("w1", node_hosts.NO_HOST), ("w2", node_hosts.NO_HOST), ("w3", "unreachable"))
    )
    outside = {
        "w1": {"reason": "group", "address": "10.0.0.1"},
        "worker-2": {"reason": "pattern", "address": "w2"},
        "w3": {"reason": "group", "address": "w3"},
    }
    assert node_hosts.placed(one, outside).left == (
        ("w1", "group"),
        ("w2", "pattern"),
        ("w3", "unreachable"),
    )


def test_a_recorded_cluster_without_the_host_at_fault_names_it():
    paths = [
        str(path)
        for path in sorted((FOLDER / "v1.36.3-address-gone" / "evidence").glob("*.json"))
        if path.name != "w1.json"
    ]
    result = fault_engine.evaluate(evidence_sources.stream(paths), deep=True)
    assert found(result, "KM904") == ["w1"]
    assert ("w1", node_hosts.NO_HOST) in covered(result).left


# Machines that are no node.


def test_this_machine(monkeypatch):
    monkeypatch.setattr(installer.os.path, "lexists", lambda path: False)

    class Context:
        processes = []  # noqa: RUF012 - never written

    assert installer.collect(Context())["traces"] == []
    Context.processes = [(installer.os.getpid(), "kubelet")]
    assert installer.collect(Context())["traces"] == [installer.PROCESS]
    monkeypatch.setattr(installer.procfs, "link", lambda pid, name: f"pid:[{pid}]")
    Context.processes = [(1, "kubelet")]
    assert installer.collect(Context())["traces"] == []


# How many faults were judged of a host.


def judged(result):
    return {row.host: row.judged for row in result.hosts}


def test_a_host_of_which_everything_was_judged(world):
    left = {item.code for item in world.judge().not_judged if item.cluster}
    whole = world.judge()
    assert whole.faults == sum(fault.tier == "core" for fault in fault_engine.CATALOGUE.values())
    assert all(count <= whole.faults - len(left) for count in judged(whole).values())


def test_what_is_not_chosen_unknown_or_of_a_slice_is_not_judged(world):
    whole = world.judge()
    some = world.judge(faults=frozenset(["KM101", "KM501"]))
    assert set(judged(some).values()) == {2}
    assert some.faults == whole.faults
    assert max(judged(world.judge(part=True)).values()) < min(judged(whole).values())
    before = judged(whole)
    world.documents["w1"]["collectors"]["kubelet"] = {
        "status": "error",
        "error": "it is on fire",
        "data": None,
    }
    after = judged(world.judge())
    assert after["w1"] < before["w1"]


def test_evidence_without_a_collector_lowers_the_count_of_its_host_alone(world):
    before = judged(world.judge())
    del world.documents["w1"]["collectors"]["swap"]
    after = judged(world.judge())
    assert after["w1"] < before["w1"]
    assert after["m1"] == before["m1"]
