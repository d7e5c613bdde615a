# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Kubernetes components logged on this node within a window, without secrets and bounded.

Each component is read in a child of its own, because a read that blocks in the kernel cannot be
interrupted. When the time ends, what the child has sent is kept, and the child is abandoned.
"""

import marshal
import os
import select
import struct
import time

from ..shared import log_defaults
from ..shared.text import counted
from ..system import files, json_line, procfs
from . import journald
from . import lines as log_lines
from . import sources as log_sources

COMPONENTS = log_defaults.COMPONENTS
DEFAULTS = {
    "components": None,
    "seconds_back": log_defaults.SECONDS_BACK,
    "needles": (),
    "match": None,
    "max_bytes": log_defaults.MAX_BYTES,
    "max_line": log_defaults.MAX_LINE_BYTES,
    "timeout": 30,
}
MOST_BYTES, MOST_LINE = 16 * 1024 * 1024, log_lines.LONGEST
MARGIN = 1.0  # seconds in which a child that notices the end of the time itself may still say so
SIGKILL = 9  # the module signal brings enum: 9 ms
BATCH = 65536


def refusal(params):
    """Return why these parameters cannot be used, in one sentence; None when they can."""
    params = _complete(params)
    unknown = [name for name in params["components"] if name not in COMPONENTS]
    if unknown:
        return "There is no component {}: it is one of {}.".format(
            files.one_line(unknown[0], 60),
            ", ".join(COMPONENTS),
        )
    if not 0 < params["seconds_back"] < float("inf"):
        return "seconds_back must be a number of seconds above 0."
    if not all(params["needles"]):
        return "An empty needle is in every line: leave needles out to keep all lines."
    if not 1 <= params["max_bytes"] <= MOST_BYTES:
        return f"max_bytes must lie between 1 and {MOST_BYTES:d}."
    if not 1 <= params["max_line"] <= MOST_LINE:
        return f"max_line must lie between 1 and {MOST_LINE:d}."
    if not params["match"]:
        return None
    problem = log_lines.unusable(params["match"])
    return f"match is no regular expression: {problem}." if problem else None


def _complete(params):
    """Return the parameters with defaults for what is not given."""
    options = dict(
        DEFAULTS,
        **{name: value for name, value in params.items() if name in DEFAULTS and value is not None},
    )
    options["components"] = list(options["components"] or COMPONENTS)
    return options


def read(params):
    """Return what the components logged in the last seconds_back seconds, by this node's clock.

    components: names of COMPONENTS, default all; needles (literal texts) and match (a regular
    expression): a line is kept if it holds any of these, or if neither is given; max_bytes: the
    most bytes of the answer's lines; max_line: bytes after which a line is cut; timeout:
    seconds.

    The answer is {status, reason, clock_begin, clock, seconds_back, started: {host or
    component: since when it runs}, sources: [{component, source, status, lines_seen,
    lines_kept, truncated, notes}], lines: [{time, component, source, text}] by time}. It reads
    nothing where refusal() returns one.
    """
    begin = time.time()
    reason = refusal(params)
    params = _complete(params)
    answer = {
        "status": "error" if reason else "ok",
        "reason": reason or "",
        "clock_begin": begin,
        "seconds_back": params["seconds_back"],
        "started": {},
        "sources": [],
        "lines": [],
    }
    if not reason:
        answer["started"] = _started(params["components"])
        workers = [_Worker(name, params, begin) for name in dict.fromkeys(params["components"])]
        _attend(workers, time.monotonic() + max(2.0, float(params["timeout"]) - MARGIN))
        _share(workers, params["max_bytes"])
        for worker in workers:
            answer["sources"] += worker.sources
            answer["lines"] += [
                dict(zip(("time", "source", "text"), line[:3]), component=worker.component)
                for line in worker.lines
            ]
        answer["lines"].sort(key=lambda line: line["time"])
    answer["clock"] = time.time()
    return answer


def _started(components):
    """Return when this node and the youngest process of each component started.

    The times are seconds since the epoch, by this node's clock.
    """
    times = {"host": procfs.started_at(1)}
    for pid, comm in procfs.of_interest():
        try:
            name = procfs.component(comm, procfs.argv(pid))
        except OSError:
            continue
        if name in components and (
            name == "kubelet"
            or procfs.cgroup(files.text(f"/proc/{pid:d}/cgroup") or "").get("static")
        ):
            times[name] = max(times.get(name) or 0, procfs.started_at(pid) or 0)
    return times


def collect(params):
    """Return what `read` returns as one line of JSON."""
    return json_line.dumps(read(params))


class _Worker:
    """One component's child, and what it sent."""

    def __init__(self, component, params, now):
        self.component = component
        self.sources, self.lines = [], []
        self.open, self.done, self.buffer = None, False, b""
        self.fd, child_fd = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _work(component, params, now, child_fd)
        os.close(child_fd)

    def take(self):
        """Take what the child has sent; return False at its end."""
        chunk = os.read(self.fd, 262144)
        self.buffer += chunk
        while len(self.buffer) >= 4:
            size = struct.unpack("!I", self.buffer[:4])[0]
            if len(self.buffer) < 4 + size:
                break
            events = marshal.loads(self.buffer[4 : 4 + size])
            self.buffer = self.buffer[4 + size :]
            for event in events:
                self._event(event)
        return bool(chunk)

    def _event(self, event):
        if event[0] == "begin":
            self.open = {
                "component": self.component,
                "source": event[1],
                "status": "timeout",
                "lines_seen": 0,
                "lines_kept": 0,
                "truncated": False,
                "notes": [],
            }
            self.sources.append(self.open)
        elif event[0] == "line":
            self.open["lines_kept"] += 1
            self.lines.append((event[1], self.open["source"], event[2], event[3]))
        elif event[0] == "done":
            self.done = True
        else:
            self.open.update(
                zip(("status", "lines_seen", "lines_kept", "truncated", "notes"), event[1:])
            )
            self.open = None

    def close(self, late):
        """Reap the child, or kill it with the processes that it started.

        A child that the kernel does not end is left behind.
        """
        os.close(self.fd)
        if not self.done:
            if self.open is None:
                self._event(("begin", self.component))
            self.open["status"] = "timeout" if late else "error"
            self.open["notes"] = [
                (
                    "no answer in time, and what it had reported is kept"
                    if late
                    else "its reader ended without an answer"
                )
            ]
        try:
            if late:
                os.killpg(self.pid, SIGKILL)
            os.waitpid(self.pid, os.WNOHANG if late else 0)
        except OSError:
            pass


