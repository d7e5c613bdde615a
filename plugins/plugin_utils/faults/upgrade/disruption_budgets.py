# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM728: check whether the drains of an upgrade can evict what disruption budgets cover."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...evidence.answers.cluster.disruption_budgets import Budget, DisruptionBudgets
from ...evidence.document import one_line, shell_name
from ...models.cluster import Cluster
from ...models.result import EvidenceRef
from ..base import CheckResult, Detection, cluster_check, without_kubernetes
from . import UPGRADE_OF

# Where operators of storage and of virtual machines keep their budgets, also those without an
# owner: they hold a budget tight, and lift it for pods that they moved off a cordoned node.
_KEEPERS = re.compile(
    r"longhorn(?:-.*)?|rook-ceph(?:-.*)?|portworx(?:-.*)?|linstor(?:-.*)?|linbit-.*|piraeus-.*"
)
_KEPT_NAMES = re.compile(
    r"rook-ceph-.*|instance-manager-.*|px-(?:storage|kvdb).*|kubevirt-disruption-budget-.*"
)
OF_OPERATOR = (
    "its operator, as a rule, moves the pods or lets them go once the node is cordoned. Do not edit"
    " the budget, and do not delete its pods by hand, which can take storage or a virtual machine"
    " down. Before the drain, see what the operator's own documentation says of the maintenance of"
    " a node"
)


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
    nodes = _and_more(budget.nodes, budget.node_count)
    effect = "does not end"
    if _is_operators(budget):
        effect = "waits for an operator" + _owned(budget)
        remedy, severity = OF_OPERATOR, "info"
    return Detection(
        f"a drain of {nodes} {effect}: PodDisruptionBudget {namespace}/{name} {reason}",
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


def _is_operators(budget: Budget) -> bool:
    """Tell whether an operator made a budget, and lets its pods go by itself."""
    if budget.owner is not None or _KEEPERS.fullmatch(budget.namespace):
        return True
    return _KEPT_NAMES.fullmatch(budget.name) is not None


def _owned(budget: Budget) -> str:
    if budget.owner is None or not budget.owner.kind:
        return ""
    owner = one_line(budget.owner.kind, 63)
    if budget.owner.group:
        owner += f" of {one_line(budget.owner.group, 253)}"
    return f" ({owner})"


def _and_more(names: Sequence[str], count: int) -> str:
    """Return names, and how many there are besides."""
    text = ", ".join(one_line(name, 253) for name in names)
    more = count - len(names)
    return text + (f" and {more} more" if more > 0 else "")


def _counts(budget: Budget) -> str:
    pods = _and_more([pod.name for pod in budget.pods], budget.kept)
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
            f"with a number as minAvailable, run more than {budget.desired} replicas; with"
            " maxUnavailable: 0 or minAvailable: 100% more replicas do not help: give the budget"
            f" maxUnavailable: 1 instead ({edit}). Where only one replica can run, delete the pod"
            " by hand during the drain, at a time that suits its users",
            None,
        )
    return (
        f"lets none go at present: {budget.healthy} of {budget.expected} pods are healthy, and"
        f" {budget.desired} must be",
        f"find out why pods are not healthy: kubectl {options} get pods -o wide; the drain goes on"
        f" when more than {budget.desired} are",
        "info",
    )
