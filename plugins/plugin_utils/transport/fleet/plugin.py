# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host asked by a forked worker, by the action and the connection plugin of Ansible's task.

A worker has one host: its end costs no other one, and it uses no other host's password. It writes
the host's file, and sends the result of the task and what it displays through a pipe of its own:
a worker that is killed while it holds a lock of Ansible's queue would stop the whole run.
"""

from __future__ import annotations

import json
import os
import struct
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from ansible.utils.display import Display

from .process import Process, fork

HEAD = struct.Struct("!I")
MAX_OUTPUT = 16 * 1024 * 1024  # bytes of results and displayed texts of one worker
RESULT, SHOWN, WARNED, FAILED = "result", "shown", "warned", "failed"

Message = tuple[str, Any]


class Relay:
    """Stands for Ansible's queue of results in a worker."""

    def __init__(self, write: int) -> None:
        self._write, self._lock = write, threading.Lock()

    def send_display(self, method: str, *args: Any, **named: Any) -> None:
        """Hand a displayed text or a warning on; other tasks show the other messages."""
        with suppress(Exception):
            if method == "display":
                self.send(SHOWN, {"args": args, "named": named})
            elif "warning" in method:
                self.send(WARNED, _text_of(args[0]))

    def send(self, kind: str, content: Any) -> None:
        """Send one message whole."""
        data = json.dumps([kind, content]).encode("ascii")
        with self._lock:
            rest = memoryview(HEAD.pack(len(data)) + data)
            while rest:
                rest = rest[os.write(self._write, rest) :]


def start(
    ask: Callable[[], dict[str, Any]],
    inherited: Iterable[int],
    released: Callable[[int], None],
) -> Process:
    """Start a worker; raises OSError where that is impossible.

    inherited: the descriptors of other hosts, which the worker closes
    """
    read, write = os.pipe()
    try:
        pid = fork(lambda: _work(ask, write), (read, *inherited))
    except OSError:
        os.close(read)
        os.close(write)
        raise
    os.close(write)
    return Process(pid, (read,), None, released)


def _work(ask: Callable[[], dict[str, Any]], write: int) -> None:
    """Do the work of a worker."""
    relay = Relay(write)
    try:
        Display().set_queue(relay)
        relay.send(RESULT, ask())
    except BaseException as error:  # pylint: disable=broad-except
        relay.send(FAILED, f"{type(error).__name__}: {error}")


def messages(output: bytearray) -> list[Message]:
    """Take the whole messages out of what a worker has written."""
    whole: list[Message] = []
    while len(output) >= HEAD.size:
        size = HEAD.unpack_from(output)[0]
        if len(output) < HEAD.size + size:
            break
        kind, content = json.loads(output[HEAD.size : HEAD.size + size])
        whole.append((kind, content))
        del output[: HEAD.size + size]
    return whole


def _text_of(warning: Any) -> str:
    """Return the text of a warning, which is an object since ansible-core 2.19."""
    event = getattr(warning, "event", None)
    return str(getattr(event, "msg", warning))


def show(kind: str, content: Any) -> None:
    """Display what a worker handed on."""
    if kind == WARNED:
        Display().warning(content)
    else:
        Display().display(*content["args"], **content["named"])


class Worker:
    """One host and the worker that asks it."""

    def __init__(self, name: str, ask: Callable[[], dict[str, Any]]) -> None:
        self.name, self.ask, self.process = name, ask, Process(0, ())
        self.result: dict[str, Any] | None = None
        self.reason, self.has_failed = "", False

    def start(self, inherited: Iterable[int], released: Callable[[int], None]) -> Process:
        """Start the worker; raises OSError where that is impossible."""
        self.process = start(self.ask, inherited, released)
        return self.process

    def look(self) -> None:
        """Take what the worker has sent."""
        (output,) = self.process.output.values()
        for kind, content in messages(output):
            if kind in (SHOWN, WARNED):
                show(kind, content)
            elif kind == RESULT:
                self.result = content
            else:
                self.reason = str(content)
        if len(output) > MAX_OUTPUT:
            self.reason, self.has_failed = "the process that read it brought too much", True

    def death(self) -> str:
        """Return why a worker has brought no result."""
        code = self.process.code or 0
        if self.reason:
            return self.reason
        if code < 0:
            return f"the process that read it was ended by signal {-code}"
        return f"the process that read it ended with exit code {code}"
