# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runner holds of its processes: the collector at work in each, its limits, its pipe.

The runner's own process stays small: this imports only modules that Python has built in.
"""

import marshal
import os
import time

SIGKILL = 9  # the module signal brings enum: 9 ms
MAX_COLLECTOR = 6 * 1024 * 1024
MAX_MESSAGE = MAX_COLLECTOR + 65536
CHUNK = 262144
SYSTEMD = "systemd"  # the name of the question to systemd, which is no evidence of its own
LENGTH = 4  # bytes before each message, with its length


class Broken(Exception):
    """A worker sent what is no message, or one that is too long.

    messages: those before it. outcome: which record the collector at work gets.
    """

    def __init__(self, messages, outcome):
        super().__init__()
        self.messages, self.outcome = messages, outcome


def message(*parts):
    """Return the bytes of a message between the runner and a worker."""
    body = marshal.dumps(parts)
    return len(body).to_bytes(LENGTH, "little") + body


def write(fd, content):
    """Write all of it."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


def kill(pid):
    """Kill a process; leave it behind where the kernel does not end it, and never wait."""
    try:
        os.kill(pid, SIGKILL)
        os.waitpid(pid, os.WNOHANG)
    except OSError:
        pass  # it has ended, or another process is its parent


def reap(pid, flags=0):
    """Reap a child that has ended."""
    try:  # noqa: SIM105 - contextlib takes 5 ms to import
        os.waitpid(pid, flags)
    except OSError:
        pass  # the caller of this program ignores the ends of children


def fill_standard():
    """Open /dev/null where standard input, output or error is closed.

    Else a pipe would get its number, and a worker would lose that pipe.
    """
    fd = 0
    while fd <= 2:
        fd = os.open(os.devnull, os.O_RDWR)
    os.close(fd)


def pipes(counts):
    """Return as many pipes as the first of these counts that this process may open."""
    for count in counts:
        ends = []
        try:
            for _number in range(count):
                ends.append(os.pipe())
            return ends
        except OSError as error:
            close(ends)
            reason = error
    raise reason


def close(ends):
    """Close pipes."""
    for end in [end for pipe in ends for end in pipe]:
        os.close(end)


def runnable(pid):
    """Return how many seconds a process has run, and how many it waited for a processor.

    Both are 0.0 where the kernel does not count them.
    """
    try:
        fd = os.open(f"/proc/{pid}/schedstat", os.O_RDONLY)
    except OSError:
        return 0.0, 0.0
    try:
        running, waiting = os.read(fd, 256).split()[:2]
        return int(running) / 1e9, int(waiting) / 1e9
    except (OSError, ValueError):
        return 0.0, 0.0
    finally:
        os.close(fd)


class Messages:
    """Takes messages apart as they come."""

    def __init__(self):
        self.buffer = bytearray()

    def add(self, chunk):
        """Return the messages that are complete now; Broken where one is none."""
        self.buffer += chunk
        complete, start = [], 0
        while len(self.buffer) - start >= LENGTH:
            size = int.from_bytes(self.buffer[start : start + LENGTH], "little")
            if size > MAX_MESSAGE:
                raise Broken(complete, Job.flooded)
            if len(self.buffer) - start - LENGTH < size:
                break
            start += LENGTH
            try:
                complete.append(marshal.loads(self.buffer[start : start + size]))
            except (EOFError, ValueError, TypeError):
                raise Broken(complete, Job.lost) from None
            start += size
        del self.buffer[:start]
        return complete


