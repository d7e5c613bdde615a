# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The few metrics of an etcd that tell its size, its disk and its peers."""

from . import http_client

PATH = "/metrics"
VALUES = {
    "etcd_mvcc_db_total_size_in_bytes": "db_size",
    "etcd_debugging_mvcc_db_total_size_in_bytes": "db_size",  # up to 3.3
    "etcd_mvcc_db_total_size_in_use_in_bytes": "db_size_in_use",
    "etcd_server_quota_backend_bytes": "quota",
    "etcd_server_has_leader": "has_leader",
    "etcd_server_is_leader": "is_leader",
    "etcd_server_is_learner": "is_learner",
    "etcd_server_leader_changes_seen_total": "leader_changes",
    "etcd_server_slow_apply_total": "slow_applies",
    "etcd_server_slow_read_indexes_total": "slow_reads",
    "etcd_server_heartbeat_send_failures_total": "heartbeat_failures",
    "etcd_server_proposals_failed_total": "failed_proposals",
    "etcd_server_proposals_pending": "pending_proposals",
    "etcd_server_snapshot_apply_in_progress_total": "snapshots_in_progress",
    "process_start_time_seconds": "started_at",
}
TIMES = {
    "etcd_disk_wal_fsync_duration_seconds": "wal_fsync",
    "etcd_disk_backend_commit_duration_seconds": "backend_commit",
}
ROUND_TRIP = "etcd_network_peer_round_trip_time_seconds"
ACTIVE, FAILURES = "etcd_network_active_peers", "etcd_network_peer_sent_failures_total"
ID, VERSION = "etcd_server_id", "etcd_server_version"
PREFIXES = tuple(
    name.encode("ascii")
    for name in (
        *(name + " " for name in VALUES),
        *(f"{name}_{part}" for name in (*TIMES, ROUND_TRIP) for part in ("bucket", "count", "sum")),
        *(name + "{" for name in (ACTIVE, FAILURES, ID, VERSION)),
    )
)
MAX_BYTES, MAX_LINES, MAX_PEERS, MAX_LINE = 262144, 2000, 15, 400


def read(address, port, seconds, encryption=None):
    """Return the metrics at an address; HttpError without them."""
    connection = http_client.Connection(address, port, seconds, encryption)
    try:
        status, body = connection.request(PATH, keep=PREFIXES)
    finally:
        connection.close()
    if status != 200:
        raise http_client.HttpError(f"HTTP {status}")
    answer = parsed(body[:MAX_BYTES].decode("utf-8", "replace"))
    if answer["db_size"] is None and answer["has_leader"] is None:
        raise http_client.HttpError("the answer has no metric of etcd")
    return answer


def parsed(text):
    """Return the metrics of a text in the format of Prometheus."""
    answer = dict.fromkeys([*VALUES.values(), *TIMES.values(), "member_id", "version"])
    times, peers = {}, {}
    for line in text.splitlines()[:MAX_LINES]:
        name, labels, value = _sample(line)
        if value is None:
            continue
        if name in VALUES:
            answer[VALUES[name]] = value
        elif name == ID:
            answer["member_id"] = _decimal(labels.get("server_id"))
        elif name == VERSION:
            answer["version"] = (labels.get("server_version") or "")[:40] or None
        elif name in (ACTIVE, FAILURES):
            _add_peer(peers, name, labels, value)
        else:
            _add_time(times, name, labels, value)
    for name, key in TIMES.items():
        answer[key] = _time(times.get((name, None)))
    answer["peers"] = _peers(peers, times)
    return answer


def _sample(line):
    """Return (name, labels, value) of a line; the value is None where it is none."""
    head, _space, number = line[:MAX_LINE].rpartition(" ")
    name, brace, rest = head.partition("{")
    labels = {}
    if brace:
        for pair in rest.rstrip("}").split(","):
            key, _equal, quoted = pair.partition("=")
            labels[key] = quoted.strip('"')
    try:
        value = float(number)
    except ValueError:
        return name, labels, None
    if abs(value) < float("inf"):  # false for what is no number too
        return name, labels, value
    return name, labels, None


def _decimal(text):
    """Return an id that is written in hexadecimal digits as the API writes it; None for others."""
    try:
        number = int(text or "", 16)
    except ValueError:
        return None
    if 0 < number < 1 << 64:
        return str(number)
    return None


def _add_peer(peers, name, labels, value):
    peer = _decimal(labels.get("Remote") or labels.get("To"))
    if peer is not None:
        peers.setdefault(peer, {})[name] = value


def _add_time(times, name, labels, value):
    """Add a sample of a histogram, by its name and the peer that it is about."""
    base, _underscore, part = name.rpartition("_")
    if base != ROUND_TRIP and base not in TIMES:
        return
    row = times.setdefault((base, _decimal(labels.get("To"))), {"buckets": []})
    if part == "bucket":
        try:
            row["buckets"].append((float(labels.get("le") or ""), value))
        except ValueError:
            return
    else:
        row[part] = value


def _time(row):
    """Return {count, seconds, p99} of a histogram; None without one."""
    if not row or row.get("count") is None:
        return None
    return {"count": row["count"], "seconds": row.get("sum"), "p99": quantile(row, 0.99)}


def quantile(row, share):
    """Return the time below which this share of the measured times lies, None without any.

    It is a straight line within a bucket, as Prometheus has it; above the last limit, that limit.
    """
    rank, below, lower = row["count"] * share, 0.0, 0.0
    for limit, count in sorted(row["buckets"]):
        if count >= rank and count > below:
            if limit == float("inf"):
                return lower
            return round(lower + (limit - lower) * (rank - below) / (count - below), 6)
        below, lower = count, limit
    return None


def _peers(peers, times):
    """Return [{id, active, sent_failures, round_trip}] of the other members."""
    ids = set(peers) | {peer for base, peer in times if base == ROUND_TRIP and peer}
    rows = []
    for peer in sorted(ids)[:MAX_PEERS]:
        values = peers.get(peer, {})
        active = values.get(ACTIVE)
        rows.append(
            {
                "id": peer,
                "active": None if active is None else active > 0,
                "sent_failures": values.get(FAILURES),
                "round_trip": _time(times.get((ROUND_TRIP, peer))),
            }
        )
    return rows
