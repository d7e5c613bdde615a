# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One process at work, and its pipes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import guard
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet.process import (
    Process,
    with_pipes,
)


def started(program: str) -> Process:
    pipes = [os.pipe() for _stream in range(2)]
    (its_input, write), (out, its_out) = pipes
    popen = subprocess.Popen(
        ["/bin/sh", "-c", program], stdin=its_input, stdout=its_out, start_new_session=True
    )
    popen.returncode = 0
    os.close(its_input)
    os.close(its_out)
    return Process(popen.pid, (out,), write)


def finished(process: Process) -> bytes:
    (fd,) = process.output
    os.set_blocking(fd, True)
    while process.open:
        if process.send():
            process.end_input()
        if process.read(fd):
            process.end_output(fd)
    while not process.over:
        process.poll()
    return bytes(process.output[fd])


def test_what_is_sent_is_read_and_nothing_stays_open() -> None:
    before = len(guard.open_descriptors())
    process = started("cat; exit 3")
    process.unsent = memoryview(b"x" * 10)
    assert finished(process) == b"x" * 10
    assert process.code == 3
    process.close()
    process.close()
    assert len(guard.open_descriptors()) == before


def test_a_process_that_reads_nothing_costs_no_error() -> None:
    process = started("exec <&-; echo closed; sleep 0.2; exit 255")
    (fd,) = process.output
    os.set_blocking(fd, True)
    process.read(fd)
    process.unsent = memoryview(b"x" * 300_000)
    while not process.send():
        pass
    process.end_input()
    assert finished(process) == b"closed\n"
    assert process.code == 255


def test_the_group_of_a_process_ends_with_it() -> None:
    process = started("sleep 600 & echo $!; exec sleep 600")
    (fd,) = process.output
    os.set_blocking(fd, True)
    process.read(fd)
    told: list[int] = []
    process._released = told.append
    process.kill()
    assert told == [process.pid]
    assert process.descriptors == ()


def test_a_process_that_was_not_started_kills_nobody() -> None:
    process = Process(0, ())
    process.poll()
    process.kill()
    assert process.code == 0


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_what_begins_has_three_pipes_and_we_have_their_other_ends() -> None:
    before = len(descriptors())
    streams, reads, write = with_pipes(lambda streams: [os.dup(fd) for fd in streams])
    assert len(descriptors()) == before + 6
    os.write(streams[1], b"output")
    os.write(streams[2], b"errors")
    os.write(write, b"input")
    assert [os.read(fd, 9) for fd in (streams[0], *reads)] == [b"input", b"output", b"errors"]
    for fd in (*streams, *reads, write):
        os.close(fd)


def test_what_does_not_begin_leaves_no_pipe() -> None:
    def begin(_streams: tuple[int, int, int]) -> None:
        raise OSError("no more processes")

    before = descriptors()
    with pytest.raises(OSError, match="no more processes"):
        with_pipes(begin)
    assert len(descriptors()) == len(before)
