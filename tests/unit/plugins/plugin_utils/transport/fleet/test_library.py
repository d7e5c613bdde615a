# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of many hosts, as the task sees it: what it is sent, and what its end costs."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import (
    guard,
    library,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet.process import (
    LOST,
)


def taken(connection: socket.socket) -> tuple[list[Any], list[int]]:
    data, fds, _flags, _address = socket.recv_fds(connection, 4, 3)
    size = library.HEAD.unpack(data)[0]
    return json.loads(connection.recv(size, socket.MSG_WAITALL)), list(fds)


def echo(connection: socket.socket) -> None:
    """Copy the input of one host to its output, and end it with the exit code 7."""
    (number, line), (its_input, out, err) = taken(connection)
    os.write(out, json.dumps(line).encode())
    while True:
        data = os.read(its_input, 100)
        if not data:
            break
        os.write(out, data)
    os.write(err, b"complaint")
    for fd in (its_input, out, err):
        os.close(fd)
    connection.sendall(json.dumps([number, 7, ""]).encode() + b"\n")
    connection.recv(1)


def die(_connection: socket.socket) -> None:
    os._exit(1)


def refuse(connection: socket.socket) -> None:
    connection.sendall(json.dumps([library.UNUSABLE, LOST, "no module"]).encode() + b"\n")
    connection.recv(1)


Start = Callable[[Callable[[socket.socket], None]], library.Library]


@pytest.fixture
def start() -> Iterator[Start]:
    made: list[library.Library] = []

    def begin(work: Callable[[socket.socket], None]) -> library.Library:
        made.append(library.Library((), lambda _pid: None, work))
        return made[-1]

    before = guard.open_descriptors()
    yield begin
    for process in made:
        process.close()
        assert not process.descriptors
    assert guard.open_descriptors() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def wait(session: Any) -> int:
    end = time.monotonic() + 60
    while session.code is None:
        assert time.monotonic() < end
        session.poll()
        time.sleep(0.01)
    return int(session.code)


def test_a_host_has_the_pipes_of_a_client(start: Start) -> None:
    session = start(echo).start([b"ssh", b"m1", b"\xff"])
    os.write(session.write, b"program")
    session.end_input()
    assert wait(session) == 7
    for fd in tuple(session.open):
        while not session.read(fd):
            pass
        session.end_output(fd)
    out, err = session.output.values()
    assert json.loads(out[: -len(b"program")]) == ["ssh", "m1", "\udcff"]
    assert out.endswith(b"program")
    assert err == b"complaint"
    session.kill()
    assert session.code == 7


@pytest.mark.parametrize("work", [die, refuse])
def test_without_the_process_its_hosts_have_no_exit_code(
    start: Start, work: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(library.Display, "warning", lambda _self, text: warnings.append(text))
    process = start(work)
    try:
        session = process.start([b"ssh", b"m1", b"true"])
    except OSError:
        assert work is die
        return
    assert wait(session) == LOST
    assert not process.is_usable
    assert len(warnings) == (work is refuse)
    session.kill()


def test_half_a_message_is_the_last_one(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def wait_for_ever(connection: socket.socket) -> None:
        while connection.recv(1, socket.MSG_PEEK):
            time.sleep(0.05)

    monkeypatch.setattr(library, "SEND_SECONDS", 0.2)
    process = start(wait_for_ever)
    with pytest.raises(TimeoutError):
        process.start([b"ssh", b"x" * 10_000_000, b"m1", b"true"])
    assert not process.is_usable


def test_the_end_of_a_host_is_told(start: Start) -> None:
    told, tells = os.pipe()

    def listen(connection: socket.socket) -> None:
        (number, _line), fds = taken(connection)
        (ended, line), none = taken(connection)
        os.write(tells, json.dumps([number == ended, line, len(fds), none]).encode())

    session = start(listen).start([b"ssh", b"m1", b"true"])
    session.kill()
    assert session.code == LOST
    assert json.loads(os.read(told, 1000)) == [True, None, 3, []]
    os.close(told)
    os.close(tells)


def test_whether_it_is_installed_is_seen_without_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        library.importlib.util, "find_spec", lambda name: name == "asyncssh" or None
    )
    assert library.is_installed()
    monkeypatch.setattr(library.importlib.util, "find_spec", lambda _name: None)
    assert not library.is_installed()
