# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends the processes of a fleet when the task that started them dies, by whatever signal.

A small process in a session of its own reads from a pipe which processes there are. When the pipe
ends, it kills the groups of those that are alive. So no handler of a signal is needed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

MAX_READ = 65536
MAX_DESCRIPTOR = 4096  # where the system does not list them


class Guard:
    """The watching process. Where it cannot be started, the task ends its processes itself."""

    def __init__(self) -> None:
        self._pid, self._write = 0, -1
        read, write = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(read)
            os.close(write)
            return
        if pid == 0:
            _watch(read)
        os.close(read)
        self._pid, self._write = pid, write

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return what a forked process has to close: the pipe ends with its last copy."""
        if self._write < 0:
            return ()
        return (self._write,)

    def add(self, pid: int) -> None:
        """Let the group of a process end with this one."""
        self._say(f"+{pid}\n")

    def remove(self, pid: int) -> None:
        """Let a process alone. This has to be said before its number is free again."""
        self._say(f"-{pid}\n")

    def _say(self, line: str) -> None:
        if self._write < 0:
            return
        try:
            os.write(self._write, line.encode("ascii"))
        except OSError:  # another process killed it
            os.close(self._write)
            self._write = -1

    def close(self) -> None:
        """End the watching process."""
        if self._write >= 0:
            os.close(self._write)
            self._write = -1
        if self._pid:
            with suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = 0


def _watch(read: int) -> None:
    """Be the watching process until the pipe ends; never return."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _close_all_but(read)
        kill(watched(read))
    finally:
        os._exit(0)


def _close_all_but(kept: int) -> None:
    """Close every other descriptor: a copy of the pipe's other end would keep the pipe open."""
    with suppress(OSError):
        devnull = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(devnull, number)
    for number in open_descriptors():
        if number > 2 and number != kept:
            with suppress(OSError):
                os.close(number)


def open_descriptors() -> list[int]:
    """Return the descriptors of this process."""
    try:
        return [int(path.name) for path in Path("/dev/fd").iterdir()]
    except OSError:
        return list(range(MAX_DESCRIPTOR))


def watched(read: int) -> set[int]:
    """Return the processes that are left when the pipe ends."""
    alive: set[int] = set()
    rest = b""
    while True:
        data = os.read(read, MAX_READ)
        if not data:
            return alive
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            pid = int(line[1:])
            if line[:1] == b"+":
                alive.add(pid)
            else:
                alive.discard(pid)


def kill(leaders: Iterable[int]) -> None:
    """Kill the groups of these processes, and the processes."""
    for pid in leaders:
        if pid <= 1:
            continue  # a group of 0 would be this process's own
        for end in (os.killpg, os.kill):
            with suppress(OSError):
                end(pid, signal.SIGKILL)
