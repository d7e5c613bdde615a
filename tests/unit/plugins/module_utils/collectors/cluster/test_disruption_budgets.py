# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which PodDisruptionBudgets the evidence has, and the pods that they keep."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    disruption_budgets,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError

V1, V1BETA1 = (f"/apis/policy/{name}/poddisruptionbudgets" for name in ("v1", "v1beta1"))
PODS = "/api/v1/namespaces/shop/pods"


class Lists:
    """Lists by path, as Client.items gives them; an error is raised."""

    def __init__(self, **lists):
        self.lists, self.asked = lists, []

    def items(self, path, query=None):
        self.asked.append((path, query))
        given = self.lists.get({V1: "v1", V1BETA1: "v1beta1", PODS: "pods"}[path], ())
        if isinstance(given, Exception):
            raise given
        yield from given


def budget(selector=None, policy=None, conditions=(), generation=1, **status):
    numbers = {"expectedPods": 1, "currentHealthy": 1, "desiredHealthy": 1}
    spec = {"selector": selector or {"matchLabels": {"app": "cart"}}}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    return {
        "metadata": {"namespace": "shop", "name": "cart", "generation": generation},
        "spec": spec,
        "status": {
            "observedGeneration": 1,
            "disruptionsAllowed": 0,
            "conditions": list(conditions),
            **numbers,
            **status,
        },
    }


def pod(owner="ReplicaSet", phase="Running", ready="True", **meta):
    return {
        "metadata": {"name": "cart-1", "ownerReferences": [{"kind": owner}], **meta},
        "spec": {"nodeName": "w1"},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
    }


def found(*budgets, pods=None):
    client = Lists(v1=budgets, pods=[pod()] if pods is None else pods)
    return disruption_budgets.collect(client)[0]["items"]


def test_a_budget_that_lets_no_pod_go():
    api = Lists(v1=[budget(), budget(disruptionsAllowed=1)], pods=[pod()])
    data, cut = disruption_budgets.collect(api)
    (row,) = data["items"]
    assert (data["listed"], cut) == (2, False)
    assert (row["namespace"], row["name"], row["kept"]) == ("shop", "cart", 1)
    assert (row["expected"], row["healthy"], row["desired"], row["fresh"]) == (1, 1, 1, True)
    assert row["pods"] == [{"name": "cart-1", "node": "w1"}]
    assert [query for path, query in api.asked if path == PODS] == [
        {"fieldSelector": "spec.nodeName!=", "labelSelector": "app=cart"}
    ]


@pytest.mark.parametrize(
    "kept",
    [
        pod(owner="DaemonSet"),
        pod(phase="Pending"),
        pod(phase="Succeeded"),
        pod(deletionTimestamp="2026-11-27T08:00:00Z"),
        pod(annotations={disruption_budgets.MIRROR: "x"}),
        pod(ready="False"),  # as many are healthy as the budget wants
    ],
)
def test_pods_that_no_budget_keeps(kept):
    assert found(budget(), pods=[kept]) == []
    assert len(found(budget(), pods=[kept, pod()])) == 1


def test_a_budget_that_no_pod_counts_for():
    assert found(budget(selector={"matchLabels": {}}, expectedPods=0, desiredHealthy=0)) == []


@pytest.mark.parametrize(
    ("policy", "healthy", "generation", "rows"),
    [(None, 0, 1, 1), ("AlwaysAllow", 0, 1, 0), ("IfHealthyBudget", 1, 1, 0), (None, 1, 2, 1)],
)
def test_a_pod_that_is_not_ready(policy, healthy, generation, rows):
    tight = budget(policy=policy, generation=generation, currentHealthy=healthy)
    assert len(found(tight, pods=[pod(ready="False")])) == rows


def test_a_budget_whose_controller_has_not_counted_or_cannot():
    (row,) = found(budget(generation=2, disruptionsAllowed=1))
    assert row["fresh"] is False
    failed = {"type": "DisruptionAllowed", "reason": "SyncFailed", "message": "no\nscale"}
    (row,) = found(budget(conditions=[failed], expectedPods="many"))
    assert (row["failure"], row["expected"]) == ("no scale", None)


@pytest.mark.parametrize(
    ("selector", "query"),
    [
        (None, None),
        ({}, ""),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]},
            "a in (1,2)",
        ),
        (
            {
                "matchLabels": {"a": "1"},
                "matchExpressions": [
                    {"key": "b", "operator": "NotIn", "values": ["2"]},
                    {"key": "c", "operator": "Exists"},
                    {"key": "d", "operator": "DoesNotExist"},
                ],
            },
            "a=1,b notin (2),c,!d",
        ),
    ],
)
def test_the_selector_of_a_list(selector, query):
    assert disruption_budgets.selector_of(selector) == query


def test_an_older_release_and_one_that_refuses():
    api = Lists(v1=ApiError("absent", "HTTP 404", 404), v1beta1=[budget()], pods=[pod()])
    data, _cut = disruption_budgets.collect(api)
    assert len(data["items"]) == 1
    with pytest.raises(ApiError):
        disruption_budgets.collect(Lists(v1=ApiError("denied", "HTTP 403", 403)))


@pytest.mark.parametrize(
    ("owners", "owner"),
    [
        ([], None),
        ([{"kind": "A", "apiVersion": "v1"}], {"kind": "A", "group": ""}),
        (
            [
                {"kind": "A", "apiVersion": "v1"},
                {
                    "kind": "VirtualMachineInstance",
                    "apiVersion": "kubevirt.io/v1",
                    "controller": True,
                },
            ],
            {"kind": "VirtualMachineInstance", "group": "kubevirt.io"},
        ),
        ([{"kind": "x\ny", "apiVersion": 7}, "z"], {"kind": "x y", "group": ""}),
    ],
)
def test_the_object_that_made_a_budget(owners, owner):
    made = budget()
    made["metadata"]["ownerReferences"] = owners
    (row,) = found(made)
    assert row["owner"] == owner


def test_all_nodes_of_a_budget_are_counted():
    pods = [pod() for _index in range(8)]
    for index, item in enumerate(pods):
        item["spec"]["nodeName"] = f"w{index // 2 if index < 2 else index}"
    (row,) = found(budget(), pods=pods)
    assert (row["nodes"], row["node_count"]) == (["w0", "w2", "w3", "w4", "w5"], 7)


def test_a_budget_with_more_pods_than_are_listed(monkeypatch):
    monkeypatch.setattr(disruption_budgets, "MAX_PODS", 2)
    _data, cut = disruption_budgets.collect(Lists(v1=[budget()], pods=[pod()] * 3))
    assert cut is True


def test_more_budgets_than_are_looked_at():
    many = [budget()] * (disruption_budgets.MAX_KEPT + 1)
    data, cut = disruption_budgets.collect(Lists(v1=many, pods=[pod()] * 9))
    assert (len(data["items"]), cut) == (disruption_budgets.MAX_KEPT, True)
    assert {(row["kept"], len(row["pods"])) for row in data["items"]} == {
        (9, disruption_budgets.MAX_NAMED)
    }


@pytest.mark.parametrize(("count", "is_cut"), [(2, False), (3, True), (4, True)])
def test_more_budgets_than_are_read_are_cut(monkeypatch, count, is_cut):
    monkeypatch.setattr(disruption_budgets, "MAX_BUDGETS", 2)
    rows = [budget(disruptionsAllowed=1)] * 2 + [budget()] * (count - 2)
    data, cut = disruption_budgets.collect(Lists(v1=rows, pods=[pod()]))
    assert (data, cut) == ({"listed": 2, "items": []}, is_cut)
