# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node for the tests of a repair's step.

It has a small kubelet that restarts a small scheduler, a runtime and an API server.

The processes are real and have real names, so that everything between the manifest and the proof is
what it is on a node. Files of the `state` folder say what they have to do wrong.
"""

import base64
import contextlib
import datetime
import hashlib
import http.server
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_times
from ansible_collections.kubemend.remediation.plugins.module_utils.state import step_record
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    health_probe,
    preconditions,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    component_process,
    files,
    procfs,
    runtime_tool,
    systemd,
)
from tests.unit.support.waiting import until

RUN, NEXT = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"
WRONG, RIGHT = b"--leader-elect=false", b"--leader-elect=true"
STATIC = "0::/kubepods/burstable/pod" + "a1" * 16 + "/" + "b2" * 32 + "\n"

KUBELET = """#!{python}
import hashlib, os, subprocess, sys, threading, time
from http.server import BaseHTTPRequestHandler, HTTPServer
state, folder, port = {state!r}, {folder!r}, {port}
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(500 if os.path.exists(state + "/sick") else 200)
        self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *args): pass
threading.Thread(target=HTTPServer(("127.0.0.1", port), Handler).serve_forever, daemon=True).start()
flag = lambda name: os.path.exists(state + "/" + name)
child, seen, ready, starts = None, None, 0.0, 0
os.makedirs(state + "/kube-system_kube-scheduler-m2_" + "0" * 32 + "/kube-scheduler")
while True:
    time.sleep(0.03)
    try:
        text = open(folder + "/kube-scheduler.yaml").read()
    except OSError:
        text = ""
    if text != seen and not flag("stuck"):
        if seen is not None and flag("vanish"):
            os.unlink(state + "/image")
        seen, ready = text, time.monotonic() + (3 if seen is not None and flag("late") else 0)
        if child and child.poll() is None:
            child.terminate(); child.wait()
        child = None
    if child and child.poll() is not None:
        child, ready = None, time.monotonic() + 0.4
    if child is None and seen and flag("image") and time.monotonic() >= ready:
        items = [line for line in seen.splitlines() if line.strip().startswith("- ")]
        words = [item.split("- ", 1)[1] for item in items]
        logs = state + "/kube-system_kube-scheduler-m2_" + "0" * 32 + "/kube-scheduler"
        open(logs + "/%d.log" % starts, "w").close()
        starts += 1
        refused = flag("refuse") and "--leader-elect=true" in words
        child = subprocess.Popen(
            ["/bin/false"] if refused else [{scheduler!r}] + words[1:],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
"""
SCHEDULER = """#!{python}
import json, os, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
state = {state!r}
flags = dict(word[2:].split("=", 1) for word in sys.argv[1:])
elect = flags.get("leader-elect", "true") == "true"
if "config" in flags:
    elect = "leaderElect: true" in open(flags["config"]).read()
if elect and os.path.exists(state + "/crash"):
    time.sleep(0.3); sys.exit(1)
said = elect and not os.path.exists(state + "/ignore")
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        election = "[+]leaderElection ok\\n" if said else ""
        body = "[+]ping ok\\n" + election + "healthz check passed\\n"
        if self.path == "/configz":
            body = json.dumps({{"componentconfig": {{"LeaderElection": {{"LeaderElect": said}}}}}})
        data = body.encode()
        self.send_response(200); self.send_header("Content-Length", str(len(data)))
        self.end_headers(); self.wfile.write(data)
    def log_message(self, *args): pass
HTTPServer(("127.0.0.1", int(flags["port"])), Handler).serve_forever()
"""
CTR = """#!/bin/sh
case "$*" in
  *version*) [ -e {state}/mute ] || echo "Server:" ;;
  *) [ -e {state}/image ] && echo image || : ;;
