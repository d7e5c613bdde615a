# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one loop over all hosts: who is started, read, ended in time, and asked on the next way."""

from __future__ import annotations

import errno
import selectors
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ansible.errors import AnsibleError

from ...run.ansible_message import never_began
from ..node_action import orphaned
from ..question import GRACE, NoAnswer, NodeError
from . import service, ways
from .client import Client
from .display import Lines
from .guard import Guard
from .hosts import STRANGE, BrokenHost, Fleet, Host
from .library import Library
from .plugin import Worker
from .process import Process

TURN_SECONDS, END_SECONDS = 0.2, 0.005  # until a turn ends; where a process is just ending
PREPARED_IN_A_TURN, MAX_WAITING = 8, 256  # hosts
MAX_HELD = 128 * 1024 * 1024  # bytes of answers in flight: above, only the largest is read
# A worker limits its host itself; this is for one that cannot any more.
WORKER_GRACE_SECONDS = 15
DRAIN_SECONDS = 2  # that the pipes of a process which has ended may stay open
CLIENT, JUMP, PLUGIN = "client", "jump", "plugin"
SCARCE = frozenset((errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE))


@dataclass
class Task:
    """One host on its way.

    Attributes:
        host: the host.
        lane: which limit of width counts for it.
        job: what carries the question.
        due: the moment from which it may be started.
        deadline: the moment at which it is given up; None until it is started.
        begun: the moment when it was started first.
        drained: the moment until which open pipes of an ended process are waited for.
    """

    host: Host
    lane: str
    job: Client | Worker
    due: float = 0.0
    deadline: float | None = None
    begun: float | None = None
    drained: float | None = None

    @property
    def process(self) -> Process:
        """Return the process that is at work for it."""
        return self.job.process

    @property
    def limit(self) -> float:
        """Return the seconds that the host has."""
        seconds: float = self.host.query.params["timeout"] + GRACE
        if self.lane == PLUGIN:
            return seconds + WORKER_GRACE_SECONDS
        return seconds


@dataclass
class Results:
    """What came of the hosts.

    Attributes:
        results: {host: the result of a task per host}.
        broken: {host: Ansible's message}, of hosts with which Ansible cannot begin.
        left: hosts that a task per host has to ask.
    """

    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


