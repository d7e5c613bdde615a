# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An etcd of three members that answer the JSON gateway's requests, and a node that runs the first.

Sizes are bytes. The members are threads of the process that made them: what they became outlives a
child that a fault kills.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import etcd
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    etcd_client,
    etcd_guards,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import etcd_space
from tests.unit.support.waiting import Clock

MIB = 1024**2
IDS = ("11", "12", "13")
QUOTA = 16 * MIB
CLUSTER = "77"
LEASE = "/registry/leases/kube-node-lease/"
Answer = tuple[int, Any]


class Member:
    """One member of etcd."""

    def __init__(self, number: int) -> None:
        self.id = IDS[number]
        self.name = f"m{number + 1}"
        self.address = f"127.0.0.{number + 1}"
        self.size, self.used, self.quota = 17 * MIB, 15 * MIB, QUOTA
        self.version, self.index = "3.6.16", 100
        self.learner = False
        self.cluster = CLUSTER
        self.up = True
        self.image = b"database" * 20000


class Cluster:
    """The members, what all of them agree on, and every request that changes something."""

    def __init__(self) -> None:
        self.members = [Member(number) for number in range(3)]
        self.leader, self.revision, self.compacted = IDS[0], 50, 0
        self.alarms = [{"memberID": IDS[1], "alarm": "NOSPACE"}]
        self.renewals, self.leases = True, ("m1", "m2")
        self.counts = {"events": 900, "secrets": 5}
        self.minimum = MIB
        self.done: list[tuple[str, str]] = []
        self.refusals: dict[str, Answer] = {}
        self.beats = 0

    @property
    def full(self) -> bool:
        return any(alarm["alarm"] == "NOSPACE" for alarm in self.alarms)

    def answer(self, member: Member, path: str, asked: dict[str, Any]) -> Answer:
        """Return (HTTP status, answer) to a request to a member."""
        if not member.up:
            return 503, {"message": "down"}
        if path in self.refusals:
            return self.refusals[path]
        name = path.rpartition("/")[2].replace("-", "_").replace("list", "member_list")
        reply: Callable[[Member, dict[str, Any]], Answer] = getattr(
            self, f"_{name}", lambda *_args: (404, {"error": "Not Found"})
        )
        return reply(member, asked)

    def _member_list(self, _member: Member, _asked: dict[str, Any]) -> Answer:
        rows = [
            {
                "ID": member.id,
                "name": member.name,
                "clientURLs": [f"http://{member.address}:{self.port(member)}"],
                **({"isLearner": True} if member.learner else {}),
            }
            for member in self.members
        ]
        return 200, {"header": {"cluster_id": CLUSTER}, "members": rows}

    def port(self, member: Member) -> int:
        return int(self.servers[self.members.index(member)].server_port)

    servers: list[Any]

    def _status(self, member: Member, _asked: dict[str, Any]) -> Answer:
        errors = [f"memberID:{row['memberID']} alarm:{row['alarm']} " for row in self.alarms]
        return 200, {
            "header": {
                "cluster_id": member.cluster,
                "member_id": member.id,
                "revision": str(self.revision),
            },
            "version": member.version,
            "dbSize": str(member.size),
            "dbSizeInUse": str(member.used),
            "dbSizeQuota": str(member.quota),
            "leader": self.leader,
            "raftIndex": str(member.index),
            "errors": errors,
        }

    def _alarm(self, member: Member, asked: dict[str, Any]) -> Answer:
        if asked.get("action") == "DEACTIVATE":
            self.done.append(("disarm", asked["memberID"]))
            self.alarms = [
                row
                for row in self.alarms
                if (row["memberID"], row["alarm"]) != (asked["memberID"], asked["alarm"])
            ]
        return 200, {"header": {}, "alarms": self.alarms}

    def _compaction(self, member: Member, asked: dict[str, Any]) -> Answer:
        revision = int(asked["revision"])
        assert asked["physical"] is True
        if revision <= self.compacted:
            message = "etcdserver: mvcc: required revision has been compacted"
            return 400, {"code": 11, "message": message}
        self.done.append(("compact", str(revision)))
        self.compacted = revision
        for one in self.members:
            one.used = min(one.used, self.minimum)
        return 200, {"header": {}}

    def _defragment(self, member: Member, _asked: dict[str, Any]) -> Answer:
        self.done.append(("defragment", member.id))
        member.size = member.used
        return 200, {}

    def _transfer_leadership(self, member: Member, asked: dict[str, Any]) -> Answer:
        if member.id != self.leader:
            return 400, {"code": 9, "message": "etcdserver: not leader"}
        self.done.append(("lead", asked["targetID"]))
        self.leader = asked["targetID"]
        return 200, {}

    def _grant(self, _member: Member, _asked: dict[str, Any]) -> Answer:
        if self.full:
            return 429, {"code": 8, "message": "etcdserver: mvcc: database space exceeded"}
        return 200, {"header": {}, "ID": "123", "TTL": "60"}

    def _revoke(self, _member: Member, asked: dict[str, Any]) -> Answer:
        assert asked["ID"] == "123"
        return 200, {"header": {}}

    def _range(self, _member: Member, asked: dict[str, Any]) -> Answer:
        key = base64.b64decode(asked["key"]).decode()
        if asked.get("count_only"):
            whole = sum(self.counts.values()) * LEASE.startswith(key)
            return 200, {"count": str(self.counts.get(key.split("/")[2], whole))}
        if self.renewals and not self.full:
            self.beats += 1
        rows = [
            {
                "key": base64.b64encode((LEASE + name).encode()).decode(),
                "mod_revision": str(20 + self.beats),
            }
            for name in self.leases * LEASE.startswith(key)
        ]
        return 200, {"kvs": rows, "count": str(len(rows))}

    def _snapshot(self, member: Member, _asked: dict[str, Any]) -> Answer:
        data = member.image + hashlib.sha256(member.image).digest()
        cut = [data[at : at + 32768] for at in range(0, len(member.image), 32768)]
        cut[-1] = cut[-1][:-32] if cut[-1].endswith(data[-32:]) else cut[-1]
        blobs = [*cut, data[len(b"".join(cut)) :]]
        lines = [{"result": {"blob": base64.b64encode(blob).decode()}} for blob in blobs]
        return 200, b"".join(json.dumps(line).encode() + b"\n" for line in lines)


