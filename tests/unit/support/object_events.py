# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events about Nodes, Services and volumes, in evidence that is written by hand.

The clock of that evidence is 2027-01-15T08:00:00Z.
"""

from __future__ import annotations

from typing import Any


def report(world: Any, kind: str, reason: str, message: str, **more: Any) -> None:
    """Let the API have such events: by default one Warning of the kubelet about w1."""
    row = {"kind": kind, "reason": reason, "message": message, "type": "Warning", "name": "w1"}
    row |= {"component": "kubelet", "namespace": "", "objects": 1, "count": 1}
    row |= {"first": "2027-01-15T07:30:00Z", "last": "2027-01-15T07:58:00Z"}
    world.data("api", "object_events")["items"].append({**row, **more})
