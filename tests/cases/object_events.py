# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of events about Nodes, Services and volumes, read by the collector itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    object_events as collector,
)

from . import clock, paths
from .cluster import BuildError, Evidence


class _Api:
    """An API with one event, in the list of its kind."""

    def __init__(self, event: dict[str, Any]) -> None:
        self.event = event

    def items(self, _path: str, query: dict[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the event where the selector is that of its kind."""
        kinds = [selector.rpartition("=")[2] for selector in collector.SELECTORS[:-1]]
        kind = self.event["involvedObject"]["kind"]
        selector = f"involvedObject.kind={kind}" if kind in kinds else collector.SELECTORS[-1]
        if query["fieldSelector"] == selector:
            yield self.event


def object_event(
    evidence: Evidence,
    kind: str,
    name: str,
    reason: str,
    message: str,
    count: int = 1,
    ago: float = 120,
    component: str = "kubelet",
    namespace: str = "",
    type: str = "Warning",  # noqa: A002 - the field of an event
) -> None:
    """Let the API have such an event, repeated so often, last so many seconds ago."""
    event = {
        "involvedObject": {"kind": kind, "name": name, "namespace": namespace},
        "reason": reason,
        "message": message,
        "type": type,
        "count": count,
        "firstTimestamp": clock.iso(evidence.now - 3000),
        "lastTimestamp": clock.iso(evidence.now - ago),
        "source": {"component": component},
    }
    rows = collector.collect(_Api(event), lambda _error: False)[0]["items"]
    if not rows:
        raise BuildError(f"the collector does not keep {reason} of {kind}")
    evidence.data(paths.API, "object_events").setdefault("items", []).extend(rows)
