# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the process of asyncssh does: it takes hosts, asks each, and tells its exit code."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import socket
import subprocess
from contextlib import suppress

from . import login
from .channel import Channel
from .library import HEAD, UNUSABLE
from .options import NotHonoured, Options, Settings, arguments, parse, refusal
from .process import LOST

SSH_FAILED = 255
MAX_READ, MAX_DESCRIPTORS = 65536, 240
OPTIONS_AT_ONCE = 4  # processes of `ssh -G`
DEFAULTS = ("-F", "none", "-G", "localhost")
WITHOUT_EFFECT_ON_OPTIONS = ("-oControlPath=", "ControlPath=")


def serve(connection: socket.socket) -> None:
    """Serve the task at the other end until it closes the connection."""
    gc.freeze()
    _be_quiet()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    try:
        import asyncssh

        asyncssh.set_log_level("CRITICAL")
    except Exception as error:  # pylint: disable=broad-except
        # of whatever an operator has installed: ssh clients read the hosts
        _tell(connection, UNUSABLE, LOST, f"{type(error).__name__}: {error}")
        return
    asyncio.run(Service(connection).run())


def _be_quiet() -> None:
    devnull = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(devnull, number)


def _tell(connection: socket.socket, number: int, code: int, reason: str) -> None:
    """Tell how a host has ended. The task always reads: a connection that is full is lost."""
    line = json.dumps([number, code, reason[:2000]]) + "\n"
    try:
        connection.sendall(line.encode("ascii"))
    except OSError:
        os._exit(1)


class Service:
    """Asks hosts at the same time, as many as the task hands over."""

    def __init__(self, connection: socket.socket) -> None:
        """Take the connection to the task."""
        self._connection = connection
        self._data = bytearray()
        self._fds: list[int] = []
        self._hosts: dict[int, asyncio.Task[None]] = {}
        self._options: dict[tuple[str, ...], asyncio.Task[Options]] = {}
        self._processes = asyncio.Semaphore(OPTIONS_AT_ONCE)

    async def run(self) -> None:
        """Take messages until the task closes the connection."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(self._connection, self._take, ended)
        await ended.wait()
        os._exit(0)

    def _take(self, ended: asyncio.Event) -> None:
        try:
            data, fds, _flags, _address = socket.recv_fds(
                self._connection, MAX_READ, MAX_DESCRIPTORS, socket.MSG_DONTWAIT
            )
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        if not data:
            ended.set()
            return
        self._data += data
        self._fds += fds
        while len(self._data) >= HEAD.size:
            size = HEAD.size + HEAD.unpack_from(self._data)[0]
            if len(self._data) < size:
                break
            number, line = json.loads(self._data[HEAD.size : size])
            del self._data[:size]
            self._follow(number, line)

    def _follow(self, number: int, line: list[str] | None) -> None:
        """Begin with a host, or end it."""
        if line is None:
            if number in self._hosts:
                self._hosts[number].cancel()
            return
        (feed, output, errors), self._fds = self._fds[:3], self._fds[3:]
        task = asyncio.ensure_future(self._ask(number, line, Channel((feed, output, errors))))
        self._hosts[number] = task
        task.add_done_callback(lambda _task: self._hosts.pop(number, None))

    async def _ask(self, number: int, line: list[str], channel: Channel) -> None:
        code, reason = LOST, ""
        try:
            code = await self._code(line, channel)
        except login.NotConnected as error:
            channel.say(str(error))
            code = SSH_FAILED
        except NotHonoured as refused:
            reason = str(refused)
        except asyncio.CancelledError:
            pass
        except Exception as error:  # pylint: disable=broad-except
            # of asyncssh, or of one that is not as it was: an ssh client says what is wrong
            reason = f"{type(error).__name__}: {error}"
        channel.close()
        _tell(self._connection, number, code, reason)

    async def _code(self, line: list[str], channel: Channel) -> int:
        """Run the command of a host; return its exit code."""
        settings = Settings(await self._in_force(line))
        connection = await login.log_in(settings)
        try:
            await connection.create_session(
                lambda: channel,
                line[-1],
                env=settings.environment(os.environ),
                send_env=None,
                request_pty=False,
                x11_forwarding=False,
                encoding=None,
            )
            code = await channel.end()
        except BaseException:
            connection.abort()
            raise
        connection.close()
        if code is None or code == SSH_FAILED:  # ssh would not tell them apart either
            raise NotHonoured("the connection ended before the command, or the command with 255")
        return code

    async def _in_force(self, line: list[str]) -> Options:
        """Return the options in force; raise NotHonoured for one that asyncssh does not honour."""
        words = arguments(line)
        options = await self._printed(words)
        defaults = await self._printed([words[0], *DEFAULTS])
        name = refusal(options, defaults)
        if name:
            raise NotHonoured(name)
        return options

    async def _printed(self, words: list[str]) -> Options:
        """Return what `ssh -G` prints, asked once for the same options."""
        key = tuple(word for word in words if not word.startswith(WITHOUT_EFFECT_ON_OPTIONS))
        if key not in self._options:
            self._options[key] = asyncio.ensure_future(self._print(words))
        return await asyncio.shield(self._options[key])

    async def _print(self, words: list[str]) -> Options:
        async with self._processes:
            process = await asyncio.create_subprocess_exec(
                *words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            output = (await process.communicate())[0]
        if process.returncode:
            raise NotHonoured(f"ssh -G ends with exit code {process.returncode}")
        return parse(output.decode("utf-8", "surrogateescape"))
