# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `pod_states`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class NodeStates:
    """The pods of a node, by the state that kubectl shows."""

    node: str = ""
    states: Mapping[str, int] | None = None
    elsewhere: int = 0  # of the workloads that crash here, how many run on another node


@dataclass(frozen=True)
class EndingPods:
    """Pods of a node that were deleted and are still there."""

    node: str = ""
    pods: int = 0
    since: str | None = None  # the end of the oldest grace period of those without a finalizer
    names: tuple[str, ...] = ()
    finalizers: int = 0  # how many of them have a finalizer


@dataclass(frozen=True)
class PodStates:
    """All pods that have a node."""

    nodes: tuple[NodeStates, ...] | None = None
    ending: tuple[EndingPods, ...] = ()
