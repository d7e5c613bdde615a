# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One process that is at work for one host: its pipes, its limits of time and size, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from . import guard

Work = TypeVar("Work")

MAX_READ = 256 * 1024
MAX_WRITE = 65536
LOST = -1  # the exit code of a process that was waited for elsewhere


def with_pipes(
    begin: Callable[[tuple[int, int, int]], Work],
) -> tuple[Work, tuple[int, int], int]:
    """Begin what works for a host; return it, the ends to read and the end to write.

    begin: gets standard input, output and error of the work; an OSError of it closes every pipe
    """
    pipes: list[int] = []
    try:
        for _stream in ("stdin", "stdout", "stderr"):
            pipes += os.pipe()
        its_input, write, out, its_out, err, its_err = pipes
        work = begin((its_input, its_out, its_err))
    except OSError:
        for fd in pipes:
            os.close(fd)
        raise
    for fd in (its_input, its_out, its_err):
        os.close(fd)
    return work, (out, err), write


class Process:
    """A process, the leader of a group of its own, whose pipes this one holds."""

    def __init__(
        self,
        pid: int,
        reads: tuple[int, ...],
        write: int | None = None,
        released: Callable[[int], None] = lambda _pid: None,
    ) -> None:
        """Take over the pipes, which `close` closes once.

        pid: 0 stands for a process that has not been started
        released: is told the number of the process just before that is free again
        """
        self.pid, self._released = pid, released
        self.code: int | None = None if pid else 0
        self.output: dict[int, bytearray] = {fd: bytearray() for fd in reads}
        self.open, self.write = set(reads), write
        self.unsent = memoryview(b"")
        for fd in self.descriptors:
            os.set_blocking(fd, False)

    @property
    def size(self) -> int:
        """Return how many bytes of output are held."""
        return sum(map(len, self.output.values()))

    @property
    def over(self) -> bool:
        """Tell whether the process has ended and everything that it wrote is read."""
        return self.code is not None and not self.open

    def read(self, fd: int) -> bool:
        """Take what a pipe has; tell whether it has ended, so that it is to be closed."""
        try:
            data = os.read(fd, MAX_READ)
        except BlockingIOError:
            return False
        except OSError:
            return True
        self.output[fd] += data
        return not data

    def send(self) -> bool:
        """Write what fits; tell whether the pipe is to be closed."""
        if self.write is None:
            return False
        try:
            count = os.write(self.write, self.unsent[:MAX_WRITE])
        except BlockingIOError:
            return False
        except OSError:  # it has ended, or reads no more
            return True
        self.unsent = self.unsent[count:]
        return not self.unsent

    def end_input(self) -> None:
        """Close the standard input."""
        if self.write is not None:
            os.close(self.write)
            self.write = None

    def end_output(self, fd: int) -> None:
        """Close a pipe that has ended."""
        self.open.discard(fd)
        os.close(fd)

    def poll(self) -> None:
        """Look whether the process has ended."""
        if self.code is None and _has_ended(self.pid):
            self._finish()

    def _finish(self) -> None:
        """End what is left of the group; only then the number of the process is free again."""
        guard.kill((self.pid,))
        self._released(self.pid)
        try:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:  # it was waited for elsewhere
            self.code = LOST

    def kill(self) -> None:
        """End the process and its group, and wait for it; what it wrote stays."""
        if self.code is None:
            self._finish()
        self.close()

    def close(self) -> None:
        """Close every pipe that is still open."""
        self.end_input()
        for fd in tuple(self.open):
            self.end_output(fd)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return the pipes that are open."""
        if self.write is None:
            return tuple(self.open)
        return (*self.open, self.write)


def fork(work: Callable[[], None], inherited: Iterable[int]) -> int:
    """Start a process that does this work in a session of its own; raises OSError.

    inherited: the descriptors of other hosts, which the process closes
    """
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            _reset_signals()
            for number in inherited:
                with suppress(OSError):
                    os.close(number)
            work()
        finally:
            os._exit(0)
    return pid


def _reset_signals() -> None:
    """Let signals have their usual effect: the task's handlers are not meant for its processes."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())


def _has_ended(pid: int) -> bool:
    """Tell whether a process has ended, without taking its exit code."""
    try:
        waitid = os.waitid
    except AttributeError:  # macOS before Python 3.13
        return _has_ended_by_signal(pid)
    try:
        return waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _has_ended_by_signal(pid: int) -> bool:
    done = subprocess.run(
        ["/bin/ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()[:1] in ("", "Z")
