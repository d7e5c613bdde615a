# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes and locks as the API holds them, and the verdicts about nodes that do not come back."""

from __future__ import annotations

CODES = frozenset(("KM511", "KM512", "KM513", "KM514"))
NODE = "node.kubernetes.io/"
NOW, FRESH, STALE, LONG = (
    "2027-01-15T08:00:00Z",
    "2027-01-15T07:59:58.000000Z",
    "2027-01-15T07:50:00.000000Z",
    "2027-01-15T07:40:00Z",
)
MANAGER = "kube-controller-manager"


def judged(world, *codes):
    result = world.judge(faults=frozenset(codes) or CODES)
    verdicts = {item.code: item.verdict for item in result.verdicts}
    verdicts.update({item.code: "not judged" for item in result.not_judged})
    return verdicts, list(result.findings)


def node(world, name):
    return next(item for item in world.data("api", "nodes")["items"] if item["name"] == name)


def silent(world, name, ready="Unknown"):
    conditions = [
        {
            "type": "Ready",
            "status": ready,
            "reason": "NodeStatusUnknown",
            "since": "2027-01-15T07:55:00Z",
        }
    ]
    node(world, name).update(
        ready=ready,
        conditions=conditions,
        lease="2027-01-15T07:54:20.000000Z",
        taints=[
            {"key": NODE + "unreachable", "effect": "NoExecute", "added": "2027-01-15T07:55:05Z"}
        ],
    )


def lock(world, **changes):
    for server in world.data("api", "locks")["servers"]:
        next(one for one in server["objects"] if one["name"] == MANAGER).update(changes)
