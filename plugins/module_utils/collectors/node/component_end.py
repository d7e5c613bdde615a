# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector component_end: the last log lines of control plane components that do not run well.

Such a component has a static pod that does not run, or that was started of late. The collector
opens no file where all of them have run for a while.
"""

import os
import time

from ...logs import stacks
from ...system import command, files, yaml_scalars
from ..base import Absent, Denied
from . import instances

PODS = "/var/log/pods"
RECENT = 3600  # seconds: two starts within these may be one of many
# bytes of a log's beginning, and of its end; lines of each; bytes of a line
READ, BEGUN, KEPT, LONGEST = 65536, 3, 20, 600
READ_BEFORE = 16 * 1024 * 1024  # of a log that ends with stacks, from its end
JOURNAL_LINES, JOURNAL_BYTES = 3000, 2 * 1024 * 1024
NAMED = ("name: ", '"name": "', '"name":"')
# Of 1.14 to 1.36: "Error syncing pod UID (…), skipping: …", "Error syncing pod, skipping" err="…"
FAILED = "Error syncing pod"


def collect(context):
    """Return {components: rows}, the end of the log of each component.

    A row is {component, running, restart, begun, path, first, last, lines, kubelet}. Its log is
    that of the start before the current one for a component that runs, and of the last start
    for another.

    restart: how many starts the pod had before that log; begun: when the pod was first started
    with this manifest; first, last: seconds since the epoch of the log's first and last line;
    kubelet: the kubelet's last line about starting the component. Each is None where there is
    nothing.
    """
    context.source = PODS
    running = static_processes(context)
    components = recent(context)
    kubelet = context.data.get("kubelet") or {}
    context.source = root = log_folder(kubelet)
    rows = [_row(root, component, component in running) for component in components]
    _add_kubelet_lines(rows, context, (kubelet.get("unit") or {}).get("name"))
    return {"components": rows}


def recent(context):
    """Return the components whose static pod does not run, or was started of late.

    Absent is raised where there is none, Denied where this user may not read the manifests.
    """
    if context.data.get("manifests") is None and os.geteuid() != 0:
        raise Denied("this user may not read the manifests, which show the components of this node")
    running = static_processes(context)
    components = [
        component
        for component in named(context.data.get("manifests") or {})
        if _wanted(running.get(component, []), time.time())
    ]
    if not components:
        raise Absent(
            "no static pod of a component, or each of them runs and was not started recently"
        )
    return components


def log_folder(kubelet):
    """Return the folder of the logs of pods, as the kubelet's configuration names it."""
    text = (kubelet.get("config") or {}).get("text") or ""
    return yaml_scalars.top(text, "podLogsDir") or PODS


def _add_kubelet_lines(rows, context, unit):
    """Add the kubelet's last line about starting each component that does not run."""
    down = [row for row in rows if not row["running"]]
    if not down:
        return
    lines = _journal(context, unit)
    for row in down:
        row["kubelet"] = find_start_failure(lines, row["component"])


def static_processes(context):
    """Return {component: its processes in static pods}."""
    processes = {}
    for process in (context.data.get("instances") or {}).get("processes") or []:
        if process["static"]:
            processes.setdefault(process["component"], []).append(process)
    return processes


def named(manifests):
    """Return the components that a manifest of the folder names.

    A name anywhere in its text counts. The controller judges later which words are those of the
    pod.
    """
    texts = [record.get("text") or "" for record in manifests.get("files") or ()]
    return [
        component
        for component in instances.COMPONENTS
        if any(before + component in text for text in texts for before in NAMED)
    ]


def _wanted(processes, now):
    return not processes or any(
        process["started_at"] is None or now - process["started_at"] < RECENT
        for process in processes
    )


def _row(root, component, running):
    row = {
        "component": component,
        "running": running,
        "restart": None,
        "begun": None,
        "path": None,
        "first": None,
        "last": None,
        "lines": [],
        "kubelet": None,
    }
    restart, path = newest(root, component, 1 if running else 0)
    if path:
        # The folder of a static pod is named by its manifest, and changes when that of the
        # container is made in it.
        row.update(
            restart=restart, path=path, begun=files.mtime(os.path.dirname(os.path.dirname(path)))
        )
        try:
            row["first"], row["last"], row["lines"] = ends(*read(path))
        except OSError as error:
            row["error"] = files.reason(error)
    return row


