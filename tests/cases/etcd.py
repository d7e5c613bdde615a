# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of etcd: what each member says of itself, as the collectors of today read it."""

from __future__ import annotations

from collections.abc import Iterable

from . import clock, paths
from .cluster import Evidence

MEBIBYTE = 1024**2
QUOTA = 2048  # MiB, the default


def etcd_size(
    evidence: Evidence,
    size: int,
    in_use: int,
    quota: int = QUOTA,
    full: Iterable[str] = (),
    version: str = "3.5.12",
    stopped: int | None = None,
) -> None:
    """Let the database of each member have this size, and the data in it another, in MiB.

    full: hosts whose member raised the alarm NOSPACE. stopped: since when nothing was written, in
    seconds: leases and locks are as old.
    """
    members = {
        row["name"]: row["id"]
        for host in evidence.hosts
        for row in (evidence.record(host, "etcd")["data"] or {}).get("members", [])
    }
    alarms = [{"member_id": members[host], "alarm": "NOSPACE"} for host in full]
    errors = [f"memberID:{row['member_id']} alarm:NOSPACE" for row in alarms]
    leader = min(members.values())
    for host, member in members.items():
        data = evidence.data(host, "etcd")
        status = {"version": version, "member_id": member, "cluster_id": data["cluster_id"]}
        status |= {"leader": leader, "raft_term": 8, "raft_index": 9400000, "learner": False}
        status |= {"db_size": size * MEBIBYTE, "db_size_in_use": in_use * MEBIBYTE}
        status |= {"quota": quota * MEBIBYTE, "quota_source": "default"}
        status |= {"errors": errors, "endpoint": data["endpoint"]}
        data.update(status=status, alarms=alarms)
    if stopped is not None:
        _stop(evidence, clock.iso(evidence.now - stopped))


def embedded_etcd(evidence: Evidence, hosts: Iterable[str], lost: Iterable[str] = ()) -> None:
    """Let hosts run etcd 3.5 within k3s: it has metrics, and no list of members by HTTP.

    lost: the ids of members that nobody is connected to, as the log writes them.
    """
    ids = {host: str(number) for number, host in enumerate(hosts, 1001)}
    reason = "https://127.0.0.1:2379: HTTP 404"
    for host, own in ids.items():
        peers = [{"id": other, "active": True} for other in ids.values() if other != own]
        peers += [{"id": str(int(id_, 16)), "active": False, "sent_failures": 700} for id_ in lost]
        metrics = {"member_id": own, "version": "3.5.13", "has_leader": 1, "peers": peers}
        metrics |= {"db_size": 40 * MEBIBYTE, "db_size_in_use": 30 * MEBIBYTE}
        evidence.answer(host, "etcd", "error", reason)
        evidence.record(host, "etcd")["data"] = {
            "api_server": None,
            "endpoint": None,
            "cluster_id": None,
            "members": [],
            "error": reason,
            "status": None,
            "alarms": None,
            "health": {"status": 200, "body": '{"health":"true","reason":""}', "error": None},
            "local": {
                "pid": 900,
                "uptime_s": 90000.0,
                "embedded": True,
                "settings": {"name": f"{host}-0a1b2c3d"},
                "metrics": metrics,
                "metrics_url": "http://127.0.0.1:2381",
            },
        }


def _stop(evidence: Evidence, at: str) -> None:
    """Let the last writes of kubelets and of leaders be those of a moment."""
    for item in evidence.data(paths.API, "nodes")["items"]:
        item["lease"] = at
    for server in evidence.data(paths.API, "locks")["servers"]:
        for row in server["objects"]:
            row["renew_time"] = at
