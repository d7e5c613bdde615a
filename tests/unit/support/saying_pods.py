# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of the cluster itself that run and repeat an error, in evidence written by hand."""

from __future__ import annotations

from typing import Any

DOWN = "bird: Netlink: Network is down"


def say(
    world: Any,
    line: str = DOWN,
    host: str = "w1",
    pod: str = "calico-node-bcdfg",
    container: str = "calico-node",
    count: int = 60,
    minutes: int = 10,
    last: float = 5,
    **changed: Any,
) -> None:
    """Let a container have said a line so often in the last ten minutes, last so long ago."""
    clock = world.data(host, "system")["clock"]
    entry = {"count": count, "minutes": minutes, "pods": 0, "line": line}
    entry |= {"first": clock - 60 * minutes, "last": clock - last}
    row = {
        "namespace": "kube-system",
        "pod": pod,
        "container": container,
        "path": f"/var/log/pods/kube-system_{pod}_1/{container}/0.log",
        "told": [],
        "since": clock - 600,
        "lines": 900,
        "errors": count,
        "cut": False,
        "error": None,
        "entries": [entry],
    }
    world.data(host, "system_pods")["running"].append(row | changed)
