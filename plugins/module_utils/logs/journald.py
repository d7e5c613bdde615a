# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's messages in journald, read while journalctl writes them."""

import os
import re
import select
import time

from ..shared.text import counted
from ..system import command, kubelet_process
from . import lines as log_lines
from .sources import SLACK, Late

BLOCK = 65536
QUIET_LIMIT = 2.0  # seconds for each of the small questions, not for the lines themselves
# journald's own message about messages that it suppressed
DROPPED = "a596d6fe7bfa4994828e72309e95d61e"
SUPPRESSED = re.compile(r"Suppressed ([0-9]+) messages from (?:\S*/)?(\S+)")
NOT_FOUND = 127


class Program:
    """A command whose output is read block by block, and that ends at a deadline."""

    def __init__(self, argv, deadline):
        self.deadline = deadline
        self.ended = False
        self.pid, self.out, self.complaint = command.start(argv)
        self.poll = select.poll()
        self.poll.register(self.out, select.POLLIN | select.POLLHUP)

    def read(self):
        """Return the next block, b"" at its end; raise Late at the deadline."""
        if time.monotonic() >= self.deadline or not self.poll.poll(
            max(0, int((self.deadline - time.monotonic()) * 1000))
        ):
            raise Late
        block = os.read(self.out, BLOCK)
        self.ended = not block
        return block

    def close(self):
        """Return (the exit code, the first line of stderr).

        The exit code is None where the program was killed.
        """
        if not self.ended:
            os.kill(self.pid, 9)
        os.close(self.out)
        _dummy, status = os.waitpid(self.pid, 0)
        message = command.first_line(self.complaint)
        os.close(self.complaint)
        return (status >> 8 if status & 0x7F == 0 else None), message


def journalctl(*arguments):
    """Return the command that prints entries as JSON, one a line."""
    return ["journalctl", "--output=json", "--all", "--no-pager", *list(arguments)]


def read(sink, processes):
    """Give the kubelet's lines of the window to the sink."""
    process, block, trouble = kubelet_process.here(processes)
    name = _unit(block)
    sink.begin(name or "journald")
    if name is None:
        _no_unit(sink, process, trouble)
        return
    since = f"--since=@{int(sink.since - 1):d}"
    status, notes = "ok", []
    program = Program(journalctl("--unit=" + name, since), sink.deadline)
    try:
        _entries(sink, program)
    except Late:
        status = "timeout"
    finally:
        code, message = program.close()
    if status == "ok" and sink.left > 0 and not sink.first:
        status, notes = _nothing(sink, name, code, message)
    elif status == "ok":
        notes = [_lost(sink, process), message and f"journalctl: {message}"]
    if status == "ok":
        notes += _suppressed(sink, name, since)
    sink.end(status, notes)


def _suppressed(sink, name, since):
    """Return the notes about messages of the unit that journald suppressed."""
    entries, is_late = _ask(sink, journalctl(since, "MESSAGE_ID=" + DROPPED))
    notes = [dropped(entries, name, sink.since, sink.until)]
    if is_late:
        notes.append(_late("whether journald suppressed messages"))
    return notes


def _unit(block):
    """Return the name of the kubelet's unit, None where there is none."""
    if block.get("LoadState", ["not-found"])[0] == "not-found":
        return None
    return (block.get("Id") or [None])[0]


def _no_unit(sink, process, trouble):
    """End the source of a kubelet without a unit."""
    if trouble:
        sink.end("error", [str(trouble)])
    elif process:
        sink.end("absent", ["the kubelet has no unit of its own"])
    else:
        sink.end("absent", ["no kubelet runs here, and there is no unit of one"])


def _entries(sink, program):
    def block():
        return b"" if sink.left <= 0 else program.read()

    for raw in log_lines.split(block):
        entry = log_lines.entry(raw)
        if entry is None:
            sink.unknown += 1
        else:
            sink.line(entry[0], entry[1][: log_lines.LONGEST], len(entry[1]))


def _nothing(sink, name, code, message):
    """Return (status, notes) where journalctl printed no entry of the window."""
    if code == NOT_FOUND and not message:
        return "absent", ["there is no journalctl"]
    if "permission" in message.lower() or (os.geteuid() != 0 and not code):
        return "denied", [f"journald shows this user nothing of {name}"]
    if code:
        return "error", [f"journalctl: {message or f'exit code {code:d}'}"]
    entries, is_late = _ask(sink, journalctl("--unit=" + name, "--lines=1"))
    if entries:
        return "ok", ["nothing was written within the window"]
    if is_late:
        return "timeout", [_late(f"whether journald holds anything of {name}")]
    return "absent", [f"journald holds nothing of {name}"]


def _late(question):
    """Return the sentence about a question that journalctl did not answer in time."""
    return f"journalctl did not say within {QUIET_LIMIT:g} s {question}"


def _ask(sink, argv, lines=1000):
    """Return (the first entries that journalctl prints, whether the time was over before its end).

    An entry is (seconds, bytes, fields). Entries that come too late are left out.
    """
    program, entries = Program(argv, min(sink.deadline, time.monotonic() + QUIET_LIMIT)), []
    is_late = False
    try:
        for raw in log_lines.split(program.read):
            entry = log_lines.entry(raw)
            if entry:
                entries.append(entry)
            if len(entries) >= lines:
                break
    except Late:
        is_late = True
    finally:
        program.close()
    return entries, is_late


def dropped(entries, unit, since, until):
    """Return a sentence about the messages that journald suppressed; None without any.

    It counts those of the unit in the window.
    """
    count = 0
    for moment, raw, _fields in entries:
        match = SUPPRESSED.search(raw.decode("utf-8", "replace"))
        if match and match.group(2) == unit and since <= moment <= until:
            count += int(match.group(1))
    if not count:
        return None
    return f"journald suppressed {counted(count, 'message')} of {unit}, by its rate limit"


def _lost(sink, process):
    """Return a sentence where journald begins within the window, after the kubelet; else None."""
    started = (process or {}).get("started_at")
    oldest, is_late = _ask(sink, journalctl(), 1)
    if is_late and not oldest:
        return _late("since when journald has messages")
    if not oldest or started is None:
        return None
    first = oldest[0][0]
    if first <= sink.since or started >= first - SLACK:
        return None
    return (
        f"journald holds nothing before {log_lines.stamp(first)}, and the kubelet runs since"
        f" {log_lines.stamp(started)}"
    )
