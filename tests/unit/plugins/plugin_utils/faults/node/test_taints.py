# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taints that keep pods away, cordons and fences: KM513 and KM514."""

from __future__ import annotations

import pytest

from tests.unit.support.api_nodes import LONG, NODE, NOW, judged, node, silent
from tests.unit.support.facts import facts

MASTER = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
CAF = {"key": "caf", "value": "log", "effect": "NoExecute"}


def waiting(world, message, tolerations=(), **more):
    world.data("api", "pending")["items"].append(
        {
            "namespace": "shop",
            "names": ["cart-1", "cart-2"],
            "pods": 2,
            "since": NOW,
            "owner": "ReplicaSet/cart",
            "scheduler": "default-scheduler",
            "message": message,
            "tolerations": list(tolerations),
            **more,
        }
    )


OLD = (
    "0/4 nodes are available: 1 node(s) had taint {caf: log}, that the pod didn't tolerate, 3"
    " node(s) didn't match node selector."
)
NAMED = (
    "0/4 nodes are available: 1 node(s) had untolerated taint {caf: log}, 3 node(s) had untolerated"
    " taint {node-role.kubernetes.io/control-plane: }. preemption: 0/4 nodes are available: 4"
    " Preemption is not helpful for scheduling."
)
UNNAMED = "0/4 nodes are available: 4 node(s) had untolerated taint(s). no new claims to deallocate"
SHORT = (
    "0/4 nodes are available: 1 node(s) had untolerated taint {caf: log}, 3 Insufficient cpu."
    " preemption: 0/4 nodes are available."
)


@pytest.mark.parametrize(
    ("message", "severity"),
    [(OLD, "warning"), (NAMED, "warning"), (UNNAMED, "warning"), (SHORT, "info")],
)
def test_a_taint_that_somebody_set(world, message, severity):
    node(world, "w1")["taints"] = [dict(CAF)]
    # a dedicated node that keeps nobody waiting is normal
    assert judged(world, "KM513") == ({"KM513": "clear"}, [])
    waiting(world, message)
    verdicts, (found,) = judged(world, "KM513")
    assert verdicts == {"KM513": "present"}
    assert (
        found.host,
        found.node,
        found.severity,
        found.risk,
    ) == ("w1", "w1", severity, 0)
    taint = "the taint caf=log:NoExecute of w1 "
    facts(found.summary, taint, "ReplicaSet shop/cart", "2 pods wait", "set by a user")
    assert "toleration" in found.remedy
    assert "Not by: any repair" in found.remedy
    assert found.command is None
    assert any(proof.object == "Pod shop/cart-1, cart-2" for proof in found.evidence)


def test_pods_that_tolerate_it_are_kept_away_by_something_else(world):
    node(world, "w1")["taints"] = [dict(CAF)]
    waiting(
        world,
        "0/4 nodes are available: 3 node(s) had untolerated taint(s), 1 Insufficient cpu.",
        [{"key": "caf", "operator": "Exists"}],
    )
    assert judged(world, "KM513") == ({"KM513": "clear"}, [])


def test_the_taint_of_the_control_plane_counts_where_there_is_nothing_else(single):
    items = single.data("api", "nodes")["items"]
    items[:] = [one for one in items if one["name"] == "m1"]
    waiting(single, "0/1 nodes are available: 1 node(s) had untolerated taint(s).")
    _dummy, (found,) = judged(single, "KM513")
    assert "node-role.kubernetes.io/control-plane:NoSchedule of m1" in found.summary
    assert found.severity == "warning"


@pytest.mark.parametrize(
    "message",
    [
        (
            "0/4 nodes are available: 1 node(s) had untolerated taint"
            " {node.kubernetes.io/unreachable: }, 3 node(s) didn't match."
        ),
        (
            "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 node(s) didn't match"
            " Pod's node affinity/selector."
        ),
    ],
)
def test_a_taint_of_the_lifecycle_controller_is_explained(world, message):
    silent(world, "w1")
    waiting(world, message)
    _dummy, (found,) = judged(world, "KM513")
    assert found.remedy.startswith("its owner decides")
    assert found.severity == "info"
    assert "node lifecycle controller" in found.summary
    assert "once the kubelet posts Ready" in found.remedy


@pytest.mark.parametrize(
    "message",
    [
        "",
        "0/4 nodes are available: 4 Insufficient cpu.",
        (
            "0/4 nodes are available: 1 node(s) were unschedulable, 3 node(s) didn't match node"
            " selector."
        ),
        "running PreBind plugin: binding volumes",
        None,
    ],
)
def test_pods_that_wait_for_something_else(world, message):
    node(world, "w1")["taints"] = [
        dict(CAF),
        {"key": NODE + "unschedulable", "effect": "NoSchedule"},
    ]
    waiting(world, message)
    assert judged(world, "KM513") == ({"KM513": "clear"}, [])


