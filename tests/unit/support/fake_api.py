# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A writable API server, behind a unix socket as kubectl proxy has it, and its faults."""

import contextlib
import copy
import http.server
import json
import shutil
import socketserver
import tempfile
import threading
import urllib.parse
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi import (
    client as kubeapi_client,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi import (
    kubeconfig,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    api_target,
)

UID = "11111111-2222-3333-4444-555555555555"
SYSTEM = "/api/v1/namespaces/kube-system"


class Api:
    """Objects by their path. wrong: {method: "refuse", "lose" or "drop"}.

    A 500, a connection that ends before or after it is done.

    before(method, path): what happens just before a request is answered; it may say one of these
    words too, or give another answer (code, object, headers).
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {SYSTEM: {"metadata": {"uid": UID}}}
        self.version, self.wrong, self.up = 7, {}, True
        self.seen: list[str] = []
        self.pods = 1
        self.events: list[dict[str, Any]] = [
            {"type": "ADDED", "object": {"metadata": {"name": "other", "uid": "other"}}}
        ]
        self.before: Any = lambda method, path: None

    def put(self, path: str, item: "dict[str, Any]") -> "dict[str, Any]":
        self.version += 1
        self.objects[path] = copy.deepcopy(item)
        self.objects[path].setdefault("metadata", {})["resourceVersion"] = str(self.version)
        return self.objects[path]

    def create(self, path: str, sent: "dict[str, Any]") -> "dict[str, Any]":
        """Create a Job, and as many pods as controller managers are active."""
        job = self.put(f"{path}/{sent['metadata']['name']}", sent)
        job["metadata"]["uid"] = f"job-{self.version}"
        for number in range(self.pods):
            meta = {
                "name": f"pod-{number}",
                "uid": f"pod-{number}",
                "ownerReferences": [{"uid": job["metadata"]["uid"]}],
                "labels": sent["spec"]["template"]["metadata"]["labels"],
            }
            self.put(f"{SYSTEM}/pods/pod-{number}", {"metadata": meta})
            self.events += [
                {"type": kind, "object": {"metadata": meta}} for kind in ("ADDED", "MODIFIED")
            ]
        return job

    def answer(
        self, method: str, path: str, query: "dict[str, str]", sent: Any
    ) -> "tuple[int, Any]":
        """Return the code and the object."""
        if method == "PUT":
            if path not in self.objects:
                return 404, {}
            if (
                sent["metadata"].get("resourceVersion")
                != self.objects[path]["metadata"]["resourceVersion"]
            ):
                return 409, {"kind": "Status", "message": "the object has been modified"}
            return 200, self.put(path, sent)
        if method == "POST":
            return 201, self.create(path, sent)
        if method == "DELETE":
            return (200, self.objects.pop(path)) if path in self.objects else (404, {})
        if "watch" in query:
            return 200, b"".join(json.dumps(event).encode() + b"\n" for event in self.events)
        if path.rpartition("/")[2] in ("jobs", "pods", "nodes"):
            wanted = [
                pair.partition("=")[::2]
                for pair in query.get("labelSelector", "").split(",")
                if pair
            ]
            items = [
                item
                for name, item in self.objects.items()
                if name.rpartition("/")[0] == path
                and all(
                    (item["metadata"].get("labels") or {}).get(key) == value
                    for key, value in wanted
                )
            ]
            return 200, {
                "kind": "List",
                "metadata": {"resourceVersion": str(self.version)},
                "items": items,
            }
        return (
            (200, self.objects[path])
            if path in self.objects
            else (404, {"kind": "Status", "message": "not found"})
        )


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64
    fake: Api


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Silent."""

    def address_string(self) -> str:
        return "unix"

    def do_GET(self) -> None:
        fake = self.server.fake  # type: ignore[attr-defined]
        parts = urllib.parse.urlsplit(self.path)
        sent = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        fake.seen.append(f"{self.command} {parts.path}")
        wrong = fake.before(self.command, parts.path) or fake.wrong.get(self.command)
        if wrong == "lose":
            self.close_connection = True
            return
        code, item, headers = (
            500,
            {"kind": "Status", "message": "etcdserver: request timed out"},
            {},
        )
        if isinstance(wrong, tuple):
            code, item, headers = wrong
        elif wrong != "refuse":
            code, item = fake.answer(
                self.command, parts.path, dict(urllib.parse.parse_qsl(parts.query)), sent
            )
        if isinstance(item, tuple):
            item, headers = item
        if wrong == "drop":
            self.close_connection = True
            return
        body = item if isinstance(item, bytes) else json.dumps(item).encode()
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - names of http.server


@contextlib.contextmanager
def made(monkeypatch: pytest.MonkeyPatch, fake: "Api | None" = None):
    """Yield a fake API that the node code finds behind every kubeconfig of the node."""
    fake = fake or Api()
    path = Path(tempfile.mkdtemp(prefix="kmapi"))
    server = _Server(str(path / "sock"), _Handler)
    server.fake = fake
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    class Door(kubeapi_client.Client):
        """In the place of kubectl proxy."""

        def __init__(
            self,
            where: str,
            name: str,
            kubectl: str,
            config: str,
            deadline: Any,
            server: Any = None,
            read_only: bool = True,
        ) -> None:
            super().__init__(str(path / "sock") if fake.up else str(path / "none"), deadline)
            self.read_only = read_only

        def send(self, *args: Any, **named: Any) -> Any:
            assert not self.read_only
            return super().send(*args, **named)

        def __enter__(self) -> "Door":
            return self

        def __exit__(self, *dummy: Any) -> None:
            self.connection.close()

    (path / "admin.conf").touch()
    monkeypatch.setattr(api_target, "ApiProxy", Door)
    monkeypatch.setattr(api_target, "AWAY_SECONDS", 0)
    monkeypatch.setattr(kubeconfig, "find_kubectl", lambda asked=None: asked or "/usr/bin/kubectl")
    monkeypatch.setattr(kubeconfig, "KUBECONFIGS", (str(path / "admin.conf"),))
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        shutil.rmtree(str(path), ignore_errors=True)
        assert not path.exists()
