# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who leaves, who stays, what refuses a drain, and what an answer to an eviction means: tables."""

import json
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    cordon_annotation,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain import (
    disruption_budgets,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain import (
    plan as drain_plan,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain.plan import Pod
from tests.unit.support.fake_drain import CROSSED, TOO_MANY, budget, node, pod, stamp, status
from tests.unit.support.fake_file_change import RUN

Budget = disruption_budgets.Budget
ENDING = {"deletionTimestamp": "2026-11-21T09:00:00Z", "deletionGracePeriodSeconds": 0}
OURS = {"kubemend.io/cordon": json.dumps({"run": RUN, "reason": "x", "at": "2026-11-21T09:00:00Z"})}


def ending(item: "dict[str, Any]", **more: Any) -> "dict[str, Any]":
    item["metadata"].update(dict(ENDING, **more))
    return item


def mentioned(item: "dict[str, Any]") -> "dict[str, Any]":
    """Its owner only mentions itself, and makes no other pod in its place."""
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
    assert made.notes == ["the grace period is longer than the time limit of 900 s: n/l (3600 s)"]


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
    assert Pod(item).held is held
    item["status"] = {"phase": "Running", "containerStatuses": []}  # nobody says that it ended
    assert not Pod(item).held
    item["status"]["containerStatuses"] = [
        {"name": "c", "state": {"terminated": {}}},
        {"name": "d", "state": {"running": {}}},
    ]
    assert not Pod(item).held


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


def test_an_annotation_without_a_cordon_is_no_cordon_of_ours() -> None:
    assert (
        cordon_annotation.cordon_of(dict(node("w1"), metadata={"name": "w1", "annotations": OURS}))
        is None
    )


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
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "a"}}, True),
        ({"matchLabels": {"app": "b"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        (
            {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]},
            False,
        ),
        ({"matchExpressions": [{"key": "app", "operator": "Like"}]}, False),
    ],
)
def test_selectors(selector: Any, matches: bool) -> None:
    assert disruption_budgets.selects(selector, {"app": "a"}) is matches
    assert disruption_budgets.selects({}, {"app": "a"}, all_if_empty=False) is False


@pytest.mark.parametrize(
    ("item", "made", "said"),
    [
        (pod("a"), {}, "disruptionsAllowed 0: 1 of 1 expected pods are healthy, 1 must be"),
        (pod("a"), {"allowed": 1}, None),
        (pod("a", phase="Pending"), {}, None),
        (pod("a", phase="Failed"), {}, None),
        (ending(pod("a")), {}, None),
        (pod("a", ready=False), {}, None),
        (pod("a", ready=False), {"healthy": 0}, "AlwaysAllow (1.26 and newer) would let it go"),
        (pod("a", ready=False), {"healthy": 0, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, None),
        (pod("a", ready=False), {"desired": 0}, "does not let it go"),
        (pod("a", labels={"app": "b"}), {}, None),
    ],
)
def test_what_a_budget_says_by_its_numbers(
    item: "dict[str, Any]", made: "dict[str, Any]", said: "str | None"
) -> None:
    found = disruption_budgets.would_block(Pod(item), [Budget(budget("p", "a", **made))])
    assert (
        found is None
        if said is None
        else "PodDisruptionBudget n/p" in str(found) and said in str(found)
    )


def test_budgets_without_numbers() -> None:
    fresh = budget("p", "a", 1)
    fresh["metadata"]["generation"] = 2
    assert "has not counted its pods yet" in str(
        disruption_budgets.would_block(Pod(pod("a")), [Budget(fresh)])
    )
    # what it has of the others is old too
    assert "has not counted its pods yet" in str(
        disruption_budgets.would_block(Pod(pod("a", ready=False)), [Budget(fresh)])
    )
    failed = budget("p", "a")
    failed["status"]["conditions"] = [
        {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "SyncFailed",
            "message": "found no controller",
        }
    ]
    assert "cannot count its pods: found no controller" in str(
        disruption_budgets.would_block(Pod(pod("a")), [Budget(failed)])
    )


@pytest.mark.parametrize(
    ("item", "refused"),
    [
        (pod("a"), True),
        (pod("a", ready=False), True),
        (pod("a", phase="Pending"), False),
        (pod("a", phase="Succeeded"), False),
        (ending(pod("a")), False),
    ],
)
def test_two_budgets_of_one_pod_refuse_it_where_they_are_asked(
    item: "dict[str, Any]", refused: bool
) -> None:
    made = drain_plan.plan(
        [Pod(item)],
        [Budget(budget("p", "a", 1)), Budget(budget("q", "a", 1)), Budget(budget("r", "b", 1))],
    )
    assert bool(made.refused) is refused
    assert ("2 PodDisruptionBudgets (n/p, n/q)" in "; ".join(made.refused)) is refused


def test_budgets_that_let_go_some_at_a_time() -> None:
    pods = [Pod(pod(name, labels={"app": "a"})) for name in "xyz"]
    assert (
        "covers 3 of these pods and allows 2 at a time"
        in disruption_budgets.tight(pods, [Budget(budget("p", "a", 2))])[0]
    )
    assert (
        disruption_budgets.tight(pods, [Budget(budget("p", "a", 3)), Budget(budget("q", "a", 0))])
        == []
    )


def error(answer: "tuple[int, Any]", retry_after: "str | None" = None) -> ApiError:
    return ApiError("error", f"POST: HTTP {answer[0]:d}", answer[0], retry_after, answer[1])


@pytest.mark.parametrize(
    ("answer", "retry", "kind", "seconds"),
    [
        (status(404, "gone"), None, "gone", 0),
        (status(409, "precondition"), None, "changed", 5),
        (
            status(
                429,
                TOO_MANY,
                (
                    "DisruptionBudget",
                    "The disruption budget p needs 1 healthy pods and has 1 currently",
                ),
            ),
            None,
            "budget",
            5,
        ),
        (status(429, TOO_MANY, retryAfterSeconds=10), None, "budget", 10),
        (status(429, "x"), "7", "busy", 7),
        ((429, None), None, "busy", 5),
        ((429, None), "Wed, 21 Oct 2026 07:28:00 GMT", "busy", 5),
        ((429, None), "-3", "busy", 5),
        ((429, None), "inf", "busy", 5),
        (status(500, CROSSED), None, "crossing", 5),
        (status(500, "etcd"), None, "unsure", 5),
        (status(504, "conflicts", retryAfterSeconds=10), None, "unsure", 10),
        (status(408, "x"), None, "unsure", 5),
        (status(403, "x", ("NamespaceTerminating", "y")), None, "closing", 5),
        (status(403, "x"), None, "refused", 5),
        (status(422, "x"), None, "refused", 5),
    ],
)
def test_what_an_answer_means(
    answer: "tuple[int, Any]", retry: "str | None", kind: str, seconds: float
) -> None:
    assert disruption_budgets.meaning(error(answer, retry))[:2] == (kind, seconds)


def test_no_answer_is_no_knowledge() -> None:
    assert disruption_budgets.meaning(ApiError("timeout", "no answer"))[0] == "unsure"


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