esac
"""


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def free_ports(count: int) -> list[int]:
    """Return ports that are free, below those that the kernel gives to any process that asks.

    No other process is given them meanwhile.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randrange(12000, 30000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found += [port] if port not in found else []
    return found


class Node:
    """What the guards look at, and what a step changes."""

    def __init__(self, path: Path) -> None:
        self.path, self.state, self.folder, self.root = (
            path,
            path / "state",
            path / "manifests",
            path / "kubemend",
        )
        # A test may spoil the folder of the configuration: what the node needs is elsewhere.
        for folder in (self.state, self.folder, path / "bin", path / "etc"):
            folder.mkdir()
        self.manifest, self.config = (
            self.folder / "kube-scheduler.yaml",
            path / "etc" / "scheduler.conf",
        )
        self.config.write_text("leaderElection:\n  leaderElect: false\n")
        self.port, self.kubelet_port = free_ports(2)
        self.socket = path / "containerd.sock"
        self._unix = socket.socket(socket.AF_UNIX)
        self._unix.bind(str(self.socket))
        self._unix.listen()
        (self.state / "image").touch()
        self.write_manifest(["--leader-elect=false"])
        names = {
            "python": sys.executable,
            "state": str(self.state),
            "folder": str(self.folder),
            "port": self.kubelet_port,
            "scheduler": str(path / "bin" / "kube-scheduler"),
        }
        for name, text in (("kubelet", KUBELET), ("kube-scheduler", SCHEDULER), ("ctr", CTR)):
            (path / "bin" / name).write_text(text.format(**names))
            (path / "bin" / name).chmod(0o755)
        self._api, self.api = _api()
        self._kubelet = subprocess.Popen(
            [
                str(path / "bin" / "kubelet"),
                f"--pod-manifest-path={self.folder}",
                f"--healthz-port={self.kubelet_port}",
                f"--container-runtime-endpoint=unix://{self.socket}",
            ],
            start_new_session=True,
        )
        self.wait_healthy()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._kubelet.pid, signal.SIGKILL)
        self._kubelet.wait()
        self._api.shutdown()
        self._unix.close()

    def write_manifest(self, flags: list[str]) -> None:
        words = ["kube-scheduler", f"--port={self.port}", "--secure-port=0", *flags]
        text = (
            "kind: Pod\nmetadata:\n  name: kube-scheduler\nspec:\n  containers:\n  - command:\n"
        ).replace("  - command", "    command")
        self.manifest.write_text(text + "".join(f"    - {word}\n" for word in words))

    def running(self) -> list[Any]:
        return health_probe.instances("kube-scheduler")

    def wait_healthy(self) -> None:
        assert until(self._healthy), "the fake node did not come up"

    def _healthy(self) -> bool:
        running = self.running()
        return (
            bool(running) and health_probe.ask("kube-scheduler", running[0], [])["healthz"] == 200
        )

    def wait_restarted(self, former: Any) -> None:
        """Another scheduler than this one (prove.Instance) runs, alone, and is healthy."""
        assert until(
            lambda: (
                [one.identity != former.identity for one in self.running()] == [True]
                and self._healthy()
            )
        ), "it was not restarted"

    def configure(self) -> None:
        """Give the scheduler its configuration from a file, which is older than its process."""
        (before,) = self.running()
        os.utime(self.config, (time.time() - 60, time.time() - 60))
        self.write_manifest([f"--config={self.config}"])
        self.wait_restarted(before)

    def step(
        self, old: bytes = b"--leader-elect=false", new: bytes = b"--leader-elect=true", **more: Any
    ) -> dict[str, Any]:
        data = self.manifest.read_bytes()
        at = data.index(old)
        process = self.running()[0]
        made = {
            "id": "01-m2-kube-scheduler-edit",
            "host": "m2",
            "code": ["KM101"],
            "remedy": "edit_manifest",
            "target": str(self.manifest),
            "limit": 120,
            "change": {
                "kind": "splice",
                "path": str(self.manifest),
                "sha256": sha(data),
                "splices": [
                    [
                        at,
                        at + len(old),
                        base64.b64encode(old).decode(),
                        base64.b64encode(new).decode(),
                    ]
                ],
            },
            "expect": {
                "component": "kube-scheduler",
                "restart": "kubelet",
                "flags": {"leader-elect": "true"},
                "elect": True,
                "pid": process.pid,
                "started_at": process.started_at,
                "image": "registry.k8s.io/kube-scheduler:v1",
            },
            "guard": {
                "manifest": str(self.manifest),
                "folder": str(self.folder),
                "api_servers": [self.api],
                "allow": [],
            },
        }
        return {**made, **more}

    def config_step(self, **more: Any) -> dict[str, Any]:
        step = self.step(
            b"secure-port",
            b"secure-port",
            id="02-m2-kube-scheduler-config",
            remedy="edit_config",
            target=str(self.config),
        )
        data = self.config.read_bytes()
        at = data.index(b"false")
        step["change"] = {
            "kind": "splice",
            "path": str(self.config),
            "sha256": sha(data),
            "splices": [
                [
                    at,
                    at + 5,
                    base64.b64encode(b"false").decode(),
                    base64.b64encode(b"true").decode(),
                ]
            ],
        }
        step["expect"].update(restart="signal", flags={})
        return {**step, **more}

    def params(self, step: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "run_id": RUN,
            "step": step,
            "lock": None,
            "check": False,
            "root": str(self.root),
            **more,
        }

    def run(self, step: Any = None, **more: Any) -> dict[str, Any]:
        return step_executor.run(self.params(step or self.step(), **more))


