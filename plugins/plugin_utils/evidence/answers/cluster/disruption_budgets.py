# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `disruption_budgets`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KeptPod:
    """A pod that a budget keeps on its node."""

    name: str = ""
    node: str = ""


@dataclass(frozen=True)
class BudgetOwner:
    """The object that made a budget, such as a VirtualMachineInstance of kubevirt.io."""

    kind: str = ""
    group: str = ""


@dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget that lets no pod go.

    expected, healthy, desired: pods by its controller's count; None where it has none
    fresh: whether the count is of the budget as it is now
    failure: why the controller cannot count, "" where it can
    owner: the object that made it, None where it names none
    kept: how many pods a drain would have to evict; pods: some of them
    node_count: on how many nodes these are; nodes: some of them
    """

    namespace: str = ""
    name: str = ""
    expected: int | None = None
    healthy: int | None = None
    desired: int | None = None
    fresh: bool = False
    failure: str = ""
    owner: BudgetOwner | None = None
    kept: int = 0
    nodes: tuple[str, ...] = ()
    node_count: int = 0
    pods: tuple[KeptPod, ...] = ()


@dataclass(frozen=True)
class DisruptionBudgets:
    """The PodDisruptionBudgets of a cluster.

    listed: how many there are; items: those that let no pod go
    """

    listed: int = 0
    items: tuple[Budget, ...] = ()
