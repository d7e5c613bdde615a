# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A limit of time and memory around one query of one host, in Ansible's worker.

A timer of this process, not RLIMIT_AS: a limit of the process would be inherited by ssh's
ProxyCommand, podman or kubectl, and programs written in Go reserve more address space than any
useful limit.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

TICK = 0.1  # a node that floods brings a hundred megabytes in this time
MEMORY = 256 * 1024 * 1024  # what this process may grow by
PAGE = os.sysconf("SC_PAGE_SIZE")


class TooLate(BaseException):
    """The time is over. No Exception, so that no other code catches it on the way."""


class TooLarge(BaseException):
    """The worker grew too far."""


@contextmanager
def watch(seconds: float, memory: int = MEMORY) -> Iterator[None]:
    """Raise TooLate or TooLarge inside the block, and end the processes that it started."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    begin, resident, before = time.monotonic(), _resident(), _children()
    former = signal.getsignal(signal.SIGALRM)
    # the task's own `timeout`, counted in the same timer
    waiting = signal.getitimer(signal.ITIMER_REAL)[0]

    def tick(number: int, frame: FrameType | None) -> None:
        spent = time.monotonic() - begin
        if waiting and spent >= waiting and callable(former):
            former(number, frame)
        if spent >= seconds:
            raise TooLate
        if _resident() - resident > memory:
            raise TooLarge

    signal.signal(signal.SIGALRM, tick)
    # Blocked, it would never arrive, and the host would have no limit.
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGALRM,))
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    try:
        yield
    except BaseException:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _end(_children() - before)
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGALRM, former or signal.SIG_DFL)
        if waiting:
            signal.setitimer(signal.ITIMER_REAL, max(0.01, waiting - (time.monotonic() - begin)))


def _resident() -> int:
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _children(pid: int | str = "self") -> set[int]:
    children: set[int] = set()
    with suppress(OSError, ValueError):
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            children |= {int(pid) for pid in path.read_text("ascii").split()}
    return children


def _family(pids: set[int]) -> set[int]:
    """Return processes with their descendants: the shell of a local host is not its program.

    Below a client of ssh may be the master of a connection, which other tasks use too.
    """
    family: set[int] = set()
    waiting = set(pids)
    while waiting:
        family |= waiting
        below = (_children(pid) for pid in waiting if _name(pid) != "ssh")
        waiting = set().union(*below) - family
    return family


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _end(children: set[int]) -> None:
    for pid in _family(children):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        with suppress(OSError):
            os.waitpid(pid, os.WNOHANG)
