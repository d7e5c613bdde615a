# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One call of the CRI on a socket: what a server of gRPC answers, and what all else may do."""

import socket
import threading

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import cri

# grpc-status, a new name, by the code of HPACK
HUFFMAN = b"\x40\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f"
SETTINGS = cri.frame(4, 0, 0, b"") + cri.frame(4, 1, 0, b"")
BEGIN = cri.frame(1, 4, 1, b"\x88\x5f\x10application/grpc")


# What containerd 2.2.1 sent: its version, and that it has no such service.
GREETING = (
    b"\0\0\x06\x04\0\0\0\0\0\0\x05\0\0@\0\0\0\0\x04\x01\0\0\0\0\0\0\x04\x08\0\0\0\0"
    b"\0\0\0\0\x05\0\0\x08\x06\0\0\0\0\0\x02\x04\x10\x10\t\x0e\x07\x07"
)
TOLD = (
    b"\0\0\x0e\x01\x04\0\0\0\x01\x88_\x8b\x1du\xd0b\r&=LMed\0\0$\0\0\0\0\0\x01\0\0\0\0\x1f\n\x05"
    b'0.1.0\x12\ncontainerd\x1a\x06v2.2.1"\x02v1'
    b"\0\0\x18\x01\x05\0\0\0\x01@\x88\x9a\xca\xc8\xb2\x124\xda\x8f\x010@\x89\x9a\xca\xc8\xb5%B"
    b"\x071\x7f\0"
)
NO_SERVICE = (
    b"\0\0E\x01\x05\0\0\0\x01\x88_\x8b\x1du\xd0b\r&=LMed@\x88\x9a\xca\xc8\xb2\x124\xda\x8f\x0212"
    b"@\x89\x9a\xca\xc8\xb5%B\x071\x7f\x9e\xb6\xae\xb5\x1f\xc5J"
    b" \xb6w1\n\xa5\x96\xd4\x93RU\xfb\x85}\xb6\xd4\x93R]\xc5\xb3\xb9\x88_"
)


def trailer(number, name=HUFFMAN):
    # and an empty grpc-message
    return (
        name + bytes([len(number)]) + number + b"\x40\x88\x9a\xca\xc8\xb5\x25\x42\x07\x31\x7f\x00"
    )


def done(number):
    return (
        SETTINGS
        + BEGIN
        + cri.frame(0, 0, 1, b"\0\0\0\0\x02\x0a\0")
        + cri.frame(1, 5, 1, trailer(number))
    )


def refused(number):
    return SETTINGS + cri.frame(1, 5, 1, b"\x88\x5f\x10application/grpc" + trailer(number))


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
        (SETTINGS + cri.frame(1, 5, 1, trailer(b"0", b"\x40\x0bgrpc-status")), 0),
        (SETTINGS + cri.frame(1, 5, 1, b"\x88"), cri.ODD),
        (SETTINGS + cri.frame(7, 0, 0, b"\0" * 8), cri.CLOSED),
        (SETTINGS + cri.frame(3, 0, 1, b"\0" * 4), cri.CLOSED),
        (b"", cri.CLOSED),
        (SETTINGS, cri.CLOSED),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", cri.ODD),
        (SETTINGS + BEGIN[:-3], cri.CLOSED),
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


@pytest.mark.parametrize(
    ("block", "number"),
    [
        (trailer(b"0"), 0),
        (trailer(b"12"), 12),
        (b"", None),
        (HUFFMAN, None),
        (HUFFMAN + b"\x82\x08\x82", None),
        (HUFFMAN + b"\x02\x31", None),
        (HUFFMAN + b"\x01x", None),
    ],
)
def test_a_status_that_is_not_as_servers_write_it_is_none(block, number):
    assert cri.status(block) == number


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
    frames = [cri.frame(0, 0, 1, message[at : at + 16384]) for at in range(0, len(message), 16384)]
    answer = SETTINGS + BEGIN + b"".join(frames) + cri.frame(1, 5, 1, trailer(b"0"))
    assert cri.call(serve(answer, piece=50000).path, CALL, b"", 5) == (cri.OK, text)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (GREETING + NO_SERVICE, 12),
        (refused(b"5"), 5),
        (done(b"0")[:-3], cri.ODD),
        (SETTINGS + BEGIN + cri.frame(1, 5, 1, trailer(b"0")), cri.ODD),
        (SETTINGS + cri.frame(7, 0, 0, b""), cri.CLOSED),
        (b"HTTP/1.1 400 Bad Request", cri.ODD),
        (b"", cri.CLOSED),
    ],
)
def test_a_call_without_a_reply(serve, answer, code):
    result = cri.call(serve(answer).path, CALL, b"", 5)
    assert result[1] == b""
    assert result[0] == code or (code == cri.ODD and result[0] == cri.CLOSED)


def test_a_call_to_no_socket(tmp_path):
    assert cri.call(str(tmp_path / "none.sock"), CALL, b"", 1) == ("No such file or directory", b"")
