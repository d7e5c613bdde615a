# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes as the API lists them, each with its host of the inventory. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..evidence import memoize
from ..evidence.document import one_line
from . import ages
from .cluster import Cluster, Host, timestamp

SHOWN = 5
ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


@dataclass(frozen=True)
class NodeView:
    """A Node of the API.

    told: whether its evidence has taints at all, which an older release did not collect
    leased: when its kubelet renewed its lease, by its own clock
    """

    name: str
    host: Host | None
    ready: str | None
    control_plane: bool
    zone: str | None
    told: bool
    taints: tuple[Mapping[str, Any], ...]
    conditions: tuple[Mapping[str, Any], ...]
    leased: datetime | None
    cordoned: bool
    ours: Mapping[str, Any] | None
    internal: tuple[str, ...] = ()
    created: datetime | None = None
    lease_seconds: float | None = None

    def condition(self, kind: str) -> Mapping[str, Any] | None:
        """Ready, or another that is not False."""
        return next((one for one in self.conditions if one.get("type") == kind), None)


@memoize.last
def views(cluster: Cluster) -> tuple[NodeView, ...]:
    """Return every Node of the API's list."""
    return tuple(_views(cluster))


def _views(cluster: Cluster) -> Iterator[NodeView]:
    hosts = cluster.hosts_by_node()
    for item in (cluster.answer("nodes") or {}).get("items") or ():
        labels, cordon = item.get("labels") or {}, item.get("cordon")
        addresses = _mappings(item.get("addresses"))
        yield NodeView(
            one_line(item.get("name"), 253),
            _host(hosts, item, addresses),
            item.get("ready"),
            bool(item.get("control_plane")),
            next((str(labels[name]) for name in ZONES if labels.get(name)), None),
            "taints" in item,
            _mappings(item.get("taints")),
            _mappings(item.get("conditions")),
            timestamp(item.get("lease")),
            item.get("unschedulable") is True,
            cordon if isinstance(cordon, Mapping) else None,
            _internal(addresses),
            timestamp(item.get("created")),
            ages.seconds_of(item.get("lease_duration_s")),
        )


def _host(
    hosts: Mapping[str, Host], item: Mapping[str, Any], addresses: Iterable[Mapping[str, Any]]
) -> Host | None:
    """Return the host that has the name of a Node, or else one of its addresses."""
    names: list[Any] = [item.get("name"), *(one.get("address") for one in addresses)]
    return next(filter(None, map(hosts.get, names)), None)


def _internal(addresses: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    found = [one.get("address") for one in addresses if one.get("type") == "InternalIP"]
    return tuple(str(address) for address in found if address)


def _mappings(values: Any) -> tuple[Mapping[str, Any], ...]:
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
        return tuple(one for one in values if isinstance(one, Mapping))
    return ()


def and_others(names: Sequence[str], shown: int = SHOWN) -> str:
    """Return the first few of them, and how many more there are."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")
