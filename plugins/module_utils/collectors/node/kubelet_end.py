# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector kubelet_end.

The end of the journal of a kubelet's unit, where it does not run or was lately started again.
"""

import os
import time

from ...logs import stacks
from ...shared.text import without_middle
from ...system import command, files, rancher
from ..base import Absent, Denied, Failed

RECENT = 600  # seconds
# as k3s and RKE2 log it; the others as k3s up to 1.21 prints it
RUNTIME_EXITED = ("containerd exited", "]: containerd: exit status ", "]: containerd: signal: ")
# klog.Fatal of an old kubelet prints every goroutine: some thousand lines behind its last word.
FILE_BYTES, FILE_LINES = 128 * 1024, 120
BEGIN_LINES, BEGIN_BYTES, UNIX = 4, 16384, "short-unix"  # of an end with stacks
READ_LINES, READ_BYTES, KEPT, KEPT_BYTES, LONGEST = 5000, 2 * 1024 * 1024, 400, 192 * 1024, 2000


def collect(context):
    """Return {unit, lines, file, runtime_file}: the last lines of its journal, oldest first.

    The lines of systemd are among them. Their form is that of `journalctl -o short-iso`. file:
    {path, error, lines} of the file in which a kubelet of RKE2 writes, else None; runtime_file: of
    that of the containerd of k3s or RKE2, where the journal says that it exited, else None.
    """
    kubelet = context.data.get("kubelet") or {}
    unit = kubelet.get("unit") or {}
    name = unit.get("name")
    if not name:
        raise Absent("no unit of a kubelet")
    if not is_relevant(unit, kubelet.get("process"), time.time()):
        raise Absent("the kubelet runs, and was not started again recently")
    context.source = f"journalctl of {name}"
    try:
        text = read(name, context.seconds(8))
    except command.CommandError as error:
        raise Failed(str(error)) from error
    context.truncated = len(text) >= READ_BYTES
    lines = last(text.split("\n")[::-1])
    if not any("]: " in line for line in lines) and os.geteuid() != 0:
        raise Denied(f"journald shows this user nothing of {name}")
    return {"unit": name, "lines": lines, **_files(kubelet.get("distribution") or {}, lines)}


def _files(distribution, lines):
    """Return {file, runtime_file}."""
    about = distribution.get("program"), distribution.get("files") or ()
    kubelet = _file(rancher.log_of_kubelet(*about))
    return {"file": kubelet, "runtime_file": _runtime_file(lines, about)}


def _runtime_file(lines, about):
    """Return the end of containerd's file, None where the journal does not say that it exited."""
    if not any(words in line for words in RUNTIME_EXITED for line in lines):
        return None
    return _file(rancher.log_of_containerd(*about))


def _file(path):
    """Return the end of a file in which a program writes, None where it has none."""
    if path is None:
        return None
    record = {"path": files.one_line(path, 253), "error": None, "lines": []}
    try:
        text = files.last_lines(path, FILE_BYTES)[0].decode("utf-8", "replace")
    except OSError as error:
        record["error"] = files.reason(error)
        return record
    record["lines"] = last(text.split("\n"), str)[-FILE_LINES:]
    return record


def read(unit, seconds, lines=READ_LINES):
    """Return the end of a unit's journal, the newest line first; raise CommandError without one.

    A journal without a line of the unit is an empty text. Where stacks fill these lines, the lines
    with which the end began are the last ones.
    """
    text = _journal(unit, seconds, ("-r", "-n", str(lines)))
    rows = text.split("\n")
    if (len(rows) >= lines or len(text) >= READ_BYTES) and stacks.fill(rows, message_of):
        text += _begin(unit, seconds)
    return text


def _begin(unit, seconds):
    """Return the first lines of the unit's last end with stacks, the newest first.

    They are empty where journalctl was built without patterns.
    """
    try:
        words = _journal(unit, seconds, ("-r", "-n", str(BEGIN_LINES), "-g", stacks.BEGIN), UNIX)
        rows = [row.split(" ", 3) for row in words.split("\n") if "]: " in row]
        process = rows[0][2] if rows else ""
        begun = [row[0] for row in rows if row[2] == process]
        if not begun:
            return ""
        text = _journal(unit, seconds, (f"--since=@{begun[-1]}",), limit=BEGIN_BYTES)
    except command.CommandError:
        return ""
    lines = [row for row in text.split("\n")[:-1] if f" {process} " in row[:300]]
    begin = stacks.until_second_stack(lines)
    if begin and stacks.frame(message_of(begin[-1])):  # cut off before its place in the source
        begin.pop()
    return "".join(f"{line}\n" for line in begin[::-1])


def _journal(unit, seconds, arguments, form="short-iso", limit=READ_BYTES):
    """Return what journalctl prints of a unit."""
    try:
        # --all: journald shows a message with one byte that is no text as "blob data" otherwise,
        # and a kubelet of 1.18 quotes such bytes;
        # -r: the newest first, so that the limit of bytes costs the oldest; without -q, which
        # would leave out the lines between two boots
        base = ["journalctl", "--no-pager", "--all", "-o", form, *arguments]
        return command.run([*base, "-u", unit], seconds, limit)
    except command.Silent:
        return ""


def is_relevant(unit, process, now):
    """Return whether the journal of the kubelet's unit matters.

    It matters where the unit does not run, or where systemd itself restarted it of late.
    """
    if (unit.get("active_state"), unit.get("sub_state")) != ("active", "running"):
        return True
    started = (process or {}).get("started_at")
    if rancher.program(unit.get("name")) == "rke2":
        # It runs the kubelet as a process of its own, and starts it again by itself.
        return started is None or now - started < RECENT
    if unit.get("n_restarts") == 0 or started is None:  # None: systemd before 235 does not count
        return False
    return now - started < RECENT


def last(lines, text_of=None):
    """Return the last of the lines, bounded, without the stacks that a Go program leaves.

    A tab stays in its line, because a line that it indents belongs to the one before.

    text_of: a function that returns the program's part of a line.
    """
    kept, size = [], 0
    for line in reversed(stacks.removed(lines, text_of or message_of)):
        clean = files.masked_text(_printable(line[: files.MAX_LINE + files.BEYOND]), files.MAX_LINE)
        clean = without_middle(clean, LONGEST)
        size += len(clean)
        if len(kept) == KEPT or size > KEPT_BYTES:
            break
        kept.append(clean)
    return kept[::-1]


def _printable(line):
    return "".join(char if char.isprintable() or char == "\t" else " " for char in line)


def message_of(line):
    """Return what stands behind the prefix that journalctl gives."""
    return line.partition("]: ")[2]
