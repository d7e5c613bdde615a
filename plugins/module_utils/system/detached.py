# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work that continues when the controller or the connection is lost."""

import json
import os
import select
import signal
import time


class AtWork(Exception):
    """The detached process continues, and its caller waits no longer."""


def run(job, params, patience=None):
    """Run job(params) in a process that outlives this one, and return its answer.

    The result is None when that process ended without an answer.

    patience: seconds after which AtWork is raised while the job continues; None for no limit.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _apart(job, params, writing)
    os.close(writing)
    parts, end = [], None if patience is None else time.monotonic() + patience
    while True:
        if (
            end is not None
            and not select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]
        ):
            os.close(reading)
            raise AtWork
        part = os.read(reading, 65536)
        if not part:
            break
        parts.append(part)
    os.close(reading)
    os.waitpid(pid, 0)
    try:
        return json.loads(b"".join(parts).decode("ascii"))
    except ValueError:
        return None


def _apart(job, params, writing):
    """Do the work in this process and never return."""
    try:
        os.setsid()
        for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        data = json.dumps(job(params)).encode("ascii")
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)
