# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who leaves, who stays, what refuses a drain, and what an answer to an eviction means: tables."""

import json
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain import (
    plan as drain_plan,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain.plan import Pod
from tests.unit.support.facts import facts_of_each
from tests.unit.support.fake_drain import node, pod, stamp
from tests.unit.support.fake_file_change import RUN

ENDING = {"deletionTimestamp": "2026-11-21T09:00:00Z", "deletionGracePeriodSeconds": 0}
OURS = {"kubemend.io/cordon": json.dumps({"run": RUN, "reason": "x", "at": "2026-11-21T09:00:00Z"})}


def ending(item: "dict[str, Any]", **more: Any) -> "dict[str, Any]":
    item["metadata"].update(dict(ENDING, **more))
    return item


def mentioned(item: "dict[str, Any]") -> "dict[str, Any]":
    """Return a pod whose owner only mentions itself, and makes no other pod in its place."""
    item["metadata"]["ownerReferences"][0]["controller"] = False
    return item


@pytest.mark.parametrize(
    ("item", "allow", "goes", "stays", "refused"),
    [
        (pod("a"), (), "evict", "", ""),
        (pod("a", "ReplicationController"), (), "evict", "", ""),
        (pod("a", "DaemonSet"), (), "", "DaemonSets", ""),
        (pod("a", "DaemonSet", phase="Failed"), (), "", "DaemonSets", ""),
        (ending(pod("a", "DaemonSet")), (), "", "DaemonSets", ""),
        (pod("a", None, mirror=True), (), "", "static pods", ""),
        (pod("a", "Node", mirror=True), (), "", "static pods", ""),
        (ending(pod("a")), (), "wait", "", ""),
        (ending(pod("a", None, emptydir=True)), (), "wait", "", ""),
        (pod("a", None), (), "evict", "", "drain_bare_pods"),
        (pod("a", None), ("drain_bare_pods",), "evict", "", ""),
        (mentioned(pod("a")), (), "evict", "", "drain_bare_pods"),
        (pod("a", None, phase="Succeeded"), (), "evict", "", ""),
        (pod("a", None, phase="Pending"), (), "evict", "", "drain_bare_pods"),
        (pod("a", emptydir=True), (), "evict", "", "drain_local_storage"),
        (pod("a", emptydir=True), ("drain_local_storage",), "evict", "", ""),
        (pod("a", emptydir=True, phase="Failed"), (), "evict", "", ""),
        (pod("a", "Job", phase="Failed"), (), "", "a Job that has not ended", ""),
        (pod("a", "Job"), (), "evict", "", ""),
        (ending(pod("a", "Job", phase="Failed")), (), "wait", "", ""),
        (pod("a", finalizers=["x/y"]), (), "evict", "", ""),
    ],
)
def test_where_a_pod_goes(
    item: "dict[str, Any]", allow: "tuple[str, ...]", goes: str, stays: str, refused: str
) -> None:
    made = drain_plan.plan([Pod(item)], [], allow, frozenset([("n", "owner", "u-owner")]))
    assert ("evict" if made.evict else "wait" if made.wait else "") == goes
    assert stays in made.staying()
    assert bool(made.staying()) == bool(stays)
    assert refused in "; ".join(made.refused)
    assert len(made.refused) == bool(refused)


def test_everything_that_refuses_is_said_at_once_and_long_lists_are_counted() -> None:
    made = drain_plan.plan(
        [Pod(pod(f"bare{number:02d}", None)) for number in range(14)]
        + [Pod(pod("l", emptydir=True, grace=3600))],
        [],
        (),
        seconds=900,
    )
    assert len(made.refused) == 2
    assert "n/bare09 and 4 more" in made.refused[0]
    assert "n/bare10" not in made.refused[0]
    facts_of_each(made.notes, ("900 s", "n/l", "3600 s"))


def with_devices(item: "dict[str, Any]", *names: str, kind: str = "containers") -> "dict[str, Any]":
    item["spec"][kind] = [{"name": "c", "resources": {"limits": dict.fromkeys(names, "1")}}]
    return item


@pytest.mark.parametrize(
    ("item", "refused"),
    [
        (with_devices(pod("a", "DaemonSet"), "cpu", "nvidia.com/gpu"), "n/a (nvidia.com/gpu)"),
        (
            with_devices(pod("a", "Node", mirror=True), "intel.com/sriov", kind="initContainers"),
            "n/a (intel.com/sriov)",
        ),
        (
            with_devices(
                pod("a", "DaemonSet"),
                "cpu",
                "hugepages-2Mi",
                "kubernetes.io/batch-cpu",
                "attachable.kubernetes.io/x",
            ),
            "",
        ),
        (with_devices(pod("a", "DaemonSet", phase="Failed"), "nvidia.com/gpu"), ""),
        (with_devices(pod("a"), "nvidia.com/gpu"), ""),  # it leaves
    ],
)
def test_who_stays_and_may_lose_its_devices_refuses_the_drain_before_a_restart(
    item: "dict[str, Any]", refused: str
) -> None:
    made = drain_plan.plan([Pod(item)], [], restarts=True)
    assert refused in "; ".join(made.refused)
    assert len(made.refused) == bool(refused)
    assert not refused or "kubemend_allow: [kubelet_restart]" in made.refused[0]
    assert not drain_plan.plan([Pod(item)], [], ["kubelet_restart"], restarts=True).refused
    assert not drain_plan.plan([Pod(item)], []).refused


@pytest.mark.parametrize(
    ("item", "held"),
    [
        (ending(pod("a", finalizers=["x/y"], phase="Failed")), True),
        (ending(pod("a", finalizers=["x/y"])), False),
        (ending(pod("a", phase="Failed")), False),
        (pod("a", finalizers=["x/y"], phase="Failed"), False),
        (
            ending(pod("a", finalizers=["x/y"], phase="Failed"), deletionGracePeriodSeconds=30),
            False,
        ),
    ],
)
def test_only_what_has_ended_is_held_by_its_finalizers_alone(
    item: "dict[str, Any]", held: bool
) -> None:
    assert Pod(item).is_held is held
    item["status"] = {"phase": "Running", "containerStatuses": []}  # nobody says that it ended
    assert not Pod(item).is_held
    item["status"]["containerStatuses"] = [
        {"name": "c", "state": {"terminated": {}}},
        {"name": "d", "state": {"running": {}}},
    ]
    assert not Pod(item).is_held


@pytest.mark.parametrize(
    ("item", "allow", "said"),
    [
        (node("w1"), (), None),
        (node("w1", "False", "KubeletNotReady"), (), None),
        (
            node("w1", "Unknown", "NodeStatusUnknown"),
            ("fenced",),
            "does not post its status (Ready is Unknown, NodeStatusUnknown)",
        ),
        (node("w1", "False", "NodeStatusUnknown"), (), "does not post its status"),
        (node("w1", "Unknown", "NodeStatusNeverUpdated"), (), "does not post its status"),
        (dict(node("w1"), status={}), (), "does not post its status (Ready is Unknown)"),
        (node("w1", unschedulable=True), (), "another client cordoned it"),
        (node("w1", unschedulable=True), ("fenced",), None),
        (
            dict(node("w1", unschedulable=True), metadata={"name": "w1", "annotations": OURS}),
            (),
            None,
        ),
        (
            dict(
                node("w1", unschedulable=True),
                metadata={"name": "w1", "annotations": {"kubemend.io/cordon": "{}"}},
            ),
            (),
            "another client",
        ),
        (
            dict(
                node("w1", unschedulable=True),
                metadata={"name": "w1", "annotations": {"kubemend.io/cordon": "[1"}},
            ),
            (),
            "another client",
        ),
        (
            node("w1", taints=[{"key": "node.cloudprovider.kubernetes.io/shutdown"}]),
            (),
            "taint node.cloudprovider.kubernetes.io/shutdown",
        ),
        (node("w1", taints=[{"key": "node.kubernetes.io/out-of-service"}]), ("fenced",), None),
        (node("w1", taints=[{"key": "dedicated"}]), (), None),
    ],
)
def test_nodes_that_are_refused(
    item: "dict[str, Any]", allow: "tuple[str, ...]", said: "str | None"
) -> None:
    found = drain_plan.refusal(item, allow)
    assert found is None if said is None else said in str(found)


@pytest.mark.parametrize(
    ("renewed", "old"),
    [
        ("2026-11-21T09:00:30.123456Z", False),
        ("2026-11-21T08:59:59.000000Z", True),
        ("2026-11-21T09:59:00Z", False),
        (None, False),
        ("soon", False),
    ],
)
def test_leases(renewed: "str | None", old: bool) -> None:
    now = drain_plan.moment("2026-11-21T09:00:40Z")
    assert now is not None
    assert (
        drain_plan.old_lease({"spec": {"renewTime": renewed, "leaseDurationSeconds": 40}}, now)
        is not None
    ) is old
    assert drain_plan.old_lease(None, now) is None
    assert drain_plan.moment(stamp()) is not None


def one(name: str, ready: str = "True", unschedulable: bool = False) -> "dict[str, Any]":
    return {"name": name, "ready": ready, "unschedulable": unschedulable}


@pytest.mark.parametrize(
    ("nodes", "limit", "said"),
    [
        ([one("w1"), one("w2")], 1, None),
        ([one("w1"), one("w2", "Unknown")], 1, "other nodes are out already: w2 (not ready)"),
        ([one("w1"), one("w2", unschedulable=True)], 1, "w2 (cordoned)"),
        ([one("w1"), one("w2", unschedulable=True)], 2, None),
        (
            [one("w1"), one("w2", "False"), one("w3", "False", True)],
            2,
            "w2 (not ready), w3 (not ready)",
        ),
        ([one("w1", "Unknown"), one("w2", "Unknown")], 1, None),
        ([one("w1", unschedulable=True), one("w2", "False")], 1, "w2"),
        ([one("w1", unschedulable=True), one("w2")], 1, None),
        ([one("w2", "False")], 1, None),
    ],
)
def test_how_many_nodes_may_be_out(
    nodes: "list[dict[str, Any]]", limit: int, said: "str | None"
) -> None:
    objects = [
        node(
            item["name"],
            item["ready"],
            **({"unschedulable": True} if item["unschedulable"] else {}),
        )
        for item in nodes
    ]
    for given in (nodes, objects):
        found = drain_plan.may_take_out(given, "w1", limit)
        assert found is None if said is None else said in str(found)


@pytest.mark.parametrize(
    ("version", "can"),
    [
        ({"major": "1", "minor": "18+"}, True),
        ({"major": "1", "minor": "17"}, False),
        ({"major": "2", "minor": "0"}, True),
        ({}, False),
        (None, False),
    ],
)
def test_dry_run(version: Any, can: bool) -> None:
    assert drain_plan.can_dry_run(version) is can


@pytest.mark.parametrize(
    ("resources", "version"),
    [
        ([{"name": "pods"}, {"name": "pods/eviction", "group": "policy", "version": "v1"}], "v1"),
        ([{"name": "pods/eviction", "group": "policy", "version": "v1beta1"}], "v1beta1"),
        ([{"name": "pods/eviction"}], "v1beta1"),
        ([], None),
    ],
)
def test_the_version_of_the_eviction(
    resources: "list[dict[str, str]]", version: "str | None"
) -> None:
    assert drain_plan.eviction_version({"resources": resources}) == version
