# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One call of the CRI on a socket: what a server of gRPC answers, and what all else may do."""

import socket
import threading

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    cri,
    grpc_call,
)
from tests.unit.support.grpc_answers import (
    BEGIN,
    GREETING,
    NO_SERVICE,
    SETTINGS,
    TOLD,
    done,
    refused,
    trailer,
)


class Server:
    """A socket that answers each connection with these bytes, in pieces.

    It answers once it has read the call.
    """

    def __init__(self, path, answer, piece=7, close=True):
        self.path, self.answer, self.piece, self.close = path, answer, piece, close
        self.asked, self.kept = [], []
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listening.bind(path)
        self.listening.listen(5)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                one = self.listening.accept()[0]
            except OSError:
                return
            self.kept.append(one)
            self.asked.append(one.recv(65536))
            try:
                for begin in range(0, len(self.answer), self.piece):
                    one.sendall(self.answer[begin : begin + self.piece])
                if self.close:
                    one.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # the asker has heard enough


@pytest.fixture
def serve(tmp_path):
    servers = []

    def begin(*arguments, **more):
        servers.append(Server(str(tmp_path / (f"{len(servers)}.sock")), *arguments, **more))
        return servers[-1]

    yield begin
    for one in servers:
        one.listening.close()


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (GREETING + TOLD, 0),
        (GREETING + NO_SERVICE, 12),
        (done(b"0"), 0),
        (refused(b"12"), 12),
        (refused(b"2"), 2),
        (done(b"14"), 14),
        (SETTINGS + grpc_call.frame(1, 5, 1, trailer(b"0", b"\x40\x0bgrpc-status")), 0),
        (SETTINGS + grpc_call.frame(1, 5, 1, b"\x88"), grpc_call.ODD),
        (SETTINGS + grpc_call.frame(7, 0, 0, b"\0" * 8), grpc_call.CLOSED),
        (SETTINGS + grpc_call.frame(3, 0, 1, b"\0" * 4), grpc_call.CLOSED),
        (b"", grpc_call.CLOSED),
        (SETTINGS, grpc_call.CLOSED),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", grpc_call.ODD),
        (SETTINGS + BEGIN[:-3], grpc_call.CLOSED),
    ],
    ids=[
        "containerd",
        "containerd-without",
        "ok",
        "unimplemented",
        "unknown",
        "unavailable",
        "plain",
        "nothing",
        "goaway",
        "reset",
        "closed",
        "settings",
        "http1",
        "cut",
    ],
)
@pytest.mark.parametrize("piece", [1, 4096])
def test_what_an_answer_says(serve, answer, found, piece):
    server = serve(answer, piece)
    assert cri.version(server.path, "v1", 120) == found
    assert cri.connect(server.path, 120) is None
    assert server.asked[0].startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert b"/runtime.v1.RuntimeService/Version" in server.asked[0]


@pytest.mark.parametrize("answer", [b"", SETTINGS, SETTINGS + BEGIN])
def test_one_that_hangs_is_silent(serve, answer):
    assert cri.version(serve(answer, close=False).path, "v1", 0.3) == cri.SILENT


def test_there_is_no_connection(tmp_path):
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dead.bind(str(tmp_path / "dead"))
    dead.close()
    assert (
        cri.connect(str(tmp_path / "dead"), 120),
        cri.version(str(tmp_path / "dead"), "v1", 120),
    ) == ("Connection refused",) * 2
    assert (
        cri.connect(str(tmp_path / "none"), 120),
        cri.version(str(tmp_path / "none"), "v1", 120),
    ) == ("No such file or directory",) * 2


CALL = "runtime.v1.RuntimeService/Version"


@pytest.mark.parametrize("piece", [1, 7, 4096])
def test_a_call_returns_the_message_of_the_reply(serve, piece):
    server = serve(GREETING + TOLD, piece=piece)
    code, data = cri.call(server.path, CALL, b"\x08\x01", 5)
    assert code == cri.OK
    assert data.endswith(b'\x1a\x06v2.2.1"\x02v1')
    assert server.asked[0].endswith(b"\0\0\0\0\x02\x08\x01")


def test_a_long_reply_comes_in_several_frames(serve):
    text = b"x" * 200000
    message = b"\0" + len(text).to_bytes(4, "big") + text
    frames = [
        grpc_call.frame(0, 0, 1, message[at : at + 16384]) for at in range(0, len(message), 16384)
    ]
    answer = SETTINGS + BEGIN + b"".join(frames) + grpc_call.frame(1, 5, 1, trailer(b"0"))
    assert cri.call(serve(answer, piece=50000).path, CALL, b"", 5) == (cri.OK, text)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (GREETING + NO_SERVICE, 12),
        (refused(b"5"), 5),
        (done(b"0")[:-3], grpc_call.ODD),
        (SETTINGS + BEGIN + grpc_call.frame(1, 5, 1, trailer(b"0")), grpc_call.ODD),
        (SETTINGS + grpc_call.frame(7, 0, 0, b""), grpc_call.CLOSED),
        (b"HTTP/1.1 400 Bad Request", grpc_call.ODD),
        (b"", grpc_call.CLOSED),
    ],
)
def test_a_call_without_a_reply(serve, answer, code):
    result = cri.call(serve(answer).path, CALL, b"", 5)
    assert result[1] == b""
    assert result[0] == code or (code == grpc_call.ODD and result[0] == grpc_call.CLOSED)


def test_a_call_to_no_socket(tmp_path):
    assert cri.call(str(tmp_path / "none.sock"), CALL, b"", 1) == ("No such file or directory", b"")
