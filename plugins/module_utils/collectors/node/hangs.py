# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector hangs: processes that wait in the kernel, mounts that do not answer, and zombies.

A process counts that is in state D at each of three looks and was not switched in between. A mount
is asked in a process of its own, which an alarm ends; it is left behind where the kernel does not.
A local file system answers while its device is silent, so the counters of devices tell that.
"""

import contextlib
import errno
import os
import select
import time

from ...shared.file_systems import REMOTE
from ...system import block_devices, files, procfs

LOOKS, PAUSE_SECONDS, MOUNT_SECONDS = 3, 2, 4
MAX_TASKS, MAX_MOUNTS, MAX_PARENTS, MAX_MOUNTINFO, MAX_LINE = 20, 30, 10, 8 * 1024 * 1024, 300
MAX_DESCRIPTOR = 1024
MAX_REPLY = 32  # bytes: the name of an errno
MANY_ZOMBIES = 20  # of one parent: what node agents of clouds count too


def collect(context):
    """Return {tasks, mounts, devices, zombies}.

    tasks: [{pid, name, wchan, pod_uid}] in state D all the time; mounts: [{point, type, source,
    answers, error}] of remote file systems; devices: [{name, mapped, suspended, in_flight, points}]
    that completed nothing while tasks waited; zombies: [{pid, name, zombies}] of parents with many.
    """
    context.source = "/proc/*/stat, /proc/self/mountinfo, statvfs, /sys/block/*/stat"
    first, begin = _states(), time.monotonic()
    waiting = {pid: _wait(pid) for pid, (state, _parent) in first.items() if state == "D"}
    devices = block_devices.states() if waiting else {}
    mountinfo = files.whole("/proc/self/mountinfo", MAX_MOUNTINFO) or ""
    asked_mounts = mounts(mountinfo)
    for look in range(1, LOOKS):
        if waiting:  # a mount that does not answer took the time of the pauses already
            pause = begin + look * PAUSE_SECONDS - time.monotonic()
            time.sleep(max(0.0, min(pause, context.seconds(PAUSE_SECONDS))))
        waiting = {pid: wait for pid, wait in waiting.items() if wait and _wait(pid) == wait}
    context.truncated = len(waiting) > MAX_TASKS
    silent = []
    if waiting:
        silent = block_devices.silent(devices, block_devices.states(), mountinfo)
    return {
        "tasks": [_task(pid, waiting[pid]) for pid in sorted(waiting)[:MAX_TASKS]],
        "mounts": asked_mounts,
        "devices": silent,
        "zombies": zombies(first),
    }


def _states(proc="/proc"):
    """Return {pid: (state, parent)} of all processes."""
    states = {}
    for name in files.names(proc):
        if name.isdigit():
            fields = _stat(f"{proc}/{name}/stat")
            if fields:
                states[int(name)] = (fields[0], int(fields[1]))
    return states


def _stat(path):
    """Return the fields of a stat after the name, which may have blanks and brackets."""
    text = files.text(path, 2048) or ""
    return text.rpartition(")")[2].split()[:20]


def _wait(pid, proc="/proc"):
    """Return what tells one wait of a process from the next; None where it does not wait."""
    fields = _stat(f"{proc}/{pid}/stat")
    if not fields or fields[0] != "D":
        return None
    status = files.text(f"{proc}/{pid}/status", 8192) or ""
    switches = procfs.status(status, "voluntary_ctxt_switches")
    wchan = (files.text(f"{proc}/{pid}/wchan", 128) or "").strip("\0\n ")
    return fields[-1], switches, files.one_line(wchan, 80)


def _task(pid, wait, proc="/proc"):
    name = (files.text(f"{proc}/{pid}/comm", 64) or "").strip()
    group = procfs.cgroup(files.text(f"{proc}/{pid}/cgroup", 8192) or "")
    return {
        "pid": pid,
        "name": files.one_line(name, 64),
        "wchan": wait[2],
        "pod_uid": (group or {}).get("pod_uid"),
    }


def zombies(states, proc="/proc"):
    """Return [{pid, name, zombies}] of the parents that have many children to wait for."""
    counts = {}
    for state, parent in states.values():
        if state == "Z":
            counts[parent] = counts.get(parent, 0) + 1
    many = sorted(
        (pid for pid in counts if counts[pid] >= MANY_ZOMBIES), key=lambda pid: -counts[pid]
    )
    return [
        {
            "pid": pid,
            "name": files.one_line((files.text(f"{proc}/{pid}/comm", 64) or "").strip(), 64),
            "zombies": counts[pid],
        }
        for pid in many[:MAX_PARENTS]
    ]


def mounts(mountinfo, seconds=MOUNT_SECONDS):
    """Return [{point, type, source, answers, error}] of remote file systems, each point once.

    error: the name of the errno of statvfs (ENOTCONN where the program of a FUSE mount ended)
    """
    rows = {}
    for line in mountinfo.split("\n"):
        if not is_remote_line(line):
            continue
        before, _dash, after = line.partition(" - ")
        words, kinds = before.split(" "), after.split(" ")
        if len(rows) >= MAX_MOUNTS:
            break
        point = unescaped(words[4])
        source = kinds[1] if len(kinds) > 1 else ""
        rows[point] = {
            "point": files.one_line(point, MAX_LINE),
            "type": files.one_line(kinds[0], 40),
            "source": files.masked_text(files.one_line(unescaped(source), MAX_LINE), MAX_LINE),
            "answers": None,
            "error": None,
        }
    replies = answering(list(rows), seconds)
    for point, row in rows.items():
        row["answers"] = replies[point] is not None
        row["error"] = replies[point] or None
    return list(rows.values())


def is_remote_line(line):
    """Return whether a line of mountinfo is of a remote file system."""
    before, dash, after = line.partition(" - ")
    return bool(dash) and len(before.split(" ")) > 4 and _is_remote(after.split(" ")[0])


def _is_remote(kind):
    return kind in REMOTE or kind == "fuse" or kind.startswith("fuse.")


def unescaped(text):
    """Return a path of mountinfo, which has octal codes for blanks and line ends."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def answering(points, seconds):
    """Return {point: "" or the errno of its statvfs, None without an answer}; all at once."""
    children = {}
    for point in points:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            _ask(point, write, seconds)
        os.close(write)
        children[read] = (point, pid)
    replies, end = dict.fromkeys(points), time.monotonic() + seconds
    open_ends = set(children)
    while open_ends and time.monotonic() < end:
        ready = select.select(list(open_ends), [], [], max(0.0, end - time.monotonic()))[0]
        for read in ready:
            replies[children[read][0]] = os.read(read, MAX_REPLY).decode("ascii", "replace")
            open_ends.discard(read)
    for read, (_point, pid) in children.items():
        os.close(read)
        with contextlib.suppress(OSError):
            os.waitpid(pid, os.WNOHANG)
    return replies


def _ask(point, pipe, seconds):
    """Ask in the child, which writes an error to its pipe and closes it by its end."""
    try:
        os.closerange(3, pipe)  # who reads the collector's answer waits for each that holds its end
        os.closerange(pipe + 1, MAX_DESCRIPTOR)
        import signal  # 9 ms, on nodes that have such a mount

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds + 1)
        os.statvfs(point)
    except OSError as error:
        os.write(pipe, errno.errorcode.get(error.errno or 0, "?").encode("ascii"))
    finally:
        os._exit(0)
