# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that ends what a fleet started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import guard
from tests.unit.support import child_process

SLEEP = [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(600)"]


def sleeper(*held: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(SLEEP, stdout=subprocess.PIPE, start_new_session=True, pass_fds=held)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_what_is_left_when_the_pipe_ends_is_killed() -> None:
    kept, ended = sleeper(), sleeper()
    try:
        watching = guard.Guard()
        for process in (kept, ended):
            watching.add(process.pid)
        watching.remove(kept.pid)
        watching.close()
        assert ended.wait(100) == -signal.SIGKILL
        assert kept.poll() is None
    finally:
        kept.kill()
        kept.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_task_that_is_killed_leaves_no_process(number: int) -> None:
    """The task's process has no handler, and no time for its own end."""
    read, write = os.pipe()

    def work() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        watching = guard.Guard()
        process = sleeper(write)
        watching.add(process.pid)
        os.write(write, f"{process.pid}\n".encode())
        signal.pause()

    pid = child_process.fork(work)
    os.close(write)
    with os.fdopen(read) as pipe:
        assert int(pipe.readline())
        os.kill(pid, number)
        os.waitpid(pid, 0)
        pipe.read()  # ends with the last process that holds it: the sleeping one


def test_without_a_process_for_it_the_task_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError

    before = set(guard.open_descriptors())
    monkeypatch.setattr(os, "fork", refuse)
    watching = guard.Guard()
    watching.add(12345678)
    watching.close()
    assert watching.descriptors == ()
    assert len(set(guard.open_descriptors())) == len(before)


def test_no_group_of_its_own_is_ever_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _number: killed.append(pid))
    monkeypatch.setattr(os, "kill", lambda pid, _number: killed.append(pid))
    guard.kill((0, 1, -1, 77))
    assert set(killed) == {77}