class _Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Silent."""

    def do_POST(self) -> None:
        """Answer as the member of this server."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server: Any = self.server
        status, value = server.cluster.answer(
            server.member, self.path.removeprefix("/v3"), json.loads(body or b"{}")
        )
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Node:
    """A master that runs the first member of the cluster, and has space on its disk."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> None:
        self.root, self.cluster = folder / "k", cluster
        self.host = "m1"
        self.member = cluster.members[0]
        self.data = folder / "etcd"
        self.data.mkdir()
        self.free: dict[str, int] = {}
        self.clock = Clock()
        monkeypatch.setattr(etcd_space, "time", self.clock)
        monkeypatch.setattr(etcd, "is_local", lambda address: address == self.member.address)
        monkeypatch.setattr(etcd_client, "processes", self.processes)
        monkeypatch.setattr(etcd_guards, "free_bytes", self.free_bytes)

    def run_on(self, number: int) -> None:
        """Let the node run another member."""
        self.member, self.host = self.cluster.members[number], f"m{number + 1}"

    def free_bytes(self, path: str) -> int:
        return self.free.get(Path(path).name, 10**12)

    def processes(self) -> tuple[list[Any], list[Any]]:
        url = f"http://{self.member.address}:{self.cluster.port(self.member)}"
        process = {
            "component": "etcd",
            "pid": os.getpid(),
            "argv": ["etcd", f"--listen-client-urls={url}", f"--data-dir={self.data}"],
        }
        return [], [process]

    def step(self, kind: str, **change: Any) -> dict[str, Any]:
        """Return a step of a plan for this node's member."""
        allow = change.pop("allow", [])
        quotas = {member.id: QUOTA for member in self.cluster.members}
        return {
            "id": f"01-{self.host}-{kind.replace('_', '-')}",
            "host": self.host,
            "remedy": kind,
            "code": "KM140",
            "target": "etcd",
            "guard": {"allow": allow},
            "expect": {"component": "etcd"},
            "change": {
                "kind": kind,
                "member_id": self.member.id,
                "members": list(IDS),
                "alarm": True,
                "quotas": quotas,
                "prefix": "/registry",
                **change,
            },
        }


@contextmanager
def serving() -> Iterator[Cluster]:
    """Yield a cluster whose members answer."""
    cluster = Cluster()
    cluster.servers = []
    for member in cluster.members:
        server: Any = http.server.ThreadingHTTPServer((member.address, 0), _Handler)
        server.daemon_threads = True
        server.member, server.cluster = member, cluster
        cluster.servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield cluster
    finally:
        for server in cluster.servers:
            server.shutdown()
            server.server_close()


@contextmanager
def made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """Yield a node, and stop its cluster afterwards."""
    with serving() as cluster:
        yield Node(folder, monkeypatch, cluster)