class Job:
    """One collector at work, and each way in which it may end."""

    __slots__ = ("begin", "end", "name", "reads", "runnable", "until")

    def __init__(self, name, reads, begin, end, runnable_before=(0.0, 0.0)):
        """Keep what is known of it when it begins; until: when to look whether it is only slow."""
        self.name, self.reads, self.begin, self.end = name, reads, begin, end
        self.runnable, self.until = runnable_before, end

    def answered(self, body):
        """Return the record of an answer."""
        if len(body) > MAX_COLLECTOR:
            return self.flooded()
        try:
            status, data, truncated, source, error = marshal.loads(body)
        except (EOFError, ValueError, TypeError):
            return self.lost()
        return self._record(status, error, data, truncated, source)

    def late(self):
        """Return the record of a collector that did not end in time."""
        return self._record("timeout", f"no answer within {round(self.end - self.begin)} s")

    def flooded(self):
        """Return the record of a collector whose answer is too long."""
        return self._record("error", f"more than {MAX_COLLECTOR} bytes", truncated=True)

    def lost(self):
        """Return the record of a collector whose process ended."""
        return self._record("error", "the collector's process ended without an answer")

    def _record(self, status, error, data=None, truncated=False, source=None):
        return {
            "status": status,
            "truncated": truncated,
            "data": data,
            "source": source or self.reads,
            "duration_ms": round((time.monotonic() - self.begin) * 1000),
            "error": error,
        }


class Child:
    """A collector in a process of its own: one message, its answer, comes through the pipe.

    A process that the collector leaves behind may keep the pipe open, so that the end of the pipe
    does not tell the end of the answer.
    """

    def __init__(self, fd, pid, job):
        self.fd, self.pid, self.job = fd, pid, job
        self.messages = Messages()

    def read(self):
        """Take what is there; return (the record, whether the process has ended).

        The record is None while there is more to come.
        """
        chunk = os.read(self.fd, CHUNK)
        try:
            answers = self.messages.add(chunk)
        except Broken as error:
            return error.outcome(self.job), False
        if answers:
            return self.job.answered(answers[0][0]), True
        if chunk:
            return None, False
        return self.job.lost(), True

    def descriptors(self):
        """Return the end of the pipe."""
        return [self.fd]


class Worker:
    """A process that does collectors one after the other, and its pipes.

    inbox: where it hears of records. slots: the ends of the pipes of its children, by number.
    """

    def __init__(self, pid, fd, inbox, slots):
        self.pid, self.fd, self.inbox, self.slots = pid, fd, inbox, slots
        self.messages = Messages()
        self.job = None
        self.heard = time.monotonic()
        # Seconds of the collectors that have ended here, and those in which they were blocked.
        self.spent = self.blocked = 0.0
        self.outbox = bytearray()  # from whose front it is cheap to take
        self.is_awaited = False  # whether the runner waits for room in the inbox
        os.set_blocking(inbox, False)

    def blocked_by(self, now):
        """Return in how many seconds the collector at work neither ran nor could have run."""
        return now - self.job.begin - sum(self._runnable_since())

    def is_computing(self, now):
        """Return whether the collector at work had a processor for most of its time."""
        return self._runnable_since()[0] > (now - self.job.begin) / 2

    def _runnable_since(self):
        """Return for how long the collector at work ran, and waited for a processor."""
        counts = zip(runnable(self.pid), self.job.runnable)
        return [max(0.0, after - before) for after, before in counts]

    def finish(self):
        """Return the collector at work, which has ended."""
        job, now = self.job, time.monotonic()
        self.spent += now - job.begin
        self.blocked += self.blocked_by(now)
        self.job = None
        return job

    def tell(self, *parts):
        """Send a message as soon as the worker takes it, and never wait for that."""
        self.heard = time.monotonic()
        self.outbox += message(*parts)
        self.push()

    def push(self):
        """Send what the pipe takes."""
        try:
            del self.outbox[: os.write(self.inbox, self.outbox)]
        except BlockingIOError:
            pass
        except OSError:
            self.outbox.clear()  # the worker has ended, which its other pipe tells

    def descriptors(self):
        """Return the ends of the pipes that the runner holds for this worker."""
        return [self.fd, *self.own_descriptors()]

    def own_descriptors(self):
        """Return those that are of no use once the worker has no more to begin."""
        ends = [fd for fd in self.slots if fd is not None]
        if self.inbox is not None:
            ends.append(self.inbox)
        return ends

    def dismiss(self):
        """Let the worker begin nothing any more."""
        for fd in self.own_descriptors():
            os.close(fd)
        self.slots, self.inbox, self.outbox = [], None, bytearray()
