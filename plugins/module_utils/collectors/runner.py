# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Relays the records of collectors that run in other processes, and bounds time and size.

The process forks before it imports a collector, while it is small. One worker does the collectors
one after the other. A collector that blocks, ends its process or sends too much costs only itself:
another worker does the rest, each in a process of its own. A read that blocks in the kernel cannot
be interrupted: its process is killed, and abandoned where even that has to wait.
"""

import gc
import os
import select
import sys
import time

from ..shared.version import TOOL_VERSION
from ..system import json_line
from . import base, channels

MAX_DOCUMENT = 16 * 1024 * 1024
# Seconds in which one collector may be blocked before the rest runs side by side, and the part of
# the whole time limit that collectors may be blocked one after the other. Neither counts what a
# collector computes, or waits for a processor. After that part of the time, a worker that does this
# goes on if it is likely to end within HOPE of the time. On a slow processor, and in a group with a
# fixed part of the processors, more processes would make it worse; in competition with many other
# processes, more get more.
PATIENCE, SHARE, HOPE = 2.0, 1.0 / 3, 5.0 / 6
PAUSE = 0.05  # seconds after which a collector that is only slow is looked at again, at least
SILENCE = 10.0  # seconds in which a worker with a plan has to begin the next collector
GRACE = 1.0  # seconds after the last limit, for a worker to say what was not begun
MAX_WORKERS = 3
SLOTS, MANY_SLOTS = 16, 64  # children of the first worker, and of another
NOT_ASKED = {
    "status": "not_asked",
    "truncated": False,
    "data": None,
    "source": None,
    "duration_ms": 0,
    "error": None,
}


class NoWorker(Exception):
    """No process can say which collectors there are."""


def run(params, collectors=None, processes=None):
    """Return {name: record} of these collectors, by default of those that the parameters name."""
    return _Run(params, collectors, processes).records_of_all()


class _Run:
    """Runs the collectors of one document."""

    def __init__(self, params, collectors=None, processes=None):
        self.params, self.collectors, self.processes = params, collectors, processes
        timeout = float(params.get("timeout") or base.DEFAULT_SECONDS)
        self.seconds = max(1.0, timeout - GRACE)
        self.patience = PATIENCE * base.scale(params)
        self.end = time.monotonic() + self.seconds
        self.records, self.data = {}, {}
        self.names, self.all_names = None, []
        self.has_asked, self.systemd = False, None
        self.poll = select.poll()
        self.channels = {}  # descriptor -> worker or child
        self.main = None  # the worker that begins the collectors
        self.workers = 0

    def records_of_all(self):
        """Run until each collector has its record."""
        try:
            self._start_worker()
            while self.channels:
                events = self.poll.poll(self._milliseconds())
                # What one event leads to may close a pipe of another, and use its number again.
                for fd, channel in [(fd, self.channels.get(fd)) for fd, _event in events]:
                    if channel is self.channels.get(fd):
                        self._take(fd, channel)
                self._enforce(time.monotonic())
        finally:
            for channel in list(self.channels.values()):
                self._close(channel)
        return self.records

    def _take(self, fd, channel):
        """Take what came through a pipe, or send what a worker did not take yet."""
        if channel is None:
            self._push(fd)
        elif isinstance(channel, channels.Child):
            record, has_ended = channel.read()
            if record:
                self._close(channel, has_ended)
                self._save(channel.job.name, record, has_ended)
        else:
            self._hear(channel)

    def _save(self, name, record, has_ended=False, sender=None):
        """Keep a record, and tell the worker that begins collectors of it."""
        if name == channels.SYSTEMD:
            self.systemd = record["data"]
            return
        self.records[name], self.data[name] = record, record["data"]
        if self.main and self.main is not sender:
            self.main.tell(name, record["data"], has_ended)
            self._watch_inbox(self.main)

    def _push(self, inbox):
        if self.main and self.main.inbox == inbox:
            self.main.push()
            self._watch_inbox(self.main)

    def _watch_inbox(self, worker):
        """Wait for room in an inbox while something has to go there."""
        if worker.outbox and not worker.is_awaited:
            self.poll.register(worker.inbox, select.POLLOUT)
        elif worker.is_awaited and not worker.outbox:
            self.poll.unregister(worker.inbox)
        worker.is_awaited = bool(worker.outbox)

    def _watch(self, channel):
        self.channels[channel.fd] = channel
        self.poll.register(channel.fd, select.POLLIN | select.POLLHUP)

    def _close(self, channel, has_ended=False):
        """Close the pipes of a process, and reap it, or kill it where it has not ended."""
        if channel is self.main:
            self.main = None
        self.poll.unregister(channel.fd)
        del self.channels[channel.fd]
        os.close(channel.fd)
        if isinstance(channel, channels.Worker):
            self._dismiss(channel)
        if not has_ended:
            channels.kill(channel.pid)
        elif isinstance(channel, channels.Worker):
            channels.reap(channel.pid)

    def _dismiss(self, worker):
        """Let a worker begin nothing more."""
        worker.outbox = b""
        self._watch_inbox(worker)
        worker.dismiss()

    # Limits

    def _milliseconds(self):
        """Return how long nothing has to be enforced."""
        times = [self.end + GRACE, *map(self._limit, self.channels.values())]
        return max(0, int((min(times) - time.monotonic()) * 1000) + 1)

    def _limit(self, channel):
        """Return when the limit of a process, or the patience with it, is over."""
        job = channel.job
        if job and self._is_first(channel):
            return min(job.end, job.until)
        if job:
            return job.end
        if self.names is None:
            return self.end  # none could take its place
        if channel is self.main and len(self.channels) == 1:
            return channel.heard + SILENCE
        return self.end + GRACE

    def _patience(self, worker, now):
        """Return for how many seconds the others still wait for the collector at work."""
        blocked = worker.blocked_by(now)
        return min(
            self.patience - blocked,
            self.seconds * SHARE - worker.blocked - blocked,
            self._patience_with_runnable(worker, now),
        )

    def _patience_with_runnable(self, worker, now):
        """Return the same of a worker that computes, or waits for a processor.

        After a while, it goes on only if it will end in time at its present pace.
        """
        elapsed, trial = now - (self.end - self.seconds), max(self.patience, self.seconds * SHARE)
        if elapsed < trial:
            return trial - elapsed
        if worker.is_computing(now) and len(os.sched_getaffinity(0)) == 1:
            # the others would only share this processor; a single one must not use it up
            return trial / 2 - (now - worker.job.begin)
        spent, done = worker.spent + now - worker.job.begin, len(self.records)
        to_come = spent * max(0, len(self.names or ()) - done) / max(1, done)
        return self.seconds * HOPE - elapsed - to_come

    def _is_first(self, channel):
        return channel is self.main and self.workers == 1

    def _enforce(self, now):
        """End what is over its limit."""
        for channel in list(self.channels.values()):
            if now >= self._limit(channel):
                self._end(channel, now)
        if now >= self.end + GRACE:
            self._give_up(channels.Job.late)

    def _end(self, channel, now):
        """End a process at its limit; leave one that is only slow to its collector."""
        job = channel.job
        if job and now < job.end:
            self._relieve_or_wait(channel, now)
        elif job:
            self._lose(channel, job.late())
        else:
            self._lose(channel, None)

    def _lose(self, channel, record, has_ended=False):
        """Keep the record of a process that is of no more use, and replace the worker."""
        is_main = channel is self.main
        self._close(channel, has_ended)
        if record:
            self._save(channel.job.name, record)
        if is_main:
            self._replace()

    # Workers

    def _start_worker(self):
        """Start the worker that does what has no record and does not run."""
        self.workers += 1
        channels.fill_standard()
        pipes = channels.pipes(self._counts())
        try:
            pid = os.fork()
        except OSError:
            channels.close(pipes)
            raise
        answers, inbox, *slots = pipes
        if pid == 0:
            self._work(answers, inbox, slots)
        for end in (answers[1], inbox[0], *(slot[1] for slot in slots)):
            os.close(end)
        self.main = channels.Worker(pid, answers[0], inbox[1], [slot[0] for slot in slots])
        self._watch(self.main)

    def _counts(self):
        """Return how many pipes a worker gets: fewer where the limit of open files is low."""
        if self.workers == 1:
            return [2 + SLOTS, 6, 3]
        return [2 + MANY_SLOTS, 2 + SLOTS, 6, 3]

    def _work(self, answers, inbox, slots):
        """Run a worker: only its messages may leave it, and it never returns."""
        try:
            for end in (answers[0], inbox[1], *(slot[0] for slot in slots)):
                os.close(end)
            for channel in self.channels.values():
                for end in channel.descriptors():
                    os.close(end)
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)  # ssh waits until no process holds its channel
            os.close(null)
            self._import_and_work(answers[1], inbox[0], [slot[1] for slot in slots])
        finally:
            os._exit(0)

    def _import_and_work(self, answers, inbox, slots):
        try:
            from . import worker

            task = worker.Task(
                params=self.params,
                collectors=self.collectors,
                processes=self.processes,
                data=self.data,
                end=self.end,
                running=self._running(),
                is_apart=self.workers > 1,
                has_asked=self.has_asked,
                systemd=self.systemd,
            )
            worker.work(task, answers, inbox, slots)
        except Exception as error:  # pylint: disable=broad-except
            text = f"{type(error).__name__}: {str(error)[:300]}"
            channels.write(answers, channels.message("failed", text))

    def _relieve_or_wait(self, worker, now):
        """Let another worker do the rest, unless this one is only slow."""
        patience = self._patience(worker, now)
        if patience > 0:
            worker.job.until = now + max(PAUSE, patience)
        else:
            self._relieve(worker)

    def _relieve(self, worker):
        """Let another worker do the rest while this one goes on with its collector."""
        try:
            self._start_worker()
        except OSError:
            return  # the node has no process ids or no memory left
        self._dismiss(worker)

    def _replace(self):
        """Let another worker begin what is left; none where several have ended."""
        if self.names is None and time.monotonic() >= self.end:
            raise NoWorker("the collectors' process began none of them in time")
        if self.names is None:
            raise NoWorker("the collectors' process ended without an answer")
        try:
            if self.workers < MAX_WORKERS and time.monotonic() < self.end + GRACE:
                self._start_worker()
        except OSError:
            pass
        if self.main:
            return
        if time.monotonic() < self.end:
            self._give_up(channels.Job.lost)
        else:
            self._give_up(channels.Job.late)

    def _give_up(self, outcome):
        """Give each collector that has no record and does not run the record of this outcome."""
        if self.main:
            self._close(self.main)
        now, running = time.monotonic(), self._running()
        for name, reads in (self.names or {}).items():
            if name not in self.records and name not in running:
                self.records[name] = outcome(channels.Job(name, reads, now, now))

    def _running(self):
        names = {channel.job.name for channel in self.channels.values() if channel.job}
        return names - {channels.SYSTEMD}  # no collector waits for this one's record

    # Messages

    def _hear(self, worker):
        """Take the messages of a worker."""
        chunk = os.read(worker.fd, channels.CHUNK)
        worker.heard, ended = time.monotonic(), not chunk
        outcome = channels.Job.lost
        try:
            messages = worker.messages.add(chunk)
        except channels.Broken as error:
            messages, outcome, chunk = error.messages, error.outcome, b""
        for name, *values in messages:
            if self.channels.get(worker.fd) is worker:
                HANDLERS[name](self, worker, *values)
        if not chunk and self.channels.get(worker.fd) is worker:
            self._lose(worker, worker.job and outcome(worker.job), ended)

    def _plan(self, _worker, names, all_names):
        self.names, self.all_names = names, all_names

    def _began(self, worker, *values):
        if worker is not self.main and not worker.job:
            self._close(worker)  # another one has this collector
            return
        worker.job = job = channels.Job(*values)
        share_left = self.end - self.seconds * (1 - SHARE) - job.begin
        job.until = job.begin + max(0.0, min(self.patience, share_left))
        self.has_asked = self.has_asked or worker.job.name == channels.SYSTEMD

    def _recorded(self, worker, body):
        job = worker.finish()
        self._save(job.name, job.answered(body), sender=worker)
        # One that another worker has relieved ends by itself, as its inbox is closed.

    def _flooded(self, worker):
        self._lose(worker, worker.job.flooded(), has_ended=True)

    def _skipped(self, worker, name, status, error):
        has_begun, worker.job = worker.job is not None, None
        if has_begun or worker is self.main:
            self._save(name, dict(NOT_ASKED, status=status, error=error), sender=worker)

    def _late(self, worker, name, reads):
        now = time.monotonic()
        if worker is self.main:
            self._save(name, channels.Job(name, reads, now, now).late(), sender=worker)

    def _apart(  # noqa: PLR0913, PLR0917 - the parts of the message "apart"
        self, worker, name, reads, begin, end, index, pid
    ):
        if worker is not self.main:
            channels.kill(pid)
            return
        worker.job = None
        fd, worker.slots[index] = worker.slots[index], None
        self._watch(channels.Child(fd, pid, channels.Job(name, reads, begin, end)))

    def _ended(self, worker):
        self._close(worker, has_ended=True)

    def _failed(self, worker, text):
        if self.names is None:
            raise NoWorker(text)
        self._lose(worker, worker.job and worker.job.lost(), has_ended=True)


HANDLERS = {
    "plan": _Run._plan,
    "began": _Run._began,
    "record": _Run._recorded,
    "flooded": _Run._flooded,
    "skipped": _Run._skipped,
    "late": _Run._late,
    "apart": _Run._apart,
    "ended": _Run._ended,
    "failed": _Run._failed,
}


def gather(params):
    """Return the node's document, as a dict."""
    begin = time.time()
    nodes_run = _Run(params)
    records = nodes_run.records_of_all()
    for name in nodes_run.all_names:
        records.setdefault(name, dict(NOT_ASKED))
    return {
        "schema": "kubemend.evidence/1",
        "tool_version": TOOL_VERSION,
        "euid": os.geteuid(),
        "collected_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begin)),
        "python": ".".join(map(str, sys.version_info[:3])),
        "duration_ms": round((time.time() - begin) * 1000),
        "collectors": records,
    }


def collect(params):
    """Return the node's document as one line of JSON, bounded.

    The largest collectors lose their data first, and their records say so.
    """
    # The processes end soon: to look for garbage would take more, and copy the memory they share.
    gc.disable()
    try:
        document = gather(params)
    except NoWorker as error:
        return json_line.dumps({"failed": str(error)})
    line = json_line.dumps(document)
    while len(line) > MAX_DOCUMENT:
        records = [
            record for record in document["collectors"].values() if record["data"] is not None
        ]
        largest = max(records, key=lambda record: len(json_line.dumps(record["data"])))
        largest.update(
            data=None,
            status="error",
            truncated=True,
            error=f"the document would be larger than {MAX_DOCUMENT} bytes",
        )
        line = json_line.dumps(document)
    return line
