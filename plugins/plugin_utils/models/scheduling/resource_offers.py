# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether nodes have the resources that a Pending pod asks for, in use or not. Pure.

A resource that is in use becomes free again. One that no node has comes only by a device plugin, a
label or another node. Each node reports the devices that it has. Of CPU, memory and the like it is
known how much the largest node has.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ...evidence.answers.cluster.nodes import Nodes
from ...evidence.answers.cluster.pending import Pending, PendingPods
from ..cluster import Cluster

_UNITS = ((1024**3, "Gi"), (1024**2, "Mi"), (1024, "Ki"))


@dataclass(frozen=True)
class Lack:
    """Resource of which none of the nodes that a pod asks for has enough, were it empty.

    most: what one of them has at most; elsewhere: nodes that have enough, and for which the pod
    does not ask; idle: nodes that have some, and of it nothing for pods.
    """

    name: str
    asked: int
    most: int
    elsewhere: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()


class Offers:
    """Resources of the Nodes of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._devices = {str(node.name): node.devices for node in cluster.typed(Nodes).items}
        self._known = bool(self._devices) and None not in self._devices.values()
        self._largest = cluster.typed(Pending).largest or {}

    def devices(self, entry: PendingPods) -> list[str]:
        """Return the devices and the like of a pod's request; older releases did not collect it."""
        return [name for name in entry.asks or () if "/" in name]

    def without(self, entry: PendingPods, name: str) -> frozenset[str] | None:
        """Return the nodes with fewer of these devices than the pod asks for; None if unknown."""
        if "/" not in name or not self._known:
            return None
        request = _asked(entry, name)
        return frozenset(node for node in self._devices if self._has(node, name) < request)

    def lack(self, entry: PendingPods, name: str, nodes: Collection[str]) -> Lack | None:
        """Return the resource if none of these nodes has enough of it; None too if not known."""
        request, without = _asked(entry, name), self.without(entry, name)
        if without is None:
            return self._lack_of_largest(entry, name, request)
        if any(node not in without for node in nodes):
            return None
        return Lack(
            name,
            request,
            max((self._has(node, name) for node in nodes), default=0),
            tuple(node for node in self._devices if node not in without),
            tuple(node for node in nodes if self._is_idle(node, name)),
        )

    def _lack_of_largest(self, entry: PendingPods, name: str, request: int) -> Lack | None:
        most = self._largest.get(name)
        if most is not None and name in (entry.asks or ()) and most < request:
            return Lack(name, request, most)
        return None

    def _is_idle(self, node: str, name: str) -> bool:
        return self._has(node, name, 0) != 0 and self._has(node, name) == 0

    def _has(self, node: str, name: str, place: int = 1) -> int:
        """Return how many of these devices a node has for pods; at place 0 all that it knows of."""
        return (self._devices.get(node) or {}).get(name, (0, 0))[place]


def amount(name: str, value: int) -> str:
    """Return an amount as a manifest has it."""
    if name == "cpu":
        return _cpus(value)
    if "/" not in name and value:
        for unit, suffix in _UNITS:
            if value % unit == 0:
                return f"{value // unit}{suffix}"
    return str(value)


def _cpus(milli: int) -> str:
    if milli % 1000 == 0:
        return f"{milli // 1000}"
    return f"{milli}m"


def _asked(entry: PendingPods, name: str) -> int:
    """Return the request, at least one, where a scheduler reports that there is not enough."""
    return max(1, (entry.asks or {}).get(name, 1))
