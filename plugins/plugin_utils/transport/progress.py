# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of a query of many hosts, which Ansible's worker processes share by two files.

Each worker notes in one file which host it asks and how that ended. While it waits, a thread of it
prints the progress of all of them, unless another worker did so in the last seconds: the time of
the other file says that. Ansible's main process prints what a worker hands on, so no callback
plugin is needed.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ...module_utils.shared.text import counted
from ..evidence.document import one_line
from ..reports import host_names
from ..run import console

INTERVAL = 10.0  # seconds between two sentences
PAUSE = 1.0  # seconds until a worker looks again, where another one is printing
# No evidence: who reads the folder passes over names that begin with a dot.
EVENTS, SHOWN = ".progress", ".progress-shown"
ASKED, READ = "asked", "ok"

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Count:
    """How far a query is.

    Attributes:
        read: hosts that answered.
        failed: hosts that are over without an answer.
        waiting: for each host that is being asked, the seconds since then.
    """

    read: int
    failed: int
    waiting: Mapping[str, float]


@contextmanager
def shown(
    folder: Path, host: str, total: int, tell: Tell = console.tell, interval: float = INTERVAL
) -> Iterator[list[str]]:
    """Print the progress of all hosts while this one is asked; take its status from the list.

    A folder that cannot be written costs the progress alone.
    """
    ends: list[str] = []
    over = threading.Event()
    thread = threading.Thread(
        target=_repeat, args=(folder, total, tell, interval, over), daemon=True
    )
    _begin(folder)
    _note(folder, ASKED, host)
    thread.start()
    try:
        yield ends
    finally:
        over.set()
        # However long that takes: a worker that ends while it hands a text on stops all others.
        thread.join()
        _note(folder, next(iter(ends), "error"), host)


def remove(folder: Path) -> None:
    """Remove the two files, once no host is asked any more."""
    for name in (EVENTS, SHOWN):
        with suppress(OSError):
            (folder / name).unlink()


def _begin(folder: Path) -> None:
    """Let the first interval begin with the first host."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(folder / SHOWN, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _note(folder: Path, event: str, host: str) -> None:
    """Add one line in one write, so that those of several workers do not mix."""
    line = f"{time.time():.1f} {event} {one_line(host)}\n".encode("utf-8", "backslashreplace")
    with suppress(OSError):
        handle = os.open(folder / EVENTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)


def _repeat(folder: Path, total: int, tell: Tell, interval: float, over: threading.Event) -> None:
    # The limits of time of the worker are signals, and only its main thread can act on them.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    with suppress(OSError):
        while not over.wait(max(_remaining(folder, interval), min(PAUSE, interval))):
            _tell_once(folder, total, tell, interval, over)


def _remaining(folder: Path, interval: float) -> float:
    """Return the seconds until the next sentence; a clock that was set back costs one interval."""
    since = time.time() - (folder / SHOWN).stat().st_mtime
    return min(max(interval - since, 0.0), interval)


def _tell_once(
    folder: Path, total: int, tell: Tell, interval: float, over: threading.Event
) -> None:
    """Print the progress, if it is time and no other worker does."""
    with (folder / SHOWN).open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if _remaining(folder, interval) > 0 or over.is_set():
            return
        os.utime(folder / SHOWN)
        tell(sentence(count(folder), total))


def count(folder: Path) -> Count:
    """Return how far the query is by the events of all workers; the last one of a host counts."""
    last: dict[str, tuple[float, str]] = {}
    text = (folder / EVENTS).read_text(encoding="utf-8", errors="replace")
    for line in text.splitlines():
        moment, _space, rest = line.partition(" ")
        event, _space, host = rest.partition(" ")
        with suppress(ValueError):
            last[host] = (float(moment), event)
    now, events = time.time(), [event for _moment, event in last.values()]
    waiting = {
        host: max(now - moment, 0.0) for host, (moment, event) in last.items() if event == ASKED
    }
    read = events.count(READ)
    return Count(read, len(events) - read - len(waiting), waiting)


def sentence(state: Count, total: int) -> str:
    """Return how many hosts are read, which ones are waited for, and how many remain."""
    text = f"kubemend: {state.read} of {counted(total, 'host')} read"
    if state.failed:
        text += f", {state.failed} gave no evidence"
    if state.waiting:
        longest = max(state.waiting.values())
        names = host_names.counted(state.waiting)
        text += f"; waiting for {names}, {longest:.0f} s so far"
    remaining = total - state.read - state.failed - len(state.waiting)
    if remaining > 0:
        text += f"; {remaining} not asked yet"
    return text