def newest(root, component, back):
    """Return (number, path) of the log of a static pod's last start, or of that many before it.

    It returns (None, None) where there is none.
    """
    logs = []
    for name in files.names(root):
        folder = os.path.join(root, name, component)
        numbers = []
        if _is_static(name):
            numbers = log_numbers(folder)
        if numbers:
            last = max(numbers)
            written = files.mtime(os.path.join(folder, f"{last}.log")) or 0.0
            logs.append((written, last, folder))
    if not logs:
        return None, None
    _dummy, number, folder = max(logs)
    path = os.path.join(folder, f"{number - back}.log")
    if number >= back and os.path.exists(path):
        return (number - back, path)
    return (None, None)


def _is_static(name):
    """Return whether a folder of /var/log/pods is of a static pod."""
    namespace, _dummy, rest = name.partition("_")
    uid = rest.rpartition("_")[2]
    return bool(namespace) and len(uid) == 32 and "-" not in uid


def log_numbers(folder):
    """Return the numbers of a container's logs, one for each of its starts."""
    stems = [name[: -len(".log")] for name in files.names(folder) if name.endswith(".log")]
    return [int(stem) for stem in stems if stem.isdigit()]


def read(path):
    """Return (the bytes that a log begins with, those that it ends with)."""
    descriptor = files.opened(path)
    try:
        head = files.content(descriptor, READ)
        size = os.fstat(descriptor).st_size
        os.lseek(descriptor, max(0, size - READ), os.SEEK_SET)
        tail = files.content(descriptor, READ)
        if size <= READ:
            return head, tail
        return head, _begin(descriptor, size, tail) + tail.partition(b"\n")[2]
    finally:
        os.close(descriptor)


def _begin(descriptor, size, tail):
    """Return the first lines of the program's end, where stacks fill what the log ends with."""
    texts = [text for _dummy, text in _lines(tail.partition(b"\n")[2])]
    if not stacks.fill(texts, str):
        return b""
    os.lseek(descriptor, max(0, size - READ_BEFORE), os.SEEK_SET)
    return stacks.begin_in_file(files.content(descriptor, READ_BEFORE))


def ends(head, tail):
    """Return (seconds of the first line, of the last, lines without secrets and stacks of Go).

    The lines are the last ones, and the first ones too: a program that refuses a flag may say so
    before it prints how it is used.
    """
    begun, ended = _lines(head), _lines(tail)
    first, last = None, None
    if begun:
        first = begun[0][0]
    if ended:
        last = ended[-1][0]
    begun, ended = [
        [line for line in stacks.removed([text for _dummy, text in lines], str) if line.strip()]
        for lines in (begun, ended)
    ]
    if head == tail and len(ended) <= BEGUN + KEPT:
        return first, last, ended
    return first, last, begun[:BEGUN] + ended[-KEPT:]


def _lines(raw):
    """Return [(seconds, text)] of the whole lines of a log's bytes."""
    from ...logs import lines as log_lines

    joiner, cleaner, entries = log_lines.Joiner(), log_lines.Cleaner(), []
    for line in raw.split(b"\n"):
        piece = log_lines.written(line)
        if piece:
            whole = joiner.feed(piece)
        else:
            whole = None
        if whole:
            within = cleaner.within_key(whole[1])
            text = log_lines.ends(cleaner.clean(whole[1], within), whole[2], LONGEST)
            entries.append(
                (
                    whole[0],
                    "".join(char if char.isprintable() or char == "\t" else " " for char in text),
                )
            )
    return entries


def _journal(context, unit):
    """Return the kubelet's last lines, the newest first; an empty list where journalctl fails."""
    if not unit:
        return []
    try:
        return command.run(
            [
                "journalctl",
                "--no-pager",
                "--all",
                "-q",
                "-r",
                "-o",
                "short-iso",
                # a kubelet that still fails tries again within five minutes
                f"--since=@{int(time.time() - RECENT)}",
                "-n",
                str(JOURNAL_LINES),
                "-u",
                unit,
            ],
            context.seconds(5),
            JOURNAL_BYTES,
        ).split("\n")
    except command.CommandError:
        return []


def find_start_failure(lines, component):
    """Return the first of these lines in which the kubelet fails to start the component, or None.

    Its secrets are masked.
    """
    line = next((text for text in lines if FAILED in text and component + "-" in text), None)
    return line and files.masked_line(line, 2 * LONGEST)
