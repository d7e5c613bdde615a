# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP of a node's components: an answer, none, and one that does not end."""

import socket
import threading
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    kubelet,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    http_client,
)
from tests.unit.support.fake_sockets import answering, chunked


@pytest.fixture
def server():
    with answering() as start:
        yield start


@pytest.mark.parametrize(
    ("pieces", "status", "body"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"], 200, "ok"),
        ([b"HTTP/1.1 200 OK\r\nContent-", b"Length: 4\r\n\r", b"\no", b"ka", b"y"], 200, "okay"),
        (
            [
                b"HTTP/1.1 500 Bad\r\nTransfer-Encoding: chunked\r\n\r\n",
                chunked(b"a", b"bc")[:6],
                chunked(b"a", b"bc")[6:],
            ],
            500,
            "abc",
        ),
        ([b"HTTP/1.0 403 Forbidden\r\n\r\nto the end"], 403, "to the end"),
        ([b"HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n"], 204, ""),
    ],
)
def test_http(server, pieces, status, body):
    assert http_client.get("127.0.0.1", server(*pieces, pause=0.01), "/", 120) == {
        "status": status,
        "body": body,
        "error": None,
    }


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ([b"SSH-2.0-OpenSSH\r\n\r\n"], "the answer is no HTTP"),
        ([b""], "the connection was closed"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"], "the connection was closed"),
        ([b"x" * 70000, b"y" * 70000], "the answer is no HTTP"),
    ],
)
def test_http_that_is_none(server, pieces, error):
    assert http_client.get("127.0.0.1", server(*pieces), "/", 120)["error"] in (
        error,
        "Connection reset by peer",
    )


def test_http_that_drips_ends_at_its_deadline(server):
    begin = time.monotonic()
    assert (
        http_client.get("127.0.0.1", server(*[b"H"] * 3000, pause=0.1), "/", 0.5)["error"]
        == "timed out"
    )
    assert time.monotonic() - begin < 100  # of 300


def test_http_refused():
    assert http_client.get("127.0.0.1", 1, "/", 120)["error"] == "Connection refused"


@pytest.mark.parametrize("port", [102480, 65536])
def test_a_port_that_is_none_is_no_answer(port):
    """A typo in healthzPort ends the kubelet; it must not end what tells of it."""
    assert "port must be 0-65535" in http_client.get("127.0.0.1", port, "/", 120)["error"]
    found = kubelet._healthz(["kubelet"], [f"healthzPort: {port}\n"])
    assert found["status"] is None
    assert found["url"] == f"http://127.0.0.1:{port}/healthz"
    assert found["error"]


def test_http_on_a_socket_of_this_machine(tmp_path):
    path, requests = str(tmp_path / "s"), []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(1)

        def serve():
            connection = server.accept()[0]
            requests.append(connection.recv(4096))
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        assert http_client.get(path, 0, "/x", 10)["body"] == "ok"
        thread.join(10)
    assert b"\r\nHost: localhost\r\n" in requests[0]
    assert http_client.get(str(tmp_path / "none"), 0, "/x", 10)["error"]
