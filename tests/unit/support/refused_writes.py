# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that accepts no writes: evidence of its leases and of etcd, and what is judged."""

from __future__ import annotations

from typing import Any

CLOCK = 1_800_000_000.0
NOW, OLD, FRESH = (
    "2027-01-15T08:00:00Z",
    "2027-01-15T07:30:00.000000Z",
    "2027-01-15T07:59:55.000000Z",
)
MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"


def stopped(world: Any, at: str = OLD) -> None:
    """Set every lease to that time, while every kubelet and every component runs."""
    for item in world.data("api", "nodes")["items"]:
        item["lease"] = at
    for server in world.data("api", "locks")["servers"]:
        for lock in server["objects"]:
            lock["renew_time"] = at
    for name in world.documents:
        world.data(name, "kubelet")["process"]["started_at"] = CLOCK - 90000


def status(world: Any, host: str = "m1", **more: Any) -> dict[str, Any]:
    found = {
        "version": "3.6.4",
        "member_id": host[1:],
        "leader": "1",
        "errors": [],
        "db_size": 2097152,
        "db_size_in_use": 1048576,
        "quota": 1048576,
        "learner": False,
        "endpoint": "https://127.0.0.1:2379",
        **more,
    }
    world.data(host, "etcd").update(status=found)
    return found


def judged(world: Any, *codes: str) -> tuple[dict[str, str], list[Any]]:
    result = world.judge(faults=frozenset(codes) if codes else None)
    return {item.code: item.verdict for item in result.verdicts if item.host is None}, list(
        result.findings
    )


def present(world: Any) -> Any:
    """Give the finding, None where there is none."""
    return next((one for one in judged(world, "KM115")[1]), None)


def lost(world: Any, *down: str) -> None:
    """Members that do not run, as where their manifests were moved away.

    The others know no leader.
    """
    for name in ("m1", "m2", "m3"):
        if name in down:
            world.documents[name]["collectors"]["etcd"] = {
                "status": "error",
                "error": "x",
                "data": {
                    "status": None,
                    "members": [],
                    "error": "https://127.0.0.1:2379: Connection refused",
                },
            }
        else:
            status(world, name, leader="0", errors=["etcdserver: no leader"])
