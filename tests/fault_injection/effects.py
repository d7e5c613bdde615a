# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's program in a child that ends itself, or is refused, at its k-th effect on the world.

What it does is seen by Python's own audit events, so that nothing of the program is replaced but
four calls which have none: os.write and os.fsync, os.fork, whose return is a moment of its own (the
command runs on when its parent is gone), and time.sleep, which is the program's waiting. No
environment variable and no option of the program has a part in it: there is nothing of this in what
is shipped.
"""

from __future__ import annotations

import errno
import http.client
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

NAMED = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.chmod",
    "os.chown",
    "os.setxattr",
    "os.removexattr",
    "os.truncate",
    "os.kill",
    "resource.prlimit",
    "http.client.send",
}
OURS = "kubemend.effect"  # what a stand-in does to its world says so by this event
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
FILES = {
    "open",
    "read",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.chmod",
    "os.chown",
    "os.setxattr",
    "os.removexattr",
    "os.truncate",
    "os.write",
    "os.fsync",
}
# Of a fork, a wait or a request a refusal has no meaning: those are cut off.
KILL, HALF = "killed", "killed half way through a write"
# of every time that it waits, how many naps count, and looks between them: further ones are the
# same moment
WAITS = 3
# what a stand-in reads of its own world, and Python of its modules
STAND_INS = (".py", ".pyc", "/kubelet.json", "/levels.json")


class Effect(NamedTuple):
    """One thing that was done: what, and to what."""

    name: str
    what: str


@dataclass
class Ended:
    """How a child ended, what it answered, and everything that it did, in order."""

    killed: bool
    answer: Any
    effects: list[Effect]


class _Hook:
    """Counts effects in one process, and does at the k-th what was asked for."""

    def __init__(
        self, log: int, at: int | None, way: str, act: Callable[[Effect], None] | None, reads: bool
    ) -> None:
        self.log, self.at, self.way, self.act, self.reads = log, at, way, act, reads
        self.pid, self.count, self.naps, self.busy = os.getpid(), 0, 0, False
        self.write, self.fsync, self.fork, self.sleep = os.write, os.fsync, os.fork, time.sleep
        self.response = http.client.HTTPConnection.getresponse

    def install(self) -> None:
        os.write, os.fsync, os.fork, time.sleep = self._write, self._fsync, self._fork, self._sleep
        hook = self

        def response(connection: Any) -> Any:
            hook.sleep(0.02)  # the server has the request by now
            hook.seen("http.answer", "")
            return hook.response(connection)

        http.client.HTTPConnection.getresponse = response  # type: ignore[method-assign,assignment]
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if os.getpid() != self.pid or self.busy:
            return
        if event == "open":
            path, _mode, flags = args
            if (
                isinstance(path, (str, bytes))
                and os.fsdecode(path) != os.devnull
                and not os.fsdecode(path).endswith(STAND_INS)
            ):
                if flags & WRITING:
                    self.seen("open", os.fsdecode(path))
                elif self.reads and not os.fsdecode(path).startswith(("/proc", "/usr", "/etc")):
                    self.seen("read", os.fsdecode(path))
        elif event in NAMED:
            self.seen(
                event, " ".join(str(one) for one in args[:2]) if event != "http.client.send" else ""
            )
        elif event == OURS:
            self.seen(event, str(args[0]))

    def seen(self, name: str, what: str, data: Any = None) -> None:
        """Record an effect that is about to happen.

        At the effect number `at`, the process ends before it or half way through it, or an error
        takes its place.
        """
        if name not in ("wait", "read"):
            self.naps = 0
        self.naps += name == "wait"
        # it only looks again at what it waits for
        if self.naps > WAITS and name in ("wait", "read"):
            return
        self.busy = True
        self.count += 1
        self.write(self.log, (json.dumps([name, what]) + "\n").encode())
        if self.act is not None:
            self.act(Effect(name, what))
        if self.count == self.at:
            if self.way == HALF and data is not None:
                self.write(data[0], bytes(data[1])[: len(data[1]) // 2])
            if self.way in (KILL, HALF):
                os.kill(self.pid, signal.SIGKILL)
            if self.way in errno.errorcode.values() and name in FILES:
                self.busy = False
                number = getattr(errno, self.way)
                raise OSError(number, os.strerror(number), what)
            if self.way == "ECONNRESET" and name.startswith("http."):
                self.busy = False
                raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        self.busy = False

    def _write(self, fd: int, data: Any) -> int:
        self.seen("os.write", "", (fd, data))
        return self.write(fd, data)

    def _fsync(self, fd: int) -> None:
        self.seen("os.fsync", "")
        self.fsync(fd)

    def _fork(self) -> int:
        self.seen("os.fork", "")
        pid = self.fork()
        if pid:
            self.seen("forked", "")
        return pid

    def _sleep(self, seconds: float) -> None:
        self.seen("wait", "")
        self.sleep(seconds)


def run(
    folder: Path,
    action: Callable[[], Any],
    at: int | None = None,
    way: str = KILL,
    act: Callable[[Effect], None] | None = None,
    before: Callable[[], None] | None = None,
    reads: bool = False,
) -> Ended:
    """Run the action in a child; `act` is called there at every effect, and `before` first.

    reads: whether opening a file to read it counts, too
    """
    log, answer = folder / "effects.log", folder / "answer.json"
    answer.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        _child(log, answer, action, (at, way, act, reads), before)
    status = os.waitpid(pid, 0)[1]
    effects = (
        [Effect(*json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()]
        if log.exists()
        else []
    )
    return Ended(
        os.WIFSIGNALED(status),
        json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else None,
        effects,
    )


def _child(
    log: Path,
    answer: Path,
    action: Callable[[], Any],
    told: tuple[Any, ...],
    before: Callable[[], None] | None,
) -> None:
    """Run the action in the child; never return."""
    try:
        os.setsid()
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if before:
            before()
        hook = _Hook(fd, *told)
        hook.install()
        result = action()
        hook.busy = True
        answer.write_text(json.dumps(result, default=str), encoding="utf-8")
    except BaseException as error:  # pylint: disable=broad-except
        hook.busy = True
        answer.write_text(json.dumps({"state": "raised", "reason": repr(error)}), encoding="utf-8")
    finally:
        os._exit(0)
