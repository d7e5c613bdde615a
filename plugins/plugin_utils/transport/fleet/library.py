# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process in which asyncssh asks many hosts, as the task that started it sees it.

A host has the pipes that an ssh client would have. Their other ends go to that process, with the
command line of the client. Where asyncssh is of no use for a host, the host has no exit code.
"""

from __future__ import annotations

import array
import importlib.util
import json
import socket
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress

from ansible.utils.display import Display

from .process import LOST, Process, fork, with_pipes

HEAD = struct.Struct("!I")
MAX_READ = 65536
SEND_SECONDS = 10
UNUSABLE = 0  # the number of a message about the whole process
WARNING = "asyncssh cannot be used: {reason}. ssh clients read the hosts."


def is_installed() -> bool:
    """Tell whether asyncssh is installed for the Python of Ansible, without importing it."""
    return importlib.util.find_spec("asyncssh") is not None


class Library:
    """The process, and what it has told of its hosts."""

    def __init__(
        self,
        inherited: Iterable[int],
        released: Callable[[int], None],
        work: Callable[[socket.socket], None],
    ) -> None:
        """Start the process; raises OSError.

        inherited: the descriptors of other hosts, which it closes
        work: what it does
        """
        self._socket, other = socket.socketpair()
        try:
            pid = fork(lambda: work(other), (self._socket.fileno(), *inherited))
        except OSError:
            self._socket.close()
            raise
        finally:
            other.close()
        self.process = Process(pid, (), None, released)
        self._received = bytearray()
        self._codes: dict[int, int] = {}
        self._addresses: dict[int, str] = {}
        self._last = UNUSABLE
        self.is_usable = True

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return what other processes of the task have to close."""
        if self._socket.fileno() < 0:
            return ()
        return (self._socket.fileno(),)

    def start(self, line: list[bytes]) -> Session:
        """Have a host asked by the options and the command of an ssh client; raises OSError."""
        number = self._last = self._last + 1
        words = [word.decode("utf-8", "surrogateescape") for word in line]
        _sent, reads, write = with_pipes(lambda streams: self._send([number, words], streams))
        self._addresses[number] = words[-2]
        return Session(self, number, reads, write)

    def _send(self, message: list[object], fds: tuple[int, ...] = ()) -> None:
        data = json.dumps(message).encode("ascii")
        rights = array.array("i", fds).tobytes()
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if fds else []
        self._socket.settimeout(SEND_SECONDS)
        try:
            self._socket.sendmsg([HEAD.pack(len(data))], ancillary)
            self._socket.sendall(data)
        except OSError:  # half a message makes all later ones worthless
            self.is_usable = False
            raise

    def code(self, number: int) -> int | None:
        """Return the exit code of a host that has ended; LOST where asyncssh was of no use."""
        self._receive()
        if number in self._codes:
            return self._codes.pop(number)
        if not self.is_usable:
            return LOST
        return None

    def forget(self, number: int) -> None:
        """End the work for a host."""
        if self.is_usable:
            with suppress(OSError):
                self._send([number, None])

    def _receive(self) -> None:
        """Take what the process has told."""
        if not self.is_usable:
            return
        try:
            self._socket.setblocking(False)
            data = self._socket.recv(MAX_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.is_usable = False
        self._received += data
        *lines, rest = self._received.split(b"\n")
        self._received = rest
        for line in lines:
            number, code, reason = json.loads(line)
            self._note(number, code, reason)

    def _note(self, number: int, code: int, reason: str) -> None:
        if number == UNUSABLE:
            self.is_usable = False
            Display().warning(WARNING.format(reason=reason))
            return
        self._codes[number] = code
        address = self._addresses.pop(number)
        if reason:
            Display().vv(f"asyncssh does not read it: {reason}", host=address)

    def close(self) -> None:
        """End the process."""
        self._socket.close()
        self.process.kill()


class Session(Process):
    """One host that the process asks: its pipes, and the exit code of its command."""

    def __init__(
        self, library: Library, number: int, reads: tuple[int, ...], write: int | None
    ) -> None:
        """Take over the pipes."""
        super().__init__(0, reads, write)
        self._library, self._number, self.code = library, number, None

    def poll(self) -> None:
        """Look whether the command has ended."""
        if self.code is None:
            self.code = self._library.code(self._number)

    def _finish(self) -> None:
        self.code = LOST
        self._library.forget(self._number)
