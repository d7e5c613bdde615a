# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that does the collectors of a node, one after the other.

It sends each record to the runner at once. Collectors that wait for a network, and those of the
deep tier, get a process of their own. The runner enforces all limits.
"""

import contextlib
import marshal
import os
import select
import time

from ..system import command, files, procfs
from . import base, channels, registry


class Task:
    """What is known when a worker begins.

    collectors, processes: None where the worker itself finds them. data: {name: data} of the
    records that are there. running: collectors at work elsewhere. is_apart: whether each collector
    gets a process of its own. has_asked, systemd: whether systemd was asked, and its answers.
    """

    __slots__ = (
        "collectors",
        "data",
        "end",
        "has_asked",
        "is_apart",
        "params",
        "processes",
        "running",
        "systemd",
    )

    def __init__(self, **values):
        for name, value in values.items():
            setattr(self, name, value)


def work(task, answers, inbox, slots):
    """Do the task, and return when each collector has its record."""
    collectors, processes = task.collectors, task.processes
    if collectors is None:
        names, deep = task.params.get("collectors"), task.params.get("deep")
        collectors = registry.select(names, deep, is_slow=task.is_apart)
    if processes is None:
        processes = procfs.of_interest()
    names = {collector.name: collector.reads for collector in collectors}
    channels.write(answers, channels.message("plan", names, list(registry.BY_NAME)))
    _Work(task, collectors, processes, _Pipes(answers, inbox, slots)).do()


class _Pipes:
    """The pipes to the runner: answers for messages to it, the inbox, one slot for each child."""

    def __init__(self, answers, inbox, slots):
        self.answers, self.inbox = answers, inbox
        self.slots = list(enumerate(slots))
        self.messages = channels.Messages()

    def send(self, *parts):
        channels.write(self.answers, channels.message(*parts))

    def received(self, has_time):
        """Return the messages of the runner; wait for one where there is time.

        The process ends where the runner has ended, or wants no more of it.
        """
        if not has_time and not self._has_message():
            return []
        messages = []
        while not messages or self.messages.buffer:  # the rest of a message is on its way
            chunk = os.read(self.inbox, channels.CHUNK)
            if not chunk:
                os._exit(0)
            messages += self.messages.add(chunk)
        return messages

    def _has_message(self):
        poll = select.poll()
        poll.register(self.inbox, select.POLLIN | select.POLLHUP)
        return bool(poll.poll(0))

    def close_all_but(self, fd):
        for end in [self.answers, self.inbox, *(slot for _index, slot in self.slots)]:
            if end != fd:
                os.close(end)


class _Work:
    """Does the collectors of one document."""

    def __init__(self, task, collectors, processes, pipes):
        self.task, self.processes, self.pipes = task, processes, pipes
        self.scale = base.scale(task.params)
        self.packed = {}  # name -> its data, as bytes: each collector has a copy of its own
        self.running, self.pids = set(task.running), {}
        self.waiting = list(collectors)
        self.known = {collector.name for collector in self.waiting}
        self.questioners = [collector for collector in self.waiting if collector.asks]
        if task.has_asked or len(self.questioners) < 2:
            self.questioners = []
        if task.systemd:
            _learn_of_systemd(task.systemd)
        for name, data in task.data.items():
            self._keep(name, data)
        self.waiting = [
            collector
            for collector in self.waiting
            if collector.name not in self.packed and collector.name not in self.running
        ]

    def do(self):
        """Work until each collector has its record."""
        command.waits.use(self._imports())
        while True:
            self._hear(has_time=False)
            collector = self._next()
            if collector:
                self._start_or_skip(collector)
            elif self.questioners:
                self._ask_systemd()
            elif self.waiting or self.running:
                self._hear(has_time=True)
            else:
                self.pipes.send("ended")
                return

    def _hear(self, has_time):
        """Take the records of collectors elsewhere."""
        for name, data, has_ended in self.pipes.received(has_time):
            self.running.discard(name)
            self._keep(name, data)
            if name in self.pids:
                channels.reap(self.pids.pop(name), 0 if has_ended else os.WNOHANG)

    def _keep(self, name, data):
        """Keep the data of a record, and begin what follows it."""
        self.packed[name] = marshal.dumps(data)
        for collector in registry.followers(name, data):
            if collector.name not in self.known and self.known.issuperset(collector.needs):
                self.waiting.append(collector)
                self.known.add(collector.name)

    def _imports(self):
        """Import what the next collectors need, at each step that of one, and yield its name.

        First what processes of their own need, which then share it. A collector whose module is
        broken says so itself.
        """
        expected = [item for item in self.waiting if _is_expected(item, self.processes)]
        if any(collector.waits for collector in expected):
            yield _imported(_tls)
        for collector in sorted(expected, key=lambda item: not item.waits):
            yield _imported(collector.module)

    def _next(self):
        """Return a collector that can begin now, first one with a process of its own."""
        ready = [collector for collector in self.waiting if self._may_start(collector)]
        for collector in ready:
            if self._is_apart(collector):
                return collector
        if ready and not self.questioners:
            return ready[0]
        return None

    def _may_start(self, collector):
        if self.questioners and collector.asks:
            return False
        return all(need in self.packed for need in collector.needs)

    def _is_apart(self, collector):
        return self.task.is_apart or collector.waits or collector.tier == registry.DEEP

    def _start_or_skip(self, collector):
        self.waiting.remove(collector)
        begin = time.monotonic()
        limit = min(self.task.end, begin + collector.timeout * self.scale)
        if self._may_block(collector) and begin < limit:
            self._say_began(collector, begin, limit)
        reason = _not_here(collector, self.processes)
        if reason:
            self.pipes.send("skipped", collector.name, *reason)
            self._keep(collector.name, None)
        elif limit <= begin:
            self.pipes.send("late", collector.name, collector.reads)
            self._keep(collector.name, None)
        elif not (self._is_apart(collector) and self._started_apart(collector, begin, limit)):
            self._keep(collector.name, self._done(collector, begin, limit))

    def _done(self, collector, begin, limit):
        """Do a collector in this process, and return its data."""
        self._say_began(collector, begin, limit)
        answer = _answer(collector, self._context(collector, limit))
        body = marshal.dumps(answer)
        if len(body) > channels.MAX_COLLECTOR:
            self.pipes.send("flooded")
            os._exit(0)  # with the memory that this one took
        self.pipes.send("record", body)
        return answer[1]

    def _may_block(self, collector):
        """Return whether to look for it may block, and has to count as a part of it.

        A worker that has children of some collectors only may be relieved, and loses their pipes.
        """
        return collector.path and (self.task.is_apart or not self._is_apart(collector))

    def _say_began(self, collector, begin, limit):
        runnable = channels.runnable("self")
        self.pipes.send("began", collector.name, collector.reads, begin, limit, runnable)

    def _context(self, collector, limit):
        data = {need: marshal.loads(self.packed[need]) for need in collector.needs}
        return base.Context(self.task.params, self.processes, data, limit, self.scale)

    def _started_apart(self, collector, begin, limit):
        """Start a process for the collector; return whether there is one."""
        if not self.pipes.slots:
            return False
        if collector.waits:
            _warm([collector, *self.waiting], self.processes)
        index, slot = self.pipes.slots.pop()
        try:
            pid = os.fork()
        except OSError:  # the node has no process ids or no memory left
            os.close(slot)
            return False
        if pid == 0:
            self._answer_apart(collector, limit, slot)
        os.close(slot)
        self.running.add(collector.name)
        self.pids[collector.name] = pid
        self.pipes.send("apart", collector.name, collector.reads, begin, limit, index, pid)
        return True

    def _answer_apart(self, collector, limit, slot):
        """Run the child: only its answer may leave it, and it never returns."""
        try:
            command.waits.use(())
            self.pipes.close_all_but(slot)
            if collector.tier == registry.DEEP:
                os.nice(10)
            answer = _answer(collector, self._context(collector, limit))
            channels.write(slot, channels.message(marshal.dumps(answer)))
        finally:
            os._exit(0)

    def _ask_systemd(self):
        """Ask systemd for all that ask, in one call of systemctl: each call takes 10 ms."""
        query = _Systemd.query_of(self.questioners)
        self.questioners = []
        if query:
            begin = time.monotonic()
            limit = begin + min(query.timeout * self.scale, (self.task.end - begin) / 8)
            answers = self._done(query, begin, limit)
            if answers:
                _learn_of_systemd(answers)


class _Systemd(registry.Collector):
    """The questions of several collectors to systemd, in one call of systemctl."""

    __slots__ = ("questions",)
    questions: "list"

    @classmethod
    def query_of(cls, collectors):
        """Return the query for these collectors; None where one of their modules is broken.

        Each collector asks for itself then, and the broken one reports its error.
        """
        try:
            query = cls(channels.SYSTEMD, "systemctl", timeout=2)
            query.questions = [collector.module().question() for collector in collectors]
            return query
        except Exception:  # pylint: disable=broad-except
            return None

    def run(self, context):
        """Return systemd's answers to all questions."""
        from ..system import systemd

        return systemd.ask(self.questions, context.deadline - time.monotonic())


def _learn_of_systemd(answers):
    from ..system import systemd

    systemd.learn(answers)


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


def _is_expected(collector, processes):
    """Return whether a collector of a plain audit has something to look at, by its processes."""
    if collector.tier == registry.DEEP or collector.path:
        return bool(_needs_tls(collector, processes))
    return not collector.components or procfs.any_of(collector.components, processes)


def _warm(waiting, processes):
    """Load what several of the next children need: the import of ssl takes 20 ms."""
    if any(_needs_tls(collector, processes) for collector in waiting):
        _imported(_tls)


def _needs_tls(collector, processes):
    return collector.components and procfs.any_of(collector.components, processes)


def _tls():
    """Return the module tls, imported before the children are made."""
    from ..system import tls

    return tls


def _imported(load):
    """Import something; those that need it will say what is wrong with it."""
    with contextlib.suppress(Exception):
        load()
    return True
