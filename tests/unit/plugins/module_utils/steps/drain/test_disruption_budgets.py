# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods a disruption budget keeps, and what the answer to an eviction means."""

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain import (
    disruption_budgets,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain import (
    plan as drain_plan,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain.plan import Pod
from tests.unit.support.fake_drain import CROSSED, TOO_MANY, budget, pod, status

Budget = disruption_budgets.Budget
ENDING = {"deletionTimestamp": "2026-11-21T09:00:00Z", "deletionGracePeriodSeconds": 0}


def ending(item: "dict[str, Any]", **more: Any) -> "dict[str, Any]":
    item["metadata"].update(dict(ENDING, **more))
    return item


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
        (pod("a"), {}, "disruptionsAllowed 0: 1 of 1 expected pod is healthy, 1 must be"),
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
