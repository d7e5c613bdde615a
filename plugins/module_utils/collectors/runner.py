# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs collectors side by side, each in a child of its own, and bounds time and size.

A read that blocks in the kernel cannot be interrupted: its child is killed, and abandoned where
even that has to wait.
"""

import contextlib
import marshal
import os
import select
import sys
import time

from ..shared.version import TOOL_VERSION
from ..system import files, json_line, procfs, yaml_scalars
from . import base, registry

SIGKILL = 9  # the module signal brings enum: 9 ms
MAX_COLLECTOR = 6 * 1024 * 1024
MAX_DOCUMENT = 16 * 1024 * 1024
NOT_ASKED = {
    "status": "not_asked",
    "truncated": False,
    "data": None,
    "source": None,
    "duration_ms": 0,
    "error": None,
}
SHARED = (
    files,
    yaml_scalars,
)  # imported before the children are made, so that each has them already


class _Child:
    """One collector at work."""

    def __init__(self, collector, context, end):
        self.collector = collector
        self.begin = time.monotonic()
        self.end = end
        self.chunks = []
        self.size = 0
        self.fd, write_fd = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _work(collector, context, write_fd)
        os.close(write_fd)

    def read(self):
        """Take what is there; return False at its end, or when it grew too long."""
        chunk = os.read(self.fd, 262144)
        self.size += len(chunk)
        self.chunks.append(chunk)
        return bool(chunk) and self.size <= MAX_COLLECTOR

    def record(self, late):
        """Return the record of the collector."""
        spent = round((time.monotonic() - self.begin) * 1000)
        status, data, truncated, source, error = (
            "error",
            None,
            False,
            None,
            "the collector's process ended without an answer",
        )
        if late:
            status, error = "timeout", f"no answer within {round(self.end - self.begin)} s"
        elif self.size > MAX_COLLECTOR:
            truncated, error = True, f"more than {MAX_COLLECTOR} bytes"
        else:
            with contextlib.suppress(EOFError, ValueError, TypeError):
                status, data, truncated, source, error = marshal.loads(b"".join(self.chunks))
        return {
            "status": status,
            "truncated": truncated,
            "data": data,
            "source": source or self.collector.reads,
            "duration_ms": spent,
            "error": error,
        }

    def ended(self, ready, now):
        """Return the record of a child that has ended, and reap it; None while there is more."""
        if ready:
            more = self.read()
        else:
            more = True
        late = more and now >= self.end
        if more and not late:
            return None
        record = self.record(late)
        self.close(not more and self.size <= MAX_COLLECTOR)
        return record

    def close(self, ended):
        """Reap the child, or kill it.

        A child that the kernel does not end is left behind, because this program does not
        wait.
        """
        os.close(self.fd)
        try:
            if not ended:
                os.kill(self.pid, SIGKILL)
            os.waitpid(self.pid, 0 if ended else os.WNOHANG)
        except OSError:
            pass


def _work(collector, context, fd):
    """Run the child: only its answer may leave it, and it never returns."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)  # ssh waits until no process holds its channel
        if collector.tier == registry.DEEP:
            os.nice(10)
        answer = marshal.dumps(_answer(collector, context))
        while answer:
            answer = answer[os.write(fd, answer) :]
    finally:
        os._exit(0)


def _answer(collector, context):
    status, data, error = "ok", None, None
    try:
        data = collector.run(context)
    except base.Absent as reason:
        status, error = "absent", reason
    except base.Denied as reason:
        status, error = "denied", reason
    except base.Failed as reason:
        status, error, data = "error", reason, reason.data
    except PermissionError as reason:
        status, error = "denied", reason
    except Exception as reason:  # pylint: disable=broad-except
        # an answer of an unexpected shape costs this collector only
        status, error = "error", f"{type(reason).__name__}: {reason}"
    return (
        status,
        data,
        context.truncated,
        context.source,
        None if error is None else files.one_line(error),
    )


def run(params, collectors, processes, clock=time.monotonic):
    """Return {name: record}. A collector starts as soon as those that it needs have ended."""
    return _Run(params, collectors, processes, clock).records_of_all()


