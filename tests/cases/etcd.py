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


def _stop(evidence: Evidence, at: str) -> None:
    """Let the last writes of kubelets and of leaders be those of a moment."""
    for item in evidence.data(paths.API, "nodes")["items"]:
        item["lease"] = at
    for server in evidence.data(paths.API, "locks")["servers"]:
        for row in server["objects"]:
            row["renew_time"] = at
