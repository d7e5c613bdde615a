# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether nodes have what a Pending pod asks for at all, however much of it is in use. Pure.

What is in use ends; what no node has comes by a device plugin, a label or another node only. Of
devices each node tells what it has; of CPU, memory and the like it is known how much the largest
node has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ..cluster import Cluster

_UNITS = ((1024**3, "Gi"), (1024**2, "Mi"), (1024, "Ki"))


@dataclass(frozen=True)
class Lack:
    """A resource of which none of the nodes that a pod asks for has enough, were it empty.

    most: what one of them has at most; elsewhere: nodes that have enough, and for which the pod
    does not ask; idle: nodes that have some, and of it nothing for pods.
    """

    name: str
    asked: int
    most: int
    elsewhere: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()


class Offers:
    """What the Nodes of a cluster have."""

    def __init__(self, cluster: Cluster) -> None:
        self._devices = {
            str(item.get("name")): item.get("devices") for item in cluster.rows("nodes", "items")
        }
        self._told = bool(self._devices) and all(
            isinstance(has, Mapping) for has in self._devices.values()
        )
        largest = (cluster.answer("pending") or {}).get("largest")
        self._largest = largest if isinstance(largest, Mapping) else {}

    def devices(self, entry: Mapping[str, Any]) -> list[str]:
        """The devices and the like that a pod asks for; an older release did not collect it."""
        return [str(name) for name in _asks(entry) if "/" in str(name)]

    def without(self, entry: Mapping[str, Any], name: str) -> frozenset[str] | None:
        """The nodes that have fewer of these devices than the pod asks for.

        None where nobody knows.
        """
        if "/" not in name or not self._told:
            return None
        asked = _asked(entry, name)
        return frozenset(node for node in self._devices if self._has(node, name) < asked)

    def lack(self, entry: Mapping[str, Any], name: str, wanted: Collection[str]) -> Lack | None:
        """Whether none of these nodes has enough of it; None too where that is not known."""
        asked, without = _asked(entry, name), self.without(entry, name)
        if without is None:
            most = self._largest.get(name)
            known = isinstance(most, int) and name in _asks(entry)
            return Lack(name, asked, most) if known and most < asked else None
        if any(node not in without for node in wanted):
            return None
        idle = tuple(
            node for node in wanted if self._has(node, name, 0) and not self._has(node, name)
        )
        return Lack(
            name,
            asked,
            max((self._has(node, name) for node in wanted), default=0),
            tuple(node for node in self._devices if node not in without),
            idle,
        )

    def _has(self, node: str, name: str, place: int = 1) -> int:
        """How many of these devices a node has for pods; at place 0 all that it knows of."""
        found = (self._devices.get(node) or {}).get(name)
        value = found[place] if isinstance(found, (list, tuple)) and len(found) == 2 else 0
        return value if isinstance(value, int) else 0


def amount(name: str, value: int) -> str:
    """As a manifest has it."""
    if name == "cpu":
        return f"{value // 1000}" if value % 1000 == 0 else f"{value}m"
    if "/" in name:
        return str(value)
    return next(
        (f"{value // unit}{suffix}" for unit, suffix in _UNITS if value and value % unit == 0),
        str(value),
    )


def _asks(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    asks = entry.get("asks")
    return asks if isinstance(asks, Mapping) else {}


def _asked(entry: Mapping[str, Any], name: str) -> int:
    """At least one, where a scheduler says that there is not enough of it."""
    value = _asks(entry).get(name)
    return value if isinstance(value, int) and value > 0 else 1
