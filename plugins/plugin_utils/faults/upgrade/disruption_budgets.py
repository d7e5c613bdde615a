# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM728: check whether the drains of an upgrade can evict what disruption budgets cover."""

from __future__ import annotations

from collections.abc import Iterator

from ...evidence.answers.cluster.disruption_budgets import Budget, DisruptionBudgets
from ...evidence.document import one_line, shell_name
from ...models.api_node import and_others
from ...models.cluster import Cluster
from ...models.result import EvidenceRef
from ..base import CheckResult, Detection, cluster_check, without_kubernetes
from . import UPGRADE_OF


@cluster_check(
    "KM728",
    "Disruption budget lets no pod go",
    severity="warning",
    applies=UPGRADE_OF,
    tier="upgrade",
    cluster_needs=("disruption_budgets",),
)
def budgets(cluster: Cluster) -> Iterator[CheckResult]:
    """KM728: report PodDisruptionBudgets by which the drains of an upgrade do not end."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    answer = cluster.typed(DisruptionBudgets)
    counted = [item for item in answer.items if item.failure or _is_counted(item)]
    missing = [*cluster.missing("disruption_budgets"), *cluster.cut("disruption_budgets")]
    if len(counted) < len(answer.items):
        missing.append(cluster.missing_answer("disruption_budgets", "error"))
    yield CheckResult(tuple(_hit(cluster, item) for item in counted), tuple(missing))


def _is_counted(budget: Budget) -> bool:
    numbers = (budget.expected, budget.healthy, budget.desired)
    return budget.fresh and None not in numbers


def _is_for_good(budget: Budget) -> bool:
    """Tell whether a budget lets no pod go while all of its pods are healthy."""
    return (budget.desired or 0) >= (budget.expected or 0)


def _hit(cluster: Cluster, budget: Budget) -> Detection:
    namespace, name = one_line(budget.namespace, 63), one_line(budget.name, 253)
    reason, remedy, severity = _reading(budget)
    nodes = sorted({one_line(pod.node, 253) for pod in budget.pods})
    return Detection(
        f"a drain of {and_others(nodes)} does not end: PodDisruptionBudget {namespace}/{name}"
        f" {reason}",
        (
            EvidenceRef(
                "api",
                cluster.api_host,
                object=f"PodDisruptionBudget {namespace}/{name}",
                text=_counts(budget),
            ),
        ),
        remedy,
        component=f"{namespace}/{name}",
        severity=severity,
    )


def _counts(budget: Budget) -> str:
    pods = and_others([one_line(pod.name, 253) for pod in budget.pods])
    if budget.failure:
        return f"SyncFailed: {one_line(budget.failure, 200)}; it keeps {pods}"
    return (
        f"disruptionsAllowed 0, expectedPods {budget.expected}, currentHealthy {budget.healthy},"
        f" desiredHealthy {budget.desired}; it keeps {pods}"
    )


def _reading(budget: Budget) -> tuple[str, str, str | None]:
    """Return why a budget lets no pod go, what to do, and the severity if it is another one."""
    options = f"-n {shell_name(budget.namespace, 'NAMESPACE')}"
    edit = f"kubectl {options} edit pdb {shell_name(budget.name, 'NAME')}"
    if budget.failure:
        return (
            "lets none of its pods go, because its controller cannot count them",
            "let its selector take only the pods of one Deployment, StatefulSet or ReplicaSet, or"
            f" give it an integer as minAvailable: {edit}",
            None,
        )
    if _is_for_good(budget):
        return (
            f"wants at least {budget.desired} healthy pods and has {budget.expected}, so that none"
            " may go at any time",
            "give the workload more replicas, or let one of its pods go"
            f" (maxUnavailable: 1): {edit}; where no second replica can run, delete the pod by"
            " hand during the drain, at a time that suits its users",
            None,
        )
    return (
        f"lets none go at present: {budget.healthy} of {budget.expected} pods are healthy, and"
        f" {budget.desired} must be",
        f"find out why pods are not healthy: kubectl {options} get pods -o wide; the drain goes on"
        f" when more than {budget.desired} are",
        "info",
    )