class Loop:
    """Asks hosts, a number of them at once."""

    def __init__(
        self,
        fleet: Fleet,
        widths: dict[str, int],
        lines: Lines,
        abandoned: Callable[[], bool] = orphaned,
        max_held: int = MAX_HELD,
        with_asyncssh: bool = False,
    ) -> None:
        """Take the widths of the lanes.

        abandoned: tells whether the run has ended that waits for the results
        with_asyncssh: whether a process of asyncssh asks the hosts that it can log in to
        """
        self._fleet, self._widths, self._lines = fleet, widths, lines
        self._abandoned, self._max_held = abandoned, max_held
        self._selector = selectors.DefaultSelector()
        self._waiting: deque[Task] = deque()
        self._running: list[Task] = []
        self._done = Results()
        self._guard = Guard()
        self._with_asyncssh = with_asyncssh
        self._library: Library | None = None

    def run(self, names: Iterable[str]) -> Results:
        """Ask these hosts, and return what came of them; no process is left."""
        unprepared = deque(names)
        try:
            while unprepared or self._waiting or self._running:
                self._turn(unprepared)
            return self._done
        finally:
            for task in self._running:
                task.process.kill()
            if self._library is not None:
                self._library.close()
            self._selector.close()
            self._guard.close()

    def _turn(self, unprepared: deque[str]) -> None:
        if self._abandoned():
            raise SystemExit(1)  # no Exception: Ansible would send its text to a dead process
        for _number in range(PREPARED_IN_A_TURN):
            if not (unprepared and self._has_room()):
                break
            self._prepare(unprepared.popleft())
            self._start_due()
        self._start_due()
        self._read(bool(unprepared) and self._has_room())
        for task in tuple(self._running):
            self._examine(task)
        self._lines.waiting({task.host.name: task.begun or 0.0 for task in self._running})

    def _has_room(self) -> bool:
        """Tell whether one more host may be made ready: it is not to wait long for its turn."""
        at_work = sum(task.lane == CLIENT for task in self._running)
        return at_work < self._widths[CLIENT] and len(self._waiting) < MAX_WAITING

    def _prepare(self, name: str) -> None:
        """Make a host ready, on the way that is right for it."""
        try:
            host = self._fleet.prepare(name)
        except BrokenHost as broken:
            self._done.broken[name] = str(broken)
            self._lines.ended(name, "error", never_began(str(broken)))
            return
        except STRANGE:
            self._done.left.append(name)
            return
        self._waiting.append(self._on_its_way(host))

    def _on_its_way(self, host: Host) -> Task:
        with suppress(AnsibleError, NodeError, *STRANGE):
            if ways.way_of(host) == ways.CLIENT:
                client = Client(host)
                if not client.names(host.variables.get("omit")):
                    return self._by_client(host, client)
        return self._by_worker(host)

    def _by_client(self, host: Host, client: Client) -> Task:
        lane = _lane(client)
        if lane == CLIENT:
            client.library = self._usable_library()
        return Task(host, lane, client)

    def _usable_library(self) -> Library | None:
        """Return the process of asyncssh, if there is to be one and it works."""
        if not self._with_asyncssh:
            return None
        if self._library is None:
            try:
                self._library = Library(self._descriptors(), self._guard.remove, service.serve)
            except OSError:
                self._with_asyncssh = False
                return None
            self._guard.add(self._library.process.pid)
        if not self._library.is_usable:
            return None
        return self._library

    @staticmethod
    def _by_worker(host: Host) -> Task:
        return Task(host, PLUGIN, Worker(host.name, host.ask))

    def _start_due(self) -> None:
        """Start who is due and has room in its lane."""
        now = time.monotonic()
        for task in tuple(self._waiting):
            running = sum(other.lane == task.lane for other in self._running)
            if task.due <= now and running < self._widths[task.lane]:
                self._waiting.remove(task)
                if not self._start(task, now):
                    return

    def _start(self, task: Task, now: float) -> bool:
        """Start a host; return whether others may be started in this turn."""
        try:
            self._start_process(task)
        except OSError as error:
            return self._not_started(task, error, now)
        task.begun = now if task.begun is None else task.begun
        if task.deadline is None:
            task.deadline = now + task.limit
        task.drained = None
        if task.process.pid:
            self._guard.add(task.process.pid)
        for fd in task.process.open:
            self._selector.register(fd, selectors.EVENT_READ, task)
        self._running.append(task)
        return True

    def _start_process(self, task: Task) -> None:
        if isinstance(task.job, Worker):
            task.job.start(self._descriptors(), self._guard.remove)
        else:
            task.job.start(self._guard.remove)

    def _not_started(self, task: Task, error: OSError, now: float) -> bool:
        """Decide what becomes of a host for which no process could be started."""
        if isinstance(task.job, Client) and task.job.library is not None:
            self._without_library(task, task.job)
            return True
        if error.errno not in SCARCE and task.lane != PLUGIN:
            self._waiting.append(self._by_worker(task.host))  # it says what is wrong
            return True
        if not self._running:
            self._done.left.append(task.host.name)
            return True
        # Those that are at work end, and give back what is scarce.
        task.due = now + 1.0
        self._waiting.append(task)
        return False

    def _descriptors(self) -> list[int]:
        """Return what a worker must close: its copies would keep the pipes of others open."""
        pipes = [fd for task in self._running for fd in task.process.descriptors]
        if self._library is not None:
            pipes += self._library.descriptors
        return [*pipes, *self._guard.descriptors]

    def _read(self, is_busy: bool) -> None:
        """Read and write what is ready; wait for it, but not long, and not where is_busy."""
        self._watch_writers()
        total = sum(task.process.size for task in self._running)
        largest = max(self._running, key=lambda task: task.process.size, default=None)
        for key, events in self._selector.select(self._patience(is_busy)):
            task: Task = key.data
            if events & selectors.EVENT_WRITE:
                self._write(task)
            elif total < self._max_held or task is largest:
                before = task.process.size
                has_ended = task.process.read(key.fd)
                total += task.process.size - before
                if has_ended:
                    self._selector.unregister(key.fd)
                    task.process.end_output(key.fd)

    def _patience(self, is_busy: bool) -> float:
        if is_busy:
            return 0.0
        if any(not task.process.open for task in self._running):
            return END_SECONDS
        return TURN_SECONDS

    def _watch_writers(self) -> None:
        watched = self._selector.get_map()
        for task in self._running:
            fd = task.process.write
            if fd is not None and task.process.unsent and fd not in watched:
                self._selector.register(fd, selectors.EVENT_WRITE, task)

    def _write(self, task: Task) -> None:
        fd = task.process.write
        if fd is not None and task.process.send():
            self._selector.unregister(fd)
            task.process.end_input()

    def _examine(self, task: Task) -> None:
        """Look at one host that is at work, and end it where it has ended."""
        task.process.poll()
        if isinstance(task.job, Worker):
            self._examine_worker(task, task.job)
        else:
            self._examine_client(task, task.job)

    def _is_over(self, task: Task) -> bool:
        """Tell whether a process has ended and is read, or keeps a pipe open behind its end."""
        if task.process.code is None:
            return False
        if task.drained is None:
            task.drained = time.monotonic() + DRAIN_SECONDS
        return task.process.over or time.monotonic() > task.drained

    def _is_late(self, task: Task) -> bool:
        return task.deadline is not None and time.monotonic() > task.deadline

    def _examine_client(self, task: Task, client: Client) -> None:
        try:
            outcome = client.look()
            if outcome is None and self._is_over(task):
                if client.is_refused():
                    self._end(task)
                    self._without_library(task, client)
                    return
                pause = client.pause(task.lane == JUMP)
                if pause is not None:
                    self._again(task, pause)
                    return
                outcome = client.ended()
            elif outcome is None and self._is_late(task):
                outcome = client.late(task.limit)
        except NoAnswer:
            self._end(task)
            self._waiting.append(self._by_worker(task.host))
            return
        if outcome is not None:
            self._end(task)
            self._conclude(task.host, *outcome)

    def _without_library(self, task: Task, client: Client) -> None:
        """Let an ssh client carry the question that asyncssh could not."""
        client.library, client.attempts = None, 0
        task.deadline, task.due = None, 0.0
        self._waiting.append(task)

    def _examine_worker(self, task: Task, worker: Worker) -> None:
        worker.look()
        if not (worker.has_failed or self._is_over(task) or self._is_late(task)):
            return
        self._end(task)
        if worker.result is not None:
            self._ended(task.host.name, worker.result)
        else:
            self._conclude(task.host, "error", worker.death(), {})

    def _again(self, task: Task, pause: float) -> None:
        """Start a client once more, after a pause."""
        self._end(task)
        task.due = time.monotonic() + pause
        self._waiting.append(task)

    def _end(self, task: Task) -> None:
        """End a process, and forget its pipes."""
        for key in tuple(self._selector.get_map().values()):
            if key.data is task:
                self._selector.unregister(key.fd)
        task.process.kill()
        self._running.remove(task)

    def _conclude(self, host: Host, *outcome: Any) -> None:
        self._ended(host.name, host.action.conclude(host.query, *outcome))

    def _ended(self, name: str, result: dict[str, Any]) -> None:
        self._done.results[name] = result
        self._lines.ended(name, str(result.get("status")), str(result.get("reason") or ""))


def _lane(client: Client) -> str:
    """Return whose limit of width counts for a client."""
    if ways.jumps([word.decode("utf-8", "replace") for word in client.line]):
        return JUMP
    return CLIENT
