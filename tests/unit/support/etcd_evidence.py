# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence of an etcd of three members, each on its master, as the collector reads it."""

from __future__ import annotations

from typing import Any

MEMBERS = ("1", "2", "3")
MIB = 1024**2


def settle(world: Any, **status: Any) -> None:
    """Let all three members run well and be connected."""
    for id_ in MEMBERS:
        name = f"m{id_}"
        world.data(name, "etcd").update(
            status={
                "version": "3.6.4",
                "member_id": id_,
                "cluster_id": "77",
                "leader": "1",
                "errors": [],
                "db_size": 20 * MIB,
                "db_size_in_use": 15 * MIB,
                "quota": 2048 * MIB,
                "endpoint": "https://127.0.0.1:2379",
                **status,
            },
            alarms=[],
            local=local(id_),
        )


def local(id_: str, **more: Any) -> dict[str, Any]:
    peers = [{"id": other, "active": True} for other in MEMBERS if other != id_]
    return {
        "pid": 80,
        "uptime_s": 3600.0,
        "static": True,
        "embedded": False,
        "settings": {"name": f"m{id_}", "data-dir": "/var/lib/etcd"},
        "quota": 2048 * MIB,
        "quota_source": "default",
        "metrics": {
            "member_id": id_,
            "version": "3.6.4",
            "db_size": 20.0 * MIB,
            "db_size_in_use": 15.0 * MIB,
            "has_leader": 1.0,
            "peers": peers,
        },
        "metrics_url": "http://127.0.0.1:2381",
        **more,
    }


def metrics(world: Any, host: str) -> dict[str, Any]:
    found: dict[str, Any] = world.data(host, "etcd")["local"]["metrics"]
    return found


def disconnect(world: Any, id_: str) -> None:
    """Let no other member be connected to this one."""
    for name in (f"m{other}" for other in MEMBERS if other != id_):
        if "local" not in world.data(name, "etcd"):
            continue
        for peer in metrics(world, name)["peers"]:
            if peer["id"] == id_:
                peer["active"] = False


def end(world: Any, id_: str) -> None:
    """Let the etcd of a master end: no process, no answer."""
    name = f"m{id_}"
    disconnect(world, id_)
    running = world.data(name, "instances")["processes"]
    running[:] = [item for item in running if item["component"] != "etcd"]
    world.documents[name]["collectors"]["etcd"] = {
        "status": "error",
        "error": "https://127.0.0.1:2379: Connection refused",
        "data": {
            "members": [],
            "status": None,
            "error": "https://127.0.0.1:2379: Connection refused",
        },
    }


def hang(world: Any, id_: str, state: str | None) -> None:
    """Let the etcd of a master take connections and say nothing; the others stay connected."""
    name, error = f"m{id_}", "https://127.0.0.1:2379: timed out"
    row = local(id_, metrics=None, metrics_url=None, state=state)
    row["metrics_error"] = "http://127.0.0.1:2381: timed out"
    data = {"members": [], "status": None, "error": error, "local": row}
    world.documents[name]["collectors"]["etcd"] = {"status": "error", "error": error, "data": data}


def resize(world: Any, host: str, size: float, used: float | None, quota: int = 2048) -> None:
    """Let the database of a member have this size, in MiB."""
    metrics(world, host).update(
        db_size=size * MIB, db_size_in_use=None if used is None else used * MIB
    )
    world.data(host, "etcd")["status"]["quota"] = quota * MIB


def verdicts(world: Any, *codes: str) -> dict[str, str]:
    result = world.judge(faults=frozenset(codes))
    found = {item.code: item.verdict for item in result.verdicts}
    found.update((item.code, item.reason) for item in result.not_judged)
    return found


def found(world: Any, *codes: str) -> list[Any]:
    return list(world.judge(faults=frozenset(codes)).findings)
