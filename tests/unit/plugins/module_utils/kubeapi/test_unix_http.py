# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP over a unix socket, under one deadline."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.unix_http import (
    Ahead,
    ApiError,
    Connection,
    Deadline,
)


@pytest.fixture
def serve(tmp_path: Path) -> "Iterator[Any]":
    """Return a function that serves pieces of an answer, with a pause before each."""
    listening = socket.socket(socket.AF_UNIX)
    path = str(tmp_path / "proxy.sock")
    listening.bind(path)
    listening.listen(5)

    def answer(pieces: "tuple[bytes, ...]", pause: float) -> None:
        while True:
            try:
                connection = listening.accept()[0]
            except OSError:
                return
            connection.recv(65536)
            try:
                for piece in pieces:
                    time.sleep(pause)
                    connection.sendall(piece)
            except OSError:
                pass
            connection.close()

    def start(*pieces: bytes, pause: float = 0) -> str:
        threading.Thread(target=answer, args=(pieces, pause), daemon=True).start()
        return path

    yield start
    listening.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"


def test_a_request_is_for_localhost_and_is_answered(serve: Any) -> None:
    connection = Connection(serve(OK, b"ok"))
    connection.limit(Deadline(60))
    connection.request("GET", "/version")
    assert connection.getresponse().read() == b"ok"
    assert connection.host == "localhost"
    connection.close()


def test_bytes_that_drip_end_at_the_deadline(serve: Any) -> None:
    slow = OK.replace(b"Length: 2", b"Length: 50")
    connection = Connection(serve(slow, *[b"o"] * 50, pause=0.2))
    connection.limit(Deadline(1.5))
    begin = time.monotonic()
    connection.request("GET", "/")
    answer = connection.getresponse()
    with pytest.raises((ApiError, OSError)):
        answer.read()
    assert time.monotonic() - begin < 9
    connection.close()


def test_a_deadline_is_never_later_than_the_one_around_it() -> None:
    outer = Deadline(5)
    assert Deadline(60, outer).at == outer.at
    assert Deadline(1, outer).at < outer.at
    with pytest.raises(ApiError, match="the time limit was reached") as error:
        Deadline(-1).remaining()
    assert (error.value.status, error.value.code) == ("timeout", None)


def test_a_page_that_was_requested_is_taken_once(serve: Any) -> None:
    def read(answer: Any) -> Any:
        return answer.read()

    ahead = Ahead(serve(OK, b"ok"))
    assert ahead.ask("/pods?continue=a", {}, Deadline(60)) == 1
    assert ahead.take("/pods?continue=b", Deadline(60), read) is None
    status, _headers, body = ahead.take("/pods?continue=a", Deadline(60), read)
    assert (status, body) == (200, b"ok")
    assert ahead.take("/pods?continue=a", Deadline(60), read) is None


def test_a_page_that_is_lost_is_none(serve: Any, tmp_path: Path) -> None:
    ahead = Ahead(serve(b"no http"))
    ahead.ask("/pods", {}, Deadline(60))
    assert ahead.take("/pods", Deadline(60), lambda answer: answer.read()) is None
    assert Ahead(str(tmp_path / "none")).ask("/pods", {}, Deadline(60)) == 0


def test_pages_of_a_list_that_ended_are_forgotten(serve: Any) -> None:
    ahead = Ahead(serve(OK, b"ok"))
    for target in ("/pods?continue=a", "/nodes?continue=a"):
        ahead.ask(target, {}, Deadline(60))
    ahead.forget("/pods")
    assert list(ahead.open) == ["/nodes?continue=a"]
    ahead.forget("/nodes")
    assert ahead.open == {}
