# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of the cluster itself that end again and again, in evidence that is written by hand."""

from __future__ import annotations

from typing import Any

SAID = "unknown flag: --node-status-max-images"
UNKNOWN = f"Error: {SAID}"
_TIMES = ("begun", "written", "first", "last")


def end(
    world: Any,
    host: str = "w1",
    pod: str = "kube-proxy-bcdfg",
    container: str = "kube-proxy",
    line: str = UNKNOWN,
    **changed: Any,
) -> None:
    """Let a container end a second after each of its starts, the newest of a minute ago."""
    clock = world.data(host, "system")["clock"]
    row = {
        "namespace": "kube-system",
        "pod": pod,
        "container": container,
        "restart": 7,
        "begun": clock - 60,
        "written": clock - 59,
        "path": f"/var/log/pods/kube-system_{pod}_1/{container}/6.log",
        "first": clock - 360,
        "last": clock - 359,
        "lines": [line],
        "error": None,
    }
    row.update({name: clock - value for name, value in changed.items() if name in _TIMES})
    row.update({name: value for name, value in changed.items() if name not in _TIMES})
    world.data(host, "system_pods")["pods"].append(row)