class _Run:
    """Runs the collectors of one document."""

    def __init__(self, params, collectors, processes, clock):
        self.params, self.processes, self.clock = params, processes, clock
        self.end = clock() + max(1.0, float(params.get("timeout") or 30) - 1)
        self.records, self.data, self.children = {}, {}, {}
        self.poll = select.poll()
        self.waiting = list(collectors)
        self.known = {collector.name for collector in self.waiting}
        self.questioners = [collector for collector in self.waiting if collector.asks]
        # They wait for one question to systemd, which is asked for all of them.
        self.is_held = len(self.questioners) > 1

    def records_of_all(self):
        """Run until each collector has its record."""
        while self.waiting or self.children:
            self._start_ready()
            if self.questioners:
                self._ask_systemd()
            if not self.children:
                continue
            if self.waiting:
                _warm(self.waiting, self.processes)
            seconds = min(child.end for child in self.children.values()) - self.clock()
            ready = [fd for fd, _event in self.poll.poll(max(0, int(seconds * 1000) + 1))]
            for child in list(self.children.values()):
                self._take(child, child.ended(child.fd in ready, self.clock()))
        return self.records

    def _start_ready(self):
        """Start or skip each waiting collector whose needs have their records."""
        ready = [collector for collector in self.waiting if self._may_start(collector)]
        for collector in ready:
            self.waiting.remove(collector)
            self._start_or_skip(collector)

    def _may_start(self, collector):
        if self.is_held and collector.asks:
            return False
        return all(need in self.records for need in collector.needs)

    def _start_or_skip(self, collector):
        reason = _not_here(collector, self.processes)
        if reason:
            status, error = reason
            self.records[collector.name] = dict(NOT_ASKED, status=status, error=error)
            return
        limit = min(self.end, self.clock() + collector.timeout)
        context = base.Context(self.params, self.processes, self.data, limit)
        self._started(_Child(collector, context, limit))

    def _ask_systemd(self):
        systemd = None
        if self.is_held:
            systemd = _Systemd.query_of(self.questioners)
        self.questioners = []
        self.is_held = bool(systemd)
        if systemd:
            now = self.clock()
            limit = now + min(systemd.timeout, (self.end - now) / 8)
            context = base.Context(self.params, self.processes, self.data)
            self._started(_Child(systemd, context, limit))

    def _started(self, child):
        self.children[child.fd] = child
        self.poll.register(child.fd, select.POLLIN | select.POLLHUP)

    def _take(self, child, record):
        """Keep the record of a child, or nothing while there is more to come."""
        if record is None:
            return
        name = child.collector.name
        if isinstance(child.collector, _Systemd):
            child.collector.learn(record)
            self.is_held = False
        else:
            self.records[name], self.data[name] = record, record["data"]
            self._follow(registry.followers(name, record["data"]))
        self.poll.unregister(child.fd)
        del self.children[child.fd]

    def _follow(self, collectors):
        """Run these too, unless they run anyway or lack what they need."""
        for collector in collectors:
            if collector.name not in self.known and self.known.issuperset(collector.needs):
                self.waiting.append(collector)
        self.known.update(collector.name for collector in self.waiting)


class _Systemd(registry.Collector):
    """The questions of several collectors to systemd, in one call of systemctl in a child.

    Each call of systemctl takes 10 ms. The answer is no evidence of its own.
    """

    __slots__ = ("questions",)
    questions: "list"

    @classmethod
    def query_of(cls, collectors):
        """Return the query for these collectors; None where one of their modules is broken.

        Each collector asks for itself then, and the broken one reports its error.
        """
        try:
            query = cls("systemd", "systemctl", timeout=2)
            # Their modules import systemd, here once for all of them: re alone is 15 ms.
            query.questions = [collector.module().question() for collector in collectors]
            return query
        except Exception:  # pylint: disable=broad-except
            return None

    def run(self, context):
        """Return systemd's answers to all questions."""
        from ..system import systemd

        return systemd.ask(self.questions, self.timeout)

    def learn(self, record):
        """Give the answer to the module systemd, and return False.

        No collector has to wait for it any more.
        """
        if record["status"] == "ok":
            from ..system import systemd

            systemd.learn(record["data"])
        return False


def _not_here(collector, processes):
    """Return (status, why) where a collector has nothing to look at, else None."""
    if collector.components:
        if procfs.any_of(collector.components, processes):
            return None
        absent = "absent", "none of {} runs here".format(", ".join(collector.components))
    else:
        absent = None
    if not collector.path:
        return absent
    hidden = _hidden(collector.path)
    if absent and hidden and hidden[0] == "absent":
        return absent
    return hidden


def _hidden(path):
    """Return (status, why) where nothing can be collected from the path, else None.

    The status is denied, not absent, where this user may not enter a folder above it.
    """
    try:
        os.lstat(path)
    except PermissionError as error:
        return "denied", files.one_line(error)
    except OSError:
        return "absent", f"{path} does not exist"
    return None


def _warm(waiting, processes):
    """Import what several of the next children need, while the first children work.

    The import of ssl takes 20 ms.
    """
    if any(_needs_tls(collector, processes) for collector in waiting):
        # Those that need it will say what is wrong with it.
        with contextlib.suppress(Exception):
            from ..system import tls  # noqa: F401 - imported before the children are made


def _needs_tls(collector, processes):
    return collector.components and procfs.any_of(collector.components, processes)


def gather(params):
    """Return the node's document, as a dict."""
    begin = time.time()
    records = run(
        params, registry.select(params.get("collectors"), params.get("deep")), procfs.of_interest()
    )
    for name in registry.BY_NAME:
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
    document = gather(params)
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
