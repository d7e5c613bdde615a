# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pipes of one command, between asyncssh and the task."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import (
    channel,
)


class Remote:
    """Stands for the channel of asyncssh."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.calls: list[str] = []

    def write(self, data: bytes) -> None:
        self.written += data

    def write_eof(self) -> None:
        self.calls.append("eof")

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")


async def opened() -> tuple[channel.Channel, Remote, dict[str, int]]:
    pairs = {name: os.pipe() for name in ("stdin", "stdout", "stderr")}
    made = channel.Channel((pairs["stdin"][0], pairs["stdout"][1], pairs["stderr"][1]))
    remote = Remote()
    made.connection_made(remote)
    made.session_started()
    ends = {"stdin": pairs["stdin"][1], "stdout": pairs["stdout"][0], "stderr": pairs["stderr"][0]}
    return made, remote, ends


def test_input_goes_through_to_its_end() -> None:
    async def run() -> None:
        made, remote, ends = await opened()
        os.write(ends["stdin"], b"program")
        os.close(ends["stdin"])
        while "eof" not in remote.calls:
            await asyncio.sleep(0.01)
        assert remote.written == b"program"
        made.close()
        os.close(ends["stdout"])
        os.close(ends["stderr"])

    asyncio.run(asyncio.wait_for(run(), 60))


def test_input_waits_while_the_host_takes_none() -> None:
    async def run() -> None:
        made, remote, ends = await opened()
        made.pause_writing()
        os.write(ends["stdin"], b"program")
        await asyncio.sleep(0.05)
        assert remote.written == b""
        made.resume_writing()
        while not remote.written:
            await asyncio.sleep(0.01)
        made.close()
        for fd in ends.values():
            os.close(fd)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_full_pipe_stops_the_host_and_nothing_is_lost() -> None:
    async def run() -> None:
        made, remote, ends = await opened()
        data = os.urandom(1_000_000)
        made.data_received(data, None)
        made.data_received(b"complaint", channel.EXTENDED_DATA_STDERR)
        assert remote.calls == ["pause"]
        made.exit_status_received(3)
        made.connection_lost(None)
        os.set_blocking(ends["stdout"], False)
        ending = asyncio.ensure_future(made.end())
        read = bytearray()
        while len(read) < len(data):
            assert not ending.done()
            with suppress(BlockingIOError):
                read += os.read(ends["stdout"], 65536)
            await asyncio.sleep(0)
        assert await ending == 3
        assert bytes(read) == data
        assert os.read(ends["stderr"], 100) == b"complaint"
        assert remote.calls == ["pause", "resume"]
        made.close()
        for fd in ends.values():
            os.close(fd)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_output_that_is_read_no_more_is_dropped() -> None:
    async def run() -> None:
        made, _remote, ends = await opened()
        os.close(ends["stdout"])
        made.data_received(b"x" * 1_000_000, None)
        made.exit_signal_received("KILL", False, "", "")
        made.connection_lost(None)
        assert await made.end() is None
        made.close()
        os.close(ends["stdin"])
        os.close(ends["stderr"])

    asyncio.run(asyncio.wait_for(run(), 60))


def test_the_end_of_one_direction_keeps_the_other() -> None:
    async def run() -> Any:
        made, _remote, ends = await opened()
        kept = made.eof_received()
        made.close()
        for fd in ends.values():
            os.close(fd)
        return kept

    assert asyncio.run(run())
