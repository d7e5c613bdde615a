# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that a kubelet accepted and that do not start, in evidence that is written by hand.

The clock of that evidence is 2027-01-15T08:00:00Z.
"""

from __future__ import annotations

from typing import Any

SINCE, LAST = "2027-01-15T07:30:00Z", "2027-01-15T07:59:00Z"


def wait(
    world: Any,
    node: str = "w1",
    owner: str | None = "ReplicaSet/app-1",
    pods: int = 1,
    state: str = "ContainerCreating",
    message: str = "",
    event: tuple[str, str] | None = None,
    since: str | None = SINCE,
    count: int = 45,
    last: str | None = LAST,
    times: tuple[str, ...] = (),
) -> None:
    """Let pods of one owner wait on a node; an event is (reason, message).

    times: since when each of them waits, where it is not the same
    """
    data = world.data("api", "pod_start")
    number = len(data["pods"])
    data["pods"].append(
        {
            "node": node,
            "namespace": "default",
            "owner": owner,
            "state": state,
            "pods": pods,
            "names": [f"pod-{number}"],
            "since": since,
            "times": list(times) or [since] * (since is not None),
            "message": message,
            "event": event and {"reason": event[0], "message": event[1], "last": last},
        }
    )
    if event:
        data["events"].append(
            {
                "node": node,
                "reason": event[0],
                "message": event[1],
                "pod": f"default/pod-{number}",
                "count": count,
                "pods": pods,
                "waiting": pods,
                "first": SINCE,
                "last": last,
            }
        )


def states(world: Any, node: str, **counts: int) -> None:
    """Tell how many pods of a node are in which state."""
    world.data("api", "pod_start")["nodes"].append({"node": node, "waiting": 1, "states": counts})


def node_of(world: Any, name: str) -> Any:
    """Return a Node of the API."""
    return next(item for item in world.data("api", "nodes")["items"] if item["name"] == name)


def judged(world: Any, code: str) -> tuple[list[str], list[Any]]:
    """Return the verdicts and findings of one fault."""
    result = world.judge(faults=frozenset((code,)), deep=True)
    return [item.verdict for item in result.verdicts] or ["not judged"], list(result.findings)


def note_of(world: Any, code: str) -> str:
    """Return the notes of one fault's verdicts, as one text."""
    result = world.judge(faults=frozenset((code,)), deep=True)
    return "; ".join(item.note for item in result.verdicts if item.note)
