# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a command costs, with everything that it started: also masters of ssh that detach."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """Let this process be the parent of what outlives its own parent."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise SystemExit("this kernel has no subreaper: the masters of ssh would not be counted")


def run(command: list[str], env: dict[str, str], folder: Path, spared: int) -> tuple[float, float]:
    """Run a command; return its seconds, and the processor seconds of all its processes.

    spared: a child of this process that is no part of it
    """
    used, begin = _used(), time.perf_counter()
    done = subprocess.run(
        command,
        env=env,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=900,
        check=False,
    )
    seconds = time.perf_counter() - begin
    _end_others(spared)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}")
    return seconds, _used() - used


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _end_others(spared: int) -> None:
    """End what the command left, so that its time counts."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while left := [int(pid) for pid in children.read_text().split() if int(pid) != spared]:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
