# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector repeated_errors: errors that components of this node which run say again and again.

The components are the kubelet, the runtime and others that are units, by the journal, and those of
static pods, by the files of the container's log.
"""

import os
import time

from ...logs import lines as log_lines
from ...logs import repeated_lines, wrapped_lines
from ...system import command, files, procfs, yaml_scalars
from ..base import Absent, Denied
from . import component_end, instances

WINDOW = 600  # seconds
# After its start, a component waits for what is not up yet, and says so as an error.
SETTLE = 120
LOG_BYTES = 1024 * 1024  # of the end of a component's log
UNREADABLE = 1000  # lines at the beginning of a log that are passed over
JOURNAL_LINES, JOURNAL_BYTES = 6000, 3 * 512 * 1024
# The identifier with which the program of a unit logs.
RUNTIMES = {
    "containerd.service": "containerd",
    "crio.service": "crio",
    "docker.service": "dockerd",
    "cri-docker.service": "cri-dockerd",
    "cri-dockerd.service": "cri-dockerd",
}
KUBELETS = ("kubelet", "hyperkube")
# Programs that run the kubelet and more: how their unit begins, the component, and the name by
# which it logs.
SUPERVISORS = (
    ("k3s", "k3s", "k3s"),
    ("rke2", "rke2", "rke2"),
    ("k0s", "k0s", "k0s"),
    ("snap.microk8s.daemon-kubelite", "kubelite", "microk8s.daemon-kubelite"),
)


def collect(context):
    """Return {read_at, components: rows} of the last WINDOW seconds.

    A row is {component, source, error, started, since, lines, errors, cut, entries}.

    started: when the process started; since: from when on its lines count (SETTLE seconds after
    the start, or where the log begins that was read); lines: how many were read; errors: how many
    of these count; cut: whether older or further ones of the window were left out; entries: see
    repeated_lines. Times are seconds since the epoch. error: why its log could not be read, else
    None.
    """
    now = time.time()
    kubelet = context.data.get("kubelet") or {}
    context.source = "journalctl of the kubelet and its runtime, logs of static pods"
    rows = _of_units(context, kubelet, now) + _of_static_pods(context, kubelet, now)
    if not rows:
        raise Absent("no component runs here whose log is known")
    if os.geteuid() != 0 and not any(row["lines"] for row in rows):
        raise Denied("the journal and the logs of pods are not this user's to read")
    return {"read_at": round(now, 3), "components": rows}


class _Row:
    """What one component logged."""

    def __init__(self, component, source, started, now):
        self.component, self.source, self.started = component, source, started
        self.since = max(now - WINDOW, (started or 0) + SETTLE)
        self.counter = repeated_lines.Counter()
        self.error, self.lines, self.cut = None, 0, False

    def add(self, moment, raw):
        """Count a line, if it is of the window."""
        if moment is not None and moment >= self.since:
            self.counter.add(moment, raw)

    def begin(self, moment):
        """Note that the log was read from this time on."""
        if moment is not None and moment > self.since:
            self.since, self.cut = moment, True

    def record(self):
        """Return the row of the evidence."""
        return {
            "component": self.component,
            "source": self.source,
            "error": self.error,
            "started": self.started,
            "since": round(self.since, 3),
            "lines": self.lines,
            "errors": self.counter.lines,
            "cut": self.cut or self.counter.cut,
            "entries": self.counter.most_frequent(),
        }


# -- units ----------------------------------------------------------------------------------------


def _of_units(context, kubelet, now):
    """Return the rows of the kubelet and of its runtime, as far as their units run."""
    units = _units(context, kubelet, now)
    if not units:
        return []
    named = [word for _dummy, row in units for word in ("-u", row.source)]
    # the newest first, so that the limits cost the oldest
    argv = ["--all", "-r", "-n", str(JOURNAL_LINES), f"--since=@{int(now) - WINDOW}", *named]
    text, problem = _journal(context, 5, *argv)
    if problem is None or isinstance(problem, command.Silent):
        read_journal(dict(units), text.encode("utf-8", "replace"))
        _note_gaps(context, units, text, now)
    else:
        for _dummy, row in units:
            row.error = files.one_line(str(problem))
    return [row.record() for _dummy, row in units]


def _journal(context, seconds, *arguments):
    """Return (what journalctl prints, None), or ("", why it prints nothing)."""
    argv = ["journalctl", "--no-pager", "-q", "-o", "short-iso", *arguments]
    try:
        return command.run(argv, context.seconds(seconds), JOURNAL_BYTES), None
    except command.CommandError as error:
        return "", error


def _note_gaps(context, units, text, now):
    """Note where the journal does not reach back to the window, and whose lines it has not at all.

    A unit that says nothing is a quiet one only where the journal has an earlier line of it.
    """
    begun = min(row.since for _dummy, row in units)
    for identifier, row in units:
        if row.lines == 0 and row.since < now:
            _text, problem = _journal(context, 2, "-n", "1", "-u", row.source, "-t", identifier)
            row.error = problem and files.one_line(f"the journal has no line of it: {problem}")
    # Without -r, journalctl of systemd 252 looks at the newest line alone, and prints nothing.
    before = ["-r", "-n", "1", f"--until=@{int(begun)}"]
    _text, problem = _journal(context, 2, "--system", *before)
    if problem is not None:
        oldest = _moment(text.rstrip("\n").rpartition("\n")[2]) or now
        for _dummy, row in units:
            row.begin(oldest)


def _moment(line):
    """Return when a line of the journal was written, or None."""
    return log_lines.seconds(line.partition(" ")[0])


def _units(context, kubelet, now):
    """Return [(identifier, row)] of the units that run."""
    units = (context.data.get("runtime") or {}).get("units") or []
    processes = (context.data.get("instances") or {}).get("processes") or []
    return [
        *_of_kubelet(kubelet, now),
        *(_of_runtime(unit, now) for unit in units if _runs(unit)),
        *(_of_component(process, now) for process in processes if _has_unit(process)),
    ]


def _of_kubelet(kubelet, now):
    """Return [(identifier, row)] of the kubelet, or of the program that it is a part of."""
    process, name = kubelet.get("process") or {}, (kubelet.get("unit") or {}).get("name") or ""
    supervisor = next((row for row in SUPERVISORS if name.startswith(row[0])), None)
    if not process or not (supervisor or name == "kubelet.service"):
        return []
    if supervisor:
        _unit, component, identifier = supervisor
        return [(identifier, _Row(component, name, process.get("started_at"), now))]
    identifier = KUBELETS["hyperkube" in (process.get("exe") or "")]
    return [(identifier, _Row("kubelet", name, process.get("started_at"), now))]


def _runs(unit):
    return unit.get("name") in RUNTIMES and unit.get("active_state") == "active"


def _of_runtime(unit, now):
    """Return (identifier, row) of a unit of the runtime."""
    identifier, started = RUNTIMES[unit["name"]], procfs.started_at(unit.get("main_pid") or 0)
    return identifier, _Row(identifier, unit["name"], started, now)


def _has_unit(process):
    """Return whether a component has a unit of its name, as etcd has of kubespray."""
    return process.get("unit") == process["component"] + ".service"


def _of_component(process, now):
    component = process["component"]
    return component, _Row(component, process["unit"], process["started_at"], now)


def read_journal(rows, data):
    """Count the error lines of a journal, newest first, for the rows by their identifiers."""
    lines, oldest = data.count(b"\n"), None
    if lines >= JOURNAL_LINES or len(data) >= JOURNAL_BYTES:
        last = data.rstrip(b"\n").rpartition(b"\n")[2]
        if len(data) >= JOURNAL_BYTES:  # the last line is cut off
            last = data.rpartition(b"\n")[0].rpartition(b"\n")[2]
        oldest = _moment(last.decode("latin-1"))
    for identifier, row in rows.items():
        row.lines = data.count(f" {identifier}[".encode("ascii"))
        row.begin(oldest)
        # journald leaves out what a unit says too fast
        row.cut = row.cut or f" messages from {row.source}".encode("ascii") in data
    for match in repeated_lines.IN_JOURNAL.finditer(data):
        row = rows.get(match.group(2).decode("latin-1"))
        if row:
            text = match.group(3)
            if text.endswith(wrapped_lines.BEGIN):
                text = wrapped_lines.joined(text, wrapped_lines.journal_texts(data, match))
            row.add(_moment(match.group(1).decode("latin-1")), text)


# -- static pods ----------------------------------------------------------------------------------


def _of_static_pods(context, kubelet, now):
    """Return the rows of the components whose static pods run."""
    text = (kubelet.get("config") or {}).get("text") or ""
    root = yaml_scalars.top(text, "podLogsDir") or component_end.PODS
    started = _started(context.data.get("instances") or {})
    rows = []
    for component in instances.COMPONENTS:
        if component not in started:
            continue
        number, path = component_end.newest(root, component, 0)
        row = _Row(component, path or root, started[component], now)
        if path:
            read_log(row, path, number, now)
        else:
            row.error = "this folder has no log of its static pod"
        rows.append(row.record())
    return rows


def _started(answer):
    """Return {component: when its youngest process in a static pod started}."""
    started = {}
    for process in answer.get("processes") or []:
        if process["static"]:
            name = process["component"]
            started[name] = max(started.get(name) or 0, process["started_at"] or 0)
    return started


def read_log(row, path, number, now):
    """Count the error lines of the end of a log, and of the file before it that was rotated.

    A component logs at its start. So a log that begins within the window is not all of it: files
    before it were rotated and deleted or compressed.
    """
    try:
        data, is_whole = files.last_lines(path, LOG_BYTES)
        earlier = is_whole and _rotated(path, number)
        if earlier:
            data = files.last_lines(earlier, LOG_BYTES - len(data))[0] + data
    except OSError as error:
        row.error = files.reason(error)
        return
    row.lines = data.count(b"\n")
    row.begin(_first_moment(data) or now)
    for match in reversed(list(repeated_lines.IN_FILE.finditer(data))):
        piece = log_lines.written(match.group())
        if piece:
            text = piece[3]
            if text.endswith(wrapped_lines.BEGIN):
                text = wrapped_lines.joined(text, wrapped_lines.file_texts(data, match))
            row.add(piece[0], text)


def _first_moment(data):
    """Return when the first line of a log that can be read was written, or None.

    A power cut leaves lines of zero bytes.
    """
    start = 0
    for _line in range(UNREADABLE):
        end = data.find(b"\n", start)
        if end < 0:
            break
        piece = log_lines.written(data[start:end])
        if piece:
            return piece[0]
        start = end + 1
    return None


def _rotated(path, number):
    """Return the newest of the rotated files of this start of the container, or None.

    docker rotates the file that the log is a link to, and numbers from the newest one.
    """
    of_docker = os.path.realpath(path) + ".1"
    if os.path.exists(of_docker):
        return of_docker
    folder = os.path.dirname(path)
    names = [
        name
        for name in files.names(folder)
        if name.startswith(f"{number}.log.") and not name.endswith((".gz", ".tmp"))
    ]
    if names:
        return os.path.join(folder, max(names))
    return None
