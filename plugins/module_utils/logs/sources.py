# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The places where components log on a node: journald, and the runtime's files of static pods."""

import gzip
import os
import re
import stat
import time
import zlib

from ..shared.text import counted
from ..system import (
    files,
    json_line,
    kubelet_process,
    procfs,
    systemd,
    yaml_scalars,
)
from . import lines as log_lines

PODS = "/var/log/pods"
# bytes; a probe must hold a whole line, and runtimes cut lines at 16 KiB
BLOCK, PROBE = 262144, 131072
MAX_FILES = 64
SLACK = 10  # seconds between the start of a process and its first line
LOG = re.compile(r"([0-9]+)\.log(?:\.([0-9]{8}-[0-9]{6})(\.gz)?)?\Z")
FULL = "not all of it: max_bytes is used up"


class Late(Exception):
    """The error of a deadline that comes while a source is read."""


class Sink:
    """A sink for the lines of one source after another.

    It hands the wanted lines, cleaned, to put(). put gets ("begin", source), ("line", seconds,
    text, cost) and ("end", status, lines seen, lines kept, truncated, notes).
    """

    def __init__(self, put, since, until, deadline, params):
        self.put = put
        self.since = since
        self.until = until
        self.deadline = deadline
        self.wanted = log_lines.LineFilter(params.get("needles"), params.get("match"))
        self.max_line = params["max_line"]
        self.left = params["max_bytes"]
        self.cleaner = log_lines.Cleaner()
        self.source, self.seen, self.kept, self.unknown, self.first, self.last = (
            None,
            0,
            0,
            0,
            None,
            None,
        )

    def begin(self, source):
        """Begin the next source, and forget the counts of the one before."""
        self.source, self.seen, self.kept, self.unknown, self.first, self.last = (
            source,
            0,
            0,
            0,
            None,
            None,
        )
        self.put(("begin", source))

    def line(self, moment, raw, length):
        """Take one line, of which raw may be only the beginning."""
        self.first = moment if self.first is None else min(self.first, moment)
        within = self.cleaner.within_key(raw)
        if not self.since <= moment <= self.until or self.left <= 0:
            return
        self.seen += 1
        if not self.wanted(raw):
            return
        text = log_lines.cut(
            self.cleaner.clean(raw[: self.max_line + log_lines.BEYOND], within),
            length,
            self.max_line,
        )
        spent = cost(self.source, text)
        if spent > self.left:
            self.left = 0
            return
        self.left -= spent
        self.kept += 1
        self.last = moment
        self.put(("line", moment, text, spent))

    def check(self):
        """Raise Late, once there is no time for more."""
        if time.monotonic() >= self.deadline:
            raise Late

    def end(self, status="ok", notes=()):
        """End the source, with its status and notes."""
        notes = [note for note in notes if note]
        if self.unknown:
            notes.append(
                f"{counted(self.unknown, 'line has', 'lines have')} no format that is known"
            )
        if self.left <= 0:
            notes.append(
                FULL
                if self.last is None
                else f"{FULL}, the last line is of {log_lines.stamp(self.last)}"
            )
        if status == "timeout":
            notes.append("the time ended before it was read to its end")
        self.put(("end", status, self.seen, self.kept, self.left <= 0, notes))


def cost(source, text):
    """Return the bytes that a line needs at most in the answer, with its fields' names."""
    return len(json_line.dumps(text)) + len(json_line.dumps(source)) + 128


def pods(sink, component, processes):
    """Give the files of the component's static pods, of every restart, oldest first."""
    root = logs_folder(processes)
    try:
        names = os.listdir(root)
    except OSError as error:
        sink.begin(root)
        reason = files.reason(error)
        status = {"denied": "denied", "missing": "absent"}.get(reason, "error")
        sink.end(
            status,
            [f"{root} cannot be read: {reason}" if status != "absent" else f"there is no {root}"],
        )
        return
    folders = [
        os.path.join(root, name, component)
        for name in names
        if name.startswith(f"kube-system_{component}-")
    ]
    folders = [folder for folder in folders if os.path.isdir(folder)]
    if not folders:
        sink.begin(os.path.join(root, f"kube-system_{component}-*"))
        sink.end("absent", ["no static pod of this name has logged here"])
        return
    for folder in sorted(folders, key=_age):
        sink.cleaner = log_lines.Cleaner()
        _folder(sink, folder, _started(component, folder, processes))


def logs_folder(processes):
    """Return where this node's kubelet has the runtime write logs.

    It is podLogsDir of its configuration (since 1.29), else the usual place.
    """
    process, block, _dummy = kubelet_process.here(processes)
    argv = process["raw"] if process else systemd.command_line(block)
    base = (procfs.link(process["pid"], "cwd") if process else None) or "/"
    config, folder = procfs.flag(argv, "config"), procfs.flag(argv, "config-dir")
    paths = [os.path.join(base, config)] if config else []
    paths += kubelet_process.dropin_paths(os.path.join(base, folder)) if folder else []
    named = [yaml_scalars.top(files.text(path) or "", "podLogsDir") for path in paths]
    return ([PODS] + [path for path in named if path and path.startswith("/")])[-1]


def _age(folder):
    try:
        return os.stat(folder).st_mtime, folder
    except OSError:
        return 0, folder


def _started(component, folder, processes):
    """Return when the process whose log this is began; None when it does not run."""
    uid = os.path.basename(os.path.dirname(folder)).rpartition("_")[2].replace("-", "")
    for pid, comm in processes:
        try:
            is_component = procfs.component(comm, procfs.argv(pid)) == component
        except OSError:
            continue
        if (
            is_component
            and (procfs.cgroup(files.text(f"/proc/{pid:d}/cgroup") or "")["pod_uid"] or "").replace(
                "-", ""
            )
            == uid
        ):
            return procfs.started_at(pid)
    return None


