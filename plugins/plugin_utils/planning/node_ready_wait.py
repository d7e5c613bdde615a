# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes whose kubelet a run started again, and what the API does not show of that yet. Pure.

A step verifies that the kubelet is well on its own host. The Node becomes Ready a little later, and
then the node lifecycle controller removes its own taints: an earlier query sees neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...module_utils.shared.step_kinds import DONE, KERNEL_SETTING, kind_of
from ..evidence.answers.cluster.nodes import Node
from ..evidence.document import one_line
from .plan import Step

TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
EXHAUSTED = ("KM401", "KM402", "KM403")  # of which a kubelet dies; systemd starts it again
# for all of them, from the end of the last step: an API server that starts with its kubelet takes a
# minute
SECONDS = 120.0
ADVICE = (
    "the kubelet posts Ready, and the node lifecycle controller of the kube-controller-manager that"
    " leads takes its taints away within 10 s after that: removed by hand they come back"
)


def nodes(plan: Iterable[Step], ended: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the Nodes of done steps after which a kubelet may run that was down."""
    done = {step["id"] for step in ended if step.get("state") == DONE}
    starts = [step for step in plan if step.id in done and _starts_kubelet(step)]
    names = [name for step in starts for name in (step.node, *step.nodes)]
    return frozenset(name for name in names if name)


def _starts_kubelet(step: Step) -> bool:
    if step.remedy == KERNEL_SETTING:
        return step.code in EXHAUSTED
    return bool(kind_of(step.remedy).starts_kubelet)


def listed(items: Iterable[Node], names: Iterable[str]) -> bool:
    """Return whether the API knows any of these Nodes: another cluster's does not."""
    expected_names = frozenset(names)
    return any(item.name in expected_names for item in items)


def waiting(items: Iterable[Node], names: Iterable[str]) -> dict[str, str]:
    """Return {Node: what of it is not back yet}, of those of these names that the API lists."""
    expected_names, reasons = frozenset(names), {}
    for item in items:
        if item.name is not None and item.name in expected_names:
            reason = ", ".join([*_not_ready(item.ready), *_leftover_taints(item)])
            if reason:
                reasons[item.name] = reason
    return reasons


def _not_ready(ready: str | None) -> list[str]:
    if ready == "True":
        return []
    return [f"Ready is {ready if ready in ('False', 'Unknown') else 'not known'}"]


def _leftover_taints(item: Node) -> list[str]:
    """Return the lifecycle controller's own taints of a Node, each once."""
    taints = [taint for taint in item.taints or () if taint.key in TAINTS]
    return list(dict.fromkeys(f"{taint.key}:{one_line(taint.effect, 20)}" for taint in taints))


def clause(reasons: Mapping[str, str]) -> str:
    """Return what is not back yet, in a clause."""
    return "; ".join(f"{one_line(name, 80)}: {reason}" for name, reason in sorted(reasons.items()))