@pytest.mark.parametrize("effect", ["PreferNoSchedule", "Nonsense"])
def test_a_taint_that_keeps_nobody_away(world, effect):
    node(world, "w1")["taints"] = [{**CAF, "effect": effect}]
    waiting(world, UNNAMED)
    assert judged(world, "KM513") == ({"KM513": "clear"}, [])


def test_nodes_of_an_older_release_say_nothing_of_taints(world):
    del node(world, "w1")["taints"]
    assert judged(world, "KM513", "KM514")[0] == {"KM513": "not judged", "KM514": "not judged"}


@pytest.mark.parametrize("order", [(NAMED, SHORT), (SHORT, NAMED), (SHORT, SHORT)])
def test_pods_that_nothing_else_keeps_waiting_count(world, order):
    """Resources that are short as well may be what others wait for.

    Then, and only then, a taint is information.
    """
    node(world, "w1")["taints"] = [dict(CAF)]
    for number, message in enumerate(order):
        waiting(world, message, owner=f"ReplicaSet/r{number}")
    _dummy, (found,) = judged(world, "KM513")
    assert found.severity == ("warning" if NAMED in order else "info")


def test_of_two_effects_the_one_that_is_not_tolerated(world):
    node(world, "w1")["taints"] = [dict(CAF), {**CAF, "effect": "NoSchedule"}]
    waiting(world, NAMED, [{"key": "caf", "operator": "Exists", "effect": "NoExecute"}])
    _dummy, (found,) = judged(world, "KM513")
    assert found.summary.startswith("the taint caf=log:NoSchedule of w1 ")


def test_one_finding_for_a_taint_of_many_nodes_and_owners(world):
    for name in ("m2", "w1"):
        node(world, name)["taints"] = [dict(CAF)]
    for number in range(8):
        waiting(world, NAMED, owner=f"ReplicaSet/r{number}")
    _dummy, (found,) = judged(world, "KM513")
    assert (found.host, found.node) == (None, None)
    assert "of m2, w1 excludes" in found.summary
    assert "and 3 more: 16 pods wait" in found.summary


def test_a_list_that_was_cut_is_never_clear(world):
    world.api["collectors"]["pending"]["truncated"] = True
    assert judged(world, "KM513")[0] == {"KM513": "unknown"}
    node(world, "w1")["taints"] = [dict(CAF)]
    waiting(world, NAMED)
    assert judged(world, "KM513")[0] == {"KM513": "present"}


@pytest.mark.parametrize(
    ("cordon", "severity", "stated"),
    [
        (
            None,
            "warning",
            ("cordoned", "user", LONG),
        ),
        (
            {"run": "r1", "reason": "kernel", "held": True},
            "info",
            ("cordoned", "node_drain", "run r1: kernel", LONG),
        ),
        ({"run": "r1", "reason": "kernel", "held": False}, None, None),
    ],
)
def test_a_cordon_of_somebody_else(world, cordon, severity, stated):
    node(world, "w1").update(
        unschedulable=True,
        cordon=cordon,
        taints=[{"key": NODE + "unschedulable", "effect": "NoSchedule", "added": LONG}],
    )
    verdicts, found = judged(world, "KM514")
    assert verdicts == {"KM514": "present" if stated else "clear"}
    assert [(one.severity, one.host, one.command) for one in found] == (
        [(severity, "w1", None)] if stated else []
    )
    for one in found:
        facts(one.summary, *stated)


@pytest.mark.parametrize(
    ("taint", "severity", "said"),
    [
        (
            {
                "key": NODE + "out-of-service",
                "value": "nodeshutdown",
                "effect": "NoExecute",
                "added": LONG,
            },
            "warning",
            (
                "the node is fenced by the taint"
                " node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
                " since 2027-01-15T07:40:00Z: the node is declared dead"
            ),
        ),
        (
            {"key": "node.cloudprovider.kubernetes.io/shutdown", "effect": "NoSchedule"},
            "info",
            (
                "the node is fenced by the taint"
                " node.cloudprovider.kubernetes.io/shutdown:NoSchedule:"
                " the cloud says"
            ),
        ),
        (CAF, None, None),
        (MASTER, None, None),
        ({"key": NODE + "unreachable", "effect": "NoExecute"}, None, None),
    ],
)
def test_fences(world, taint, severity, said):
    node(world, "w1")["taints"] = [dict(taint)]
    verdicts, found = judged(world, "KM514")
    assert verdicts == {"KM514": "present" if said else "clear"}
    assert [one.severity for one in found] == ([severity] if said else [])
    assert all(
        one.summary.startswith(said) and "kubemend does not remove it" in one.remedy
        for one in found
    )


