# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limit around one question to one host."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import watchdog


def wait_for_child(children: list[subprocess.Popen[bytes]]) -> None:
    with watchdog.watch(2):
        children.append(subprocess.Popen(["sleep", "6000"]))
        children[0].wait()


def test_a_hung_child_is_ended() -> None:
    begin = time.monotonic()
    child: list[subprocess.Popen[bytes]] = []
    with pytest.raises(watchdog.TooLate):
        wait_for_child(child)
    assert time.monotonic() - begin < 100
    child[0].wait(timeout=100)  # it was killed


def wait_for_shell(children: list[subprocess.Popen[bytes]]) -> None:
    with watchdog.watch(2):
        shell = "sleep 6000 & echo $!; wait"
        children.append(subprocess.Popen(["sh", "-c", shell], stdout=subprocess.PIPE))
        children[0].wait()


def test_what_a_shell_of_a_local_host_started_is_ended_too() -> None:
    shell: list[subprocess.Popen[bytes]] = []
    with pytest.raises(watchdog.TooLate):
        wait_for_shell(shell)
    pid = int(shell[0].stdout.readline())
    shell[0].wait(timeout=100)
    until = time.monotonic() + 100
    while is_running(pid):
        assert time.monotonic() < until
        time.sleep(0.05)
    shell[0].stdout.close()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_master_of_a_connection_below_a_client_of_ssh_stays(tmp_path: Path) -> None:
    client = tmp_path / "ssh"  # the kernel names a process after the file of its program
    client.symlink_to("/bin/sh")
    process = subprocess.Popen([client, "-c", "sleep 6000 & wait"])
    try:
        while not watchdog._children(process.pid):
            time.sleep(0.05)
        assert watchdog._family({process.pid}) == {process.pid}
    finally:
        for pid in watchdog._children(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait(timeout=100)


def test_a_child_from_before_is_not_ours_to_end() -> None:
    other = subprocess.Popen(["sleep", "6000"])
    try:
        with pytest.raises(watchdog.TooLate), watchdog.watch(0.3):
            time.sleep(600)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def grow() -> None:
    with watchdog.watch(600, memory=64 * 1024 * 1024):
        blocks = []
        while True:
            blocks.append(bytearray(8 * 1024 * 1024))
            time.sleep(0.01)


def test_memory() -> None:
    with pytest.raises(watchdog.TooLarge):
        grow()


def test_nothing_is_left_behind() -> None:
    former = signal.getsignal(signal.SIGALRM)
    with watchdog.watch(600):
        assert signal.getitimer(signal.ITIMER_REAL)[1] == watchdog.TICK
    assert signal.getsignal(signal.SIGALRM) is former
    assert signal.getitimer(signal.ITIMER_REAL) == (
        0.0,
        0.0,
    )


def wait_with_alarm() -> None:
    signal.alarm(1)
    with watchdog.watch(600):
        time.sleep(600)


def test_the_tasks_own_timeout_still_counts() -> None:
    class Task(Exception):
        pass

    def over(number: int, frame: object) -> None:
        raise Task

    former = signal.signal(signal.SIGALRM, over)
    try:
        with pytest.raises(Task):
            wait_with_alarm()
        signal.alarm(3000)
        with watchdog.watch(20):
            pass
        assert 2500 < signal.alarm(0) <= 3000
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


def test_outside_the_main_thread_it_only_runs_the_block() -> None:
    seen: list[int] = []

    def work() -> None:
        with watchdog.watch(1):
            seen.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [1]


def test_a_blocked_alarm_limits_all_the_same() -> None:
    former = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGALRM,))
    try:
        with pytest.raises(watchdog.TooLate), watchdog.watch(0.05):
            time.sleep(30)
        assert signal.SIGALRM in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)