def _work(component, params, now, fd):
    """Run in the child: only its events leave it, and it never returns."""
    try:
        os.setsid()  # so that journalctl ends with it
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)  # ssh waits until no process holds its channel
        os.nice(10)
        batch, size = [], [0]

        def flush():
            data = marshal.dumps(batch)
            data = struct.pack("!I", len(data)) + data
            while data:
                data = data[os.write(fd, data) :]
            del batch[:]
            size[0] = 0

        def put(event):
            batch.append(event)
            size[0] += event[3] if event[0] == "line" else BATCH
            if size[0] >= BATCH:
                flush()

        until = time.monotonic() + max(1.0, float(params["timeout"]) - 2 * MARGIN)
        sink = log_sources.Sink(put, now - params["seconds_back"], now, until, params)
        source(component)(sink, procfs.of_interest())
        put(("done",))
    finally:
        os._exit(0)


def source(component):
    """Return the function (sink, processes) that reads the component's logs."""
    if component == "kubelet":
        return journald.read
    return lambda sink, processes: log_sources.pods(sink, component, processes)


def _attend(workers, end):
    """Read all children until they have ended, or until the time has."""
    poll = select.poll()
    working = {worker.fd: worker for worker in workers}
    for fd in working:
        poll.register(fd, select.POLLIN | select.POLLHUP)
    while working:
        remaining = end - time.monotonic()
        ready = list(working)
        if remaining > 0:
            ready = [fd for fd, _event in poll.poll(max(0, int(remaining * 1000)))]
        for fd in ready:
            if remaining > 0 and working[fd].take():
                continue
            poll.unregister(fd)
            working.pop(fd).close(remaining <= 0)


def _share(workers, limit):
    """Leave out the lines that do not fit.

    Each component has an equal share, and what one does not need goes to the others.
    """
    remaining = limit
    needs = sorted(
        (sum(line[3] for line in worker.lines), index) for index, worker in enumerate(workers)
    )
    for position, (need, index) in enumerate(needs):
        share = remaining // (len(needs) - position)
        remaining -= min(need, share)
        if need > share:
            _leave_out(workers[index], share)


def _leave_out(worker, share):
    """Keep the first lines, and note at each source how far they go."""
    count, spent = 0, 0
    for line in worker.lines:
        spent += line[3]
        if spent > share:
            break
        count += 1
    lost = {}
    for line in worker.lines[count:]:
        lost[line[1]] = lost.get(line[1], 0) + 1
    last = ""
    if count:
        last = f"; the last line is of {log_lines.stamp(worker.lines[count - 1][0])}"
    worker.lines = worker.lines[:count]
    for record in worker.sources:
        missing = lost.get(record["source"])
        if missing:
            record.update(lines_kept=record["lines_kept"] - missing, truncated=True)
            record["notes"] = record["notes"] + [
                f"{counted(missing, 'line was', 'lines were')} left out, since other components"
                " need their share of"
                f" max_bytes{last}"
            ]
