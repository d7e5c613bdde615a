# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one command with limits of time and output, without subprocess (6 to 10 ms to import)."""

import contextlib
import os
import select
import time

# Since Python 3.8
_spawn = getattr(os, "posix_spawn", None)
_OPEN, _DUP2 = getattr(os, "POSIX_SPAWN_OPEN", 0), getattr(os, "POSIX_SPAWN_DUP2", 0)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Waits:
    """What this process does while it awaits a command: a step of a few milliseconds each time.

    Only a process without threads may use it.
    """

    def __init__(self):
        self._steps = iter(())

    def use(self, steps):
        """Take these steps in place of those of before."""
        self._steps = iter(steps)

    def step(self):
        """Do the next step, and return whether there was one."""
        return next(self._steps, None) is not None


waits = Waits()


class CommandError(Exception):
    """A command that could not be started, or did not end in time."""


class Late(CommandError):
    """A command that did not end in time."""


class Silent(CommandError):
    """A command that printed nothing on standard output.

    The message has the first line of its standard error, if any. complaint is that line alone,
    last_line the last one: a program that logs warnings ends with its error.
    """

    complaint = last_line = ""


def run(argv, seconds=5, limit=1048576):
    """Run a command, and return its standard output, whatever its exit code is.

    Silent is raised with the first line of standard error where standard output is empty.
    """
    return _output(argv, start(argv), seconds, limit)


def run_together(argvs, seconds=5, limit=1048576):
    """Run commands at the same time.

    Return [(standard output, None)] of each as run() does, or ("", the error) in its place.
    """
    begun = [(argv, *_outcome(start, argv)) for argv in argvs]
    outcomes = []
    for argv, started, error in begun:
        outcome = "", error
        if started:
            outcome = _outcome(_output, argv, started, seconds, limit)
        outcomes.append((outcome[0] or "", outcome[1]))
    return outcomes


def _outcome(function, *arguments):
    """Return (what a function returns, None), or (None, the error of a command)."""
    try:
        return function(*arguments), None
    except (CommandError, OSError) as error:
        return None, error


def _output(argv, started, seconds, limit):
    """Return the output of a command that start() started, and wait for its end."""
    pid, read, complaint = started
    try:
        text = _read(argv, read, pid, seconds, limit)
        if not text:
            lines = _lines(complaint)
            silent = Silent("{}: {}".format(argv[0], lines[0] or "it said nothing"))
            silent.complaint, silent.last_line = lines[0], lines[-1]
            raise silent
    finally:
        os.close(complaint)
    return text


def complaint(argv, seconds):
    """Return why a command did not end well, or an empty text. It is killed at its limit."""
    try:
        pid, out, stderr = start(argv)
    except OSError as error:
        return f"{argv[0]} could not be started: {error}"
    os.close(out)
    end, ended = time.monotonic() + seconds, (0, 0)
    try:
        while ended[0] == 0 and time.monotonic() < end:
            ended = os.waitpid(pid, os.WNOHANG)
            time.sleep(0.05 if ended[0] == 0 else 0)
        if ended[0] == 0:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            return f"{argv[0]} did not end within {int(seconds)} s and was stopped"
        if ended[1] == 0:
            return ""
        return first_line(stderr) or f"{argv[0]} ended with {ended[1] >> 8}"
    finally:
        os.close(stderr)


def start(argv):
    """Start a command, and return (pid, its standard output, its standard error).

    The caller closes both and waits for the command.
    """
    read, write = os.pipe()
    complaint, complain = os.pipe()
    os.set_blocking(complaint, False)
    # it is not read before the end: what does not fit is lost, and holds nothing up
    os.set_blocking(complain, False)
    pid = _spawned(argv, write, complain)
    os.close(write)
    os.close(complain)
    return pid, read, complaint


def _read(argv, read, pid, seconds, limit):
    end, chunks, size = time.monotonic() + seconds, [], 0
    poll = select.poll()
    poll.register(read, select.POLLIN | select.POLLHUP)
    try:
        while size < limit:
            if not _has_more(poll, end):
                raise Late(f"{argv[0]} did not end within {int(seconds)} s")
            chunk = os.read(read, 65536)
            if not chunk:
                break
            chunks.append(chunk)
            size += len(chunk)
    except CommandError:
        os.kill(pid, 9)
        raise
    finally:
        os.close(read)
        os.waitpid(pid, 0 if size < limit else os.WNOHANG)
    return b"".join(chunks)[:limit].decode("utf-8", "replace")


def _has_more(poll, end):
    """Return whether there is something to read before this time."""
    while not poll.poll(0) and time.monotonic() < end and waits.step():
        pass
    return poll.poll(max(0, int((end - time.monotonic()) * 1000)))


def first_line(fd):
    """Return the first line of a standard error that start() gave, or an empty text."""
    return _lines(fd)[0]


def _lines(fd):
    """Return the lines of a standard error, [""] where there are none."""
    try:
        text = os.read(fd, 65536).decode("utf-8", "replace").strip()
    except BlockingIOError:
        text = ""
    return [line.strip() for line in text.split("\n")]


def _spawned(argv, write, complain):
    """Return the pid of the command, with its standard output and error.

    posix_spawn leaves the memory of this process alone: after a fork, each page that is written
    to is copied, 2 ms for each command.
    """
    environment = {
        "PATH": os.environ.get("PATH", "") + ":" + PATH,
        "LC_ALL": "C",
        "SYSTEMD_COLORS": "0",
        "SYSTEMD_PAGER": "cat",
    }
    program = _program(argv[0], environment["PATH"])
    if _spawn and program:
        actions = [
            (_OPEN, 0, os.devnull, os.O_RDWR, 0),
            (_DUP2, write, 1),
            (_DUP2, complain, 2),
        ]
        with contextlib.suppress(OSError):  # what is no program ends like one that is not there
            # No AnsibleModule where this runs as a program on standard input.
            return _spawn(  # pylint: disable=ansible-bad-function
                program, argv, environment, file_actions=actions
            )
    pid = os.fork()
    if pid == 0:
        _become(argv, write, complain, environment)
    return pid


def _program(name, folders):
    """Return the path of a program, None where it is in none of the folders."""
    if "/" in name:
        return name
    paths = [f"{folder}/{name}" for folder in folders.split(":") if folder]
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def _become(argv, write, complain, environment):
    """Become the command in the child, or end it."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(write, 1)
        os.dup2(complain, 2)
        os.execvpe(argv[0], argv, environment)
    finally:
        os._exit(127)
