# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes whose kubelet a run brought back, and what the API still has to take back of them. Pure.

A step proves that the kubelet is well on its own host. The Node becomes Ready a little later, and
then the node lifecycle controller takes its own taints away: whoever asks at once sees neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...module_utils.steps.handlers import (
    kernel_setting,
    swap_off,
)
from ...module_utils.steps.handlers import (
    service_start as kubelet_service,
)
from ..evidence.document import one_line
from .plan import Step

TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
STARTS = (*kubelet_service.STARTS, swap_off.OFF)
EXHAUSTED = ("KM401", "KM402", "KM403")  # of which a kubelet dies; systemd starts it again
# for all of them, from the end of the last step: an API server that starts with its kubelet takes a
# minute
SECONDS = 120.0
ADVICE = (
    "the kubelet posts Ready, and the node lifecycle controller of the kube-controller-manager that"
    " leads takes its taints away within 10 s after that: removed by hand they come back"
)


def nodes(plan: Iterable[Step], ended: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The Nodes of the steps that are done and after which a kubelet may be back that was not."""
    done = {step["id"] for step in ended if step.get("state") == "done"}
    return frozenset(
        node
        for step in plan
        if step.id in done
        and (
            step.remedy in STARTS
            or (step.remedy == kernel_setting.REMEDY and step.code in EXHAUSTED)
        )
        for node in (step.node, *step.nodes)
        if node
    )


def listed(items: Any, names: Iterable[str]) -> bool:
    """Whether the API knows any of these: another cluster's does not."""
    wanted = frozenset(names)
    return any(
        isinstance(item, Mapping) and item.get("name") in wanted
        for item in (items if isinstance(items, (list, tuple)) else ())
    )


def waiting(items: Any, names: Iterable[str]) -> dict[str, str]:
    """{Node: what of it is not back yet}, of those of these names that the API lists."""
    wanted, found = frozenset(names), {}
    for item in items if isinstance(items, (list, tuple)) else ():
        if (
            isinstance(item, Mapping)
            and isinstance(item.get("name"), str)
            and item["name"] in wanted
        ):
            ready = item.get("ready")
            left = (
                [f"Ready is {ready if ready in ('False', 'Unknown') else 'not known'}"]
                if ready != "True"
                else []
            )
            left += list(
                dict.fromkeys(
                    f"{one.get('key')}:{one_line(one.get('effect'), 20)}"
                    for one in _taints(item)
                    if one.get("key") in TAINTS
                )
            )
            if left:
                found[item["name"]] = ", ".join(left)
    return found


def told(left: Mapping[str, str]) -> str:
    """What is not back yet, in a clause."""
    return "; ".join(f"{one_line(name, 80)}: {why}" for name, why in sorted(left.items()))


def _taints(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    held = item.get("taints")
    return (
        [one for one in held if isinstance(one, Mapping)] if isinstance(held, (list, tuple)) else []
    )
