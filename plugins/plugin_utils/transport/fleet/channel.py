# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One command of one host over asyncssh, with the pipes that an ssh client would have."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

MAX_READ = 65536
EXTENDED_DATA_STDERR = 1


class Output:
    """Writes what comes into a pipe; asks the host to wait while the pipe is full."""

    def __init__(self, fd: int, wait: Callable[[], None], go_on: Callable[[], None]) -> None:
        """Take over the pipe.

        wait, go_on: stop reading from the host, and begin again
        """
        self._fd, self._wait, self._go_on = fd, wait, go_on
        self._unsent = bytearray()
        self._loop = asyncio.get_running_loop()
        self._empty = asyncio.Event()
        self._empty.set()
        os.set_blocking(fd, False)

    def write(self, data: bytes) -> None:
        """Write data, or keep it until the pipe takes it."""
        is_first = not self._unsent
        self._unsent += data
        if is_first:
            self._send()
            if self._unsent:
                self._empty.clear()
                self._wait()
                self._loop.add_writer(self._fd, self._continue)

    def _send(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self._fd, self._unsent[:MAX_READ])]
        except BlockingIOError:
            pass
        except OSError:  # the task reads no more
            self._unsent.clear()

    def _continue(self) -> None:
        self._send()
        if not self._unsent:
            self._loop.remove_writer(self._fd)
            self._empty.set()
            self._go_on()

    async def end(self) -> None:
        """Wait until everything is written."""
        await self._empty.wait()

    def close(self) -> None:
        """Close the pipe, whatever is left."""
        self._loop.remove_writer(self._fd)
        os.close(self._fd)


class Channel:
    """The session of one command, in the form in which asyncssh calls it."""

    def __init__(self, pipes: tuple[int, int, int]) -> None:
        """Take over standard input, output and error."""
        self._input = pipes[0]
        self._outputs = [Output(fd, self._pause, self._resume) for fd in pipes[1:]]
        self._full = 0
        self._channel: Any = None
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self.code: int | None = None
        os.set_blocking(self._input, False)

    def _pause(self) -> None:
        self._full += 1
        self._channel.pause_reading()

    def _resume(self) -> None:
        self._full -= 1
        if not self._full:
            self._channel.resume_reading()

    def connection_made(self, channel: Any) -> None:
        """Take the channel that the command will have."""
        self._channel = channel

    def session_started(self) -> None:
        """Begin with the standard input: the command runs."""
        self.resume_writing()

    def resume_writing(self) -> None:
        """Go on with the standard input."""
        self._loop.add_reader(self._input, self._forward)

    def pause_writing(self) -> None:
        """Let the standard input wait."""
        self._loop.remove_reader(self._input)

    def _forward(self) -> None:
        try:
            data = os.read(self._input, MAX_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        with suppress(OSError):  # the command has ended
            if data:
                self._channel.write(data)
                return
            self._channel.write_eof()
        self._loop.remove_reader(self._input)

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Write what the command has written."""
        self._outputs[int(datatype == EXTENDED_DATA_STDERR)].write(data)

    def eof_received(self) -> bool:
        """Keep the other direction open: the command still reads."""
        return True

    def exit_status_received(self, status: int) -> None:
        """Take the exit code."""
        self.code = status

    def connection_lost(self, _error: Exception | None) -> None:
        """Take note that nothing more comes."""
        self._ended.set()

    def exit_signal_received(self, *_details: Any) -> None:
        """Do nothing: a command that a signal ended has no exit code."""

    def xon_xoff_requested(self, _client_can_do: bool) -> None:
        """Do nothing: there is no terminal."""

    async def end(self) -> int | None:
        """Wait for the end of the command; return its exit code if it has one."""
        await self._ended.wait()
        for output in self._outputs:
            await output.end()
        return self.code

    def say(self, text: str) -> None:
        """Write a text to the standard error, as an ssh client does."""
        self._outputs[1].write(text.encode("utf-8", "surrogateescape"))

    def close(self) -> None:
        """Close the pipes."""
        self._loop.remove_reader(self._input)
        os.close(self._input)
        for output in self._outputs:
            output.close()
