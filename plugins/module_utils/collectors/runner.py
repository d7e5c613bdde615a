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
from ..system import files, procfs
from ..system import json_line as jsonline
from ..system import yaml_scalars as kubeconfig
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
SHARED = (files, kubeconfig)  # imported before the children are made, so that each has them already


class _Child:
    """One collector at work."""

    def __init__(self, collector, context, end):
        self.collector = collector
        self.begin = time.monotonic()
        self.end = end
        self.chunks = []
        self.size = 0
        self.fd, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _work(collector, context, theirs)
        os.close(theirs)

    def read(self):
        """Take what is there; False at the end of it, or when it grew too long."""
        chunk = os.read(self.fd, 262144)
        self.size += len(chunk)
        self.chunks.append(chunk)
        return bool(chunk) and self.size <= MAX_COLLECTOR

    def record(self, late):
        """Return what became of it."""
        spent = int(round((time.monotonic() - self.begin) * 1000))
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
        """Return what became of it, and it is gone; None while there is more to come."""
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
        """Reap it, or end it. Where the kernel does not let it go, it is left behind.

        This program does not wait.
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


def run(params, collectors, processes, proc=time.monotonic):
    """{name: record} of these collectors, started as soon as those that they need have ended."""
    end = proc() + max(1.0, float(params.get("timeout") or 30) - 1)
    records, data, working = {}, {}, {}
    poll = select.poll()
    waiting = list(collectors)
    known = {one.name for one in waiting}
    asking = [one for one in waiting if one.asks]
    held = len(asking) > 1  # by one question to systemd for all of them
    while waiting or working:
        for collector in [
            one
            for one in waiting
            if all(need in records for need in one.needs) and not (held and one.asks)
        ]:
            waiting.remove(collector)
            reason = _not_here(collector, processes)
            if reason:
                records[collector.name] = dict(NOT_ASKED, status=reason[0], error=reason[1])
                continue
            limit = min(end, proc() + collector.timeout)
            _started(
                _Child(collector, base.Context(params, processes, data, limit), limit),
                working,
                poll,
            )
        if asking:
            systemd, asking = _Systemd.of(asking) if held else None, []
            held = bool(systemd)
            if held:
                _started(
                    _Child(
                        systemd,
                        base.Context(params, processes, data),
                        proc() + min(systemd.timeout, (end - proc()) / 8),
                    ),
                    working,
                    poll,
                )
        if not working:
            continue
        if waiting:
            _warm(waiting, processes)
        left = min(child.end for child in working.values()) - proc()
        ready = [fd for fd, _dummy in poll.poll(max(0, int(left * 1000) + 1))]
        for child in list(working.values()):
            record = child.ended(child.fd in ready, proc())
            if record is None:
                continue
            if isinstance(child.collector, _Systemd):
                held = child.collector.learn(record)
            else:
                records[child.collector.name], data[child.collector.name] = record, record["data"]
                more = [
                    one
                    for one in registry.followers(child.collector.name, record["data"])
                    if one.name not in known and known.issuperset(one.needs)
                ]
                waiting += more
                known.update(one.name for one in more)
            poll.unregister(child.fd)
            del working[child.fd]
    return records


def _started(child, working, poll):
    working[child.fd] = child
    poll.register(child.fd, select.POLLIN | select.POLLHUP)


class _Systemd(registry.Collector):
    """What several collectors ask systemd, asked at once (systemctl.

    10 ms each time), in a child like theirs. Its answer is no evidence of its own.
    """

    __slots__ = ("questions", "unit")

    @classmethod
    def of(cls, collectors):
        """None where the modules of these are not what they should be.

        Each asks for itself then, and the one at fault says so.
        """
        try:
            # Imported here, once for all of them: re alone is 15 ms.
            found = cls("systemd", "systemctl", timeout=2)
            found.questions = [one.module().question() for one in collectors]
            from ..system import systemd

            found.unit = systemd
            return found
        except Exception:  # pylint: disable=broad-except
            return None

    def run(self, context):
        return self.unit.ask(self.questions, self.timeout)

    def learn(self, record):
        """Return whether anybody still has to wait for it: never."""
        if record["status"] == "ok":
            self.unit.learn(record["data"])
        return False


def _not_here(collector, processes):
    """Return (status, why) where a collector has nothing to look at, else None."""
    if collector.components and not procfs.any_of(collector.components, processes):
        return "absent", "none of {} runs here".format(", ".join(collector.components))
    if collector.path:
        return _hidden(collector.path)
    return None


def _hidden(path):
    """Return (status, why) where nothing can be collected from the path.

    A folder above it that this user may not enter is no absence.
    """
    try:
        os.lstat(path)
    except PermissionError as error:
        return "denied", files.one_line(error)
    except OSError:
        return "absent", f"{path} does not exist"
    return None


def _warm(waiting, processes):
    """While the first children work.

    Import once what the next ones would each import for themselves (ssl: 20 ms).
    """
    if any(
        collector.components and procfs.any_of(collector.components, processes)
        for collector in waiting
    ):
        try:
            pass  # pylint: disable=unused-import
        except Exception:  # pylint: disable=broad-except
            pass  # those that need it will say what is wrong with it


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
        "python": "%d.%d.%d" % sys.version_info[:3],
        "duration_ms": int(round((time.time() - begin) * 1000)),
        "collectors": records,
    }


def collect(params):
    """Return the same as one line of JSON, bounded.

    The largest collectors lose their data first, and say so.
    """
    document = gather(params)
    line = jsonline.dumps(document)
    while len(line) > MAX_DOCUMENT:
        records = [one for one in document["collectors"].values() if one["data"] is not None]
        largest = max(records, key=lambda one: len(jsonline.dumps(one["data"])))
        largest.update(
            data=None,
            status="error",
            truncated=True,
            error=f"the document would be larger than {MAX_DOCUMENT} bytes",
        )
        line = jsonline.dumps(document)
    return line