def test_values_of_another_type_are_unknown(world):
    node(world, "w1")["taints"] = [{"key": 7}]
    assert judged(world, "KM514") == ({"KM514": "unknown"}, [])
    node(world, "w1")["taints"] = [dict(CAF)]
    waiting(world, 7)
    assert judged(world, "KM513") == ({"KM513": "unknown"}, [])


def test_a_name_that_is_hostile_is_not_printed_as_a_command(world):
    item = node(world, "w1")
    item.update(name="w1; reboot\x1b[31m", unschedulable=True)
    _dummy, (found,) = judged(world, "KM514")
    assert "kubectl uncordon NODE" in found.remedy
    assert "\x1b" not in found.summary


UNAVAILABLE = {
    "type": "NetworkUnavailable",
    "status": "True",
    "reason": "R1",
    "message": "M1",
    "since": NOW,
}


def test_the_reason_of_the_condition_that_a_taint_stands_for(world):
    item = node(world, "w1")
    taint = {"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}
    item.update(taints=[taint], conditions=[*item["conditions"], dict(UNAVAILABLE)])
    waiting(
        world,
        "0/4 nodes are available: 1 node(s) had untolerated taint"
        " {node.kubernetes.io/network-unavailable: }, 3 node(s) didn't match.",
    )
    _verdicts, (found,) = judged(world, "KM513")
    assert "(R1: M1)" in found.summary
    assert "(R1: M1)" in found.evidence[0].text


UNINITIALISED = {
    "key": "node.cloudprovider.kubernetes.io/uninitialized",
    "value": "true",
    "effect": "NoSchedule",
}
CLUSTER_API = {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}
CILIUM = {"key": "node.cilium.io/agent-not-ready", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taint", "created", "remedy"),
    [
        (UNINITIALISED, "2027-01-15T07:40:00Z", "cloud controller manager"),
        (CLUSTER_API, "2027-01-15T07:40:00Z", "Cluster API"),
        (UNINITIALISED, "2027-01-15T07:55:00Z", None),  # it has just joined
        (CILIUM, "2027-01-15T07:40:00Z", None),  # an agent that is started again
    ],
)
def test_a_cloud_that_does_not_initialise_a_node(world, taint, created, remedy):
    node(world, "w1").update(taints=[dict(taint)], created=created)
    world.data("w1", "kubelet")["argv"] = ["kubelet", "--cloud-provider=external"]
    verdicts, found = judged(world, "KM514")
    assert verdicts == {"KM514": "present" if remedy else "clear"}
    for item in found:
        assert (item.host, item.node, item.severity) == ("w1", "w1", "warning")
        assert remedy in item.remedy
        assert created in item.summary
    told = [proof.text for item in found for proof in item.evidence if proof.kind == "process"]
    assert told == ["--cloud-provider=external"] * (bool(remedy) and taint is UNINITIALISED)


@pytest.mark.parametrize(
    ("taint", "verdict"),
    [(UNINITIALISED, "unknown"), (CLUSTER_API, "unknown"), (CILIUM, "clear")],
)
def test_a_node_whose_age_is_not_known(world, taint, verdict):
    node(world, "w1").update(taints=[dict(taint)], created=None)
    assert judged(world, "KM514") == ({"KM514": verdict}, [])
    node(world, "w1").update(created="2027-01-15T07:40:00Z")
    clock = {"asked_at": 1.8e9, "date": "Fri, 15 Jan 2027 09:00:00 GMT", "read_at": 1.8e9 + 1}
    world.data("api", "nodes")["clock"] = clock
    assert judged(world, "KM514") == ({"KM514": verdict}, [])


@pytest.mark.parametrize(
    ("taint", "words"),
    [(UNINITIALISED, "cloud controller manager. Install"), (CILIUM, "no toleration")],
)
def test_pods_get_no_toleration_of_a_node_that_is_not_set_up(world, taint, words):
    for item in world.data("api", "nodes")["items"]:
        item["taints"] = [dict(taint)]
    waiting(world, "0/4 nodes are available: 4 node(s) had untolerated taint(s).")
    _verdicts, (found,) = judged(world, "KM513")
    assert words in found.remedy
    assert "give them a toleration" not in found.remedy
