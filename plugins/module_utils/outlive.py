# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: work that goes on when the controller vanishes, and the channel with it."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os
import signal


def run(job, params):
    """What job(params) answers, from a process that outlives this one; None when it ended without an answer."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _apart(job, params, writing)
    os.close(writing)
    parts = []
    while True:
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
    """The process that does the work; it never returns."""
    try:
        os.setsid()
        for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        data = json.dumps(job(params)).encode("ascii")
        while data:
            data = data[os.write(writing, data):]
    finally:
        os._exit(0)