def _api() -> tuple[http.server.HTTPServer, str]:
    """Start an API server that refuses every user: that is an answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(401)

        def log_message(self, *args: Any) -> None:
            """Silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(certificate())
        file.flush()
        context.load_cert_chain(file.name)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"127.0.0.1:{server.server_port}"


def certificate() -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kube-apiserver")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    plain = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM) + plain


@contextlib.contextmanager
def made(monkeypatch: pytest.MonkeyPatch):
    """Yield a node that the code sees instead of the machine's own processes.

    All waits are short.
    """
    path = Path(tempfile.mkdtemp(prefix="kmstep"))
    everybody, text = procfs.of_interest, files.text

    def ours(proc: str = "/proc") -> list[tuple[int, str]]:
        return [
            (pid, comm)
            for pid, comm in everybody()
            if str(path) in (text(f"/proc/{pid}/cmdline") or "")
        ]

    def cgroups(name: str, *args: Any, **named: Any) -> Any:
        parts = name.split("/")
        if parts[-1] == "cgroup" and (text(f"/proc/{parts[2]}/comm") or "").startswith(
            "kube-scheduler"
        ):
            return STATIC
        return text(name, *args, **named)

    monkeypatch.setattr(procfs, "of_interest", ours)
    monkeypatch.setattr(files, "text", cgroups)
    monkeypatch.setattr(systemd, "show", lambda names, **_more: {})
    monkeypatch.setattr(
        runtime_tool, "_program", lambda name: str(path / "bin" / "ctr") if name == "ctr" else None
    )
    monkeypatch.setattr(component_process, "PODS", str(path / "state"))
    monkeypatch.setattr(health_probe, "STABLE", 0.5)
    monkeypatch.setattr(health_probe, "WRONG", 0.8)
    monkeypatch.setattr(step_times, "BACK_OFF", 60)
    monkeypatch.setattr(step_times, "WATCHED", 0.8)
    monkeypatch.setattr(preconditions, "API_SECONDS", 60)
    monkeypatch.setattr(component_process, "ASK", 60)
    node = Node(path)
    try:
        yield node
    finally:
        node.close()
        shutil.rmtree(path, ignore_errors=True)


def edit_states(node: Node) -> "list[str]":
    """Return the state that the record of the edit has, where there is one."""
    record = step_record.read(RUN, "01-m2-kube-scheduler-edit", str(node.root))
    return [record["state"]] if record else []