def _folder(sink, folder, started):
    try:
        logs = log_files(folder)
    except OSError as error:
        sink.begin(folder)
        sink.end("denied" if files.reason(error) == "denied" else "error", [files.reason(error)])
        return
    recent_logs = [log for log in logs if _may_hold(log[3], sink.since)]
    if not recent_logs:
        sink.begin(folder)
        sink.end("ok", ["nothing was written here within the window"])
        return
    joiner, newest, oldest = log_lines.Joiner(), logs[-1][0], logs[0][2]
    if len(recent_logs) > MAX_FILES:
        sink.begin(folder)
        sink.end(
            "ok", [f"only the newest {MAX_FILES:d} of its {len(recent_logs):d} files were read"]
        )
        recent_logs = recent_logs[-MAX_FILES:]
    for index, (restart, _rotated, path, state) in enumerate(recent_logs):
        last = index + 1 == len(recent_logs) or recent_logs[index + 1][0] != restart
        origin = None
        if path == oldest:
            origin = (started if restart == newest else None, restart)
        _file(sink, path, state, joiner, last, origin)


def _may_hold(state, since):
    """Return whether a file was written within the window, by its stat (None: unknown)."""
    return state is None or state.st_mtime >= since - 1


def log_files(folder):
    """Return [(restart, when it was rotated, path, stat or None)], oldest first.

    It raises OSError where the folder cannot be read.
    """
    paths = {}
    for name in os.listdir(folder):
        match = LOG.match(name)
        if match:
            key = int(match.group(1)), match.group(2) or "now"  # digits sort before letters
            # both exist for a moment, while it is compressed
            if key not in paths or not match.group(3):
                paths[key] = os.path.join(folder, name)
    return [(*key, path, _stat(path)) for key, path in sorted(paths.items())]


def _stat(path):
    try:
        return os.stat(path)
    except OSError:
        return None


def _opened(path, state):
    """Return a descriptor of the file that had this name when the directory was listed.

    Rotation may have renamed it since.
    """
    descriptor = files.opened(path)
    if state is None or os.path.samestat(os.fstat(descriptor), state):
        return descriptor
    os.close(descriptor)
    for _restart, _rotated, other, now in log_files(os.path.dirname(path)):
        if now is not None and os.path.samestat(now, state):
            return files.opened(other)
    raise OSError("it was rotated away while it was read")


def beginning(first, since, started, restart):
    """Return a sentence about a log that begins within the window, else None.

    first: the time of its oldest line.
    """
    if first is None or first <= since:
        return None
    moment = log_lines.stamp(first)
    if started is not None and started < first - SLACK:
        return (
            f"what it logged before {moment} is gone: rotation took it, the process runs since"
            f" {log_lines.stamp(started)}"
        )
    if restart:
        return (
            f"what the {counted(restart, 'container')} before it logged is gone; this log begins"
            f" at {moment}"
        )
    return f"this log begins at {moment}, within the window"


def _file(sink, path, state, joiner, last, origin):
    """Give the lines of one file to the sink.

    Lines that an earlier file of the same restart began end in this file and count for it.

    origin: the last arguments of beginning(), for the oldest file.
    """
    sink.begin(path)
    status, note = "ok", None
    try:
        descriptor = _opened(path, state)
        try:
            now = os.fstat(descriptor)
            if not stat.S_ISREG(now.st_mode):
                raise OSError("no regular file")
            whole = _pieces(sink, descriptor, now.st_size, path.endswith(".gz"), joiner)
        finally:
            os.close(descriptor)
        for line in joiner.rest() if last else ():
            sink.line(*line)
        note = beginning(sink.first, sink.since, *origin) if whole and origin else None
    except Late:
        status = "timeout"
    except (OSError, EOFError, zlib.error) as error:
        reason = files.reason(error) if isinstance(error, OSError) else files.one_line(error)
        status = {"denied": "denied", "missing": "absent"}.get(reason, "error")
        note = "it went away while it was read" if status == "absent" else reason
    sink.end(status, [note])


def _pieces(sink, descriptor, size, packed, joiner):
    """Give the file's lines to the sink; return whether it was read from its first byte."""
    start = 0
    if packed:
        read = gzip.GzipFile(fileobj=os.fdopen(os.dup(descriptor), "rb")).read
    else:
        start = begin_of(descriptor, size, sink.since - 1)
        os.lseek(descriptor, start, os.SEEK_SET)

        def read(count):
            return os.read(descriptor, count)

    def block():
        sink.check()
        return b"" if sink.left <= 0 else read(BLOCK)

    for raw in log_lines.split(block):
        piece = log_lines.written(raw)
        if piece is None:
            sink.unknown += 1
            continue
        line = joiner.feed(piece)
        if line:
            sink.line(*line)
    return start == 0


def begin_of(descriptor, size, since):
    """Return the offset of a line before which all lines are older, found by halving.

    It is 0 where the times of lines show no such offset.
    """
    low, high = 0, size
    while high - low > BLOCK:
        middle = (low + high) // 2
        head, newline, rest = os.pread(descriptor, PROBE, middle).partition(b"\n")
        moment = None
        for raw in rest.split(b"\n")[:-1]:
            moment = (log_lines.written(raw) or (None,))[0]
            if moment is not None:
                break
        if newline and moment is not None and moment < since:
            low = middle + len(head) + 1
        else:
            high = middle
    return low
