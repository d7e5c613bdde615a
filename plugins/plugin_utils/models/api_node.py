# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes as the API lists them, each with its host of the inventory. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    """A Node. told: whether its evidence has taints at all, which an older release did not collect.

    Leased: when its kubelet renewed, by its clock.
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
    """Every Node of the API's list."""
    return tuple(_views(cluster))


def _views(cluster: Cluster) -> Iterator[NodeView]:
    # A host that did not answer proves no Node of its own; its name or its address may tell.
    hosts = {
        name: host
        for host in cluster.hosts
        for name in (host.names if host.node is None else (host.node,))
    }
    for item in (cluster.answer("nodes") or {}).get("items") or ():
        labels, cordon = item.get("labels") or {}, item.get("cordon")
        host = hosts.get(item.get("name")) or next(
            (
                found
                for one in item.get("addresses") or ()
                if (found := hosts.get(one.get("address")))
            ),
            None,
        )
        yield NodeView(
            one_line(item.get("name"), 253),
            host,
            item.get("ready"),
            bool(item.get("control_plane")),
            next((str(labels[name]) for name in ZONES if labels.get(name)), None),
            "taints" in item,
            _mappings(item.get("taints")),
            _mappings(item.get("conditions")),
            timestamp(item.get("lease")),
            item.get("unschedulable") is True,
            cordon if isinstance(cordon, Mapping) else None,
            tuple(
                str(one["address"])
                for one in _mappings(item.get("addresses"))
                if one.get("type") == "InternalIP" and one.get("address")
            ),
            timestamp(item.get("created")),
            ages.seconds_of(item.get("lease_duration_s")),
        )


def _mappings(values: Any) -> tuple[Mapping[str, Any], ...]:
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
        return tuple(one for one in values if isinstance(one, Mapping))
    return ()


def and_others(names: Sequence[str], shown: int = SHOWN) -> str:
    """Return the first few of them, and how many more there are."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")
