# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector largest: what uses up the file system, the memory or the process ids that run short.

It stays within the file system that is short: /proc/self/mountinfo names the paths where another
one is mounted, and it asks nothing of those, because a server that is gone does not answer.
"""

import os
import stat
import time

from ...system import files, procfs
from ..base import Absent
from . import descriptors, pressure

PLACES = (
    "/var/lib/containerd",
    "/var/lib/docker",
    "/var/lib/containers",
    "/var/log",
    "/var/log/pods",
    "/var/log/journal",
    "/var/lib/etcd",
    "/var/tmp",
    "/tmp",
)
SECONDS = 8
MAX_ENTRIES, MAX_DEPTH, MAX_LINKS = 400000, 64, 100000
TOLD = 2  # levels of folders below a place that have a row of their own
MAX_FOLDERS, MAX_PROCESSES, LONGEST = 10, 10, 300
MOST = 0.8  # of a folder: a folder within it that has so much replaces it
EVERY = 256  # entries between two looks at the clock


def collect(context):
    """Return {filesystems, memory, threads} of what is short; the rest is empty."""
    pressures = context.data.get("pressure") or {}
    short = pressures.get("used_up") or []
    if not short:
        raise Absent("nothing is nearly used up")
    context.source = "the folders of a filesystem that is short, /proc/*/status"
    end = time.monotonic() + context.seconds(SECONDS)
    consumers = {"filesystems": [], "memory": [], "threads": []}
    if "memory.available" in short or "pid.available" in short:
        consumers.update(processes())
    filesystems = [row for row in pressures.get("filesystems") or [] if _is_short(row, short)]
    root = pressure.root_dir(context.data.get("kubelet") or {})
    consumers["filesystems"] = _walks(filesystems, root, short, end)
    return consumers


def _is_short(filesystem, short):
    if not filesystem["device"]:
        return False
    return any(signal.startswith(filesystem["name"] + ".") for signal in short)


def _walks(filesystems, root, short, end):
    """Return walk() of each of these file systems; a device is walked once."""
    table = pressure.mounts(files.whole("/proc/self/mountinfo", pressure.MAX_MOUNTS) or "")
    points = [row[0] for row in table]
    walks, rows = {}, []
    for filesystem in filesystems:
        name, device = filesystem["name"], filesystem["device"]
        if device not in walks:
            here = places((root, *PLACES, filesystem["path"]), device, table)
            walks[device] = walk(here, points, end, _short_of(name, short))
        rows.append(dict(walks[device], name=name))
    return rows


def _short_of(name, short):
    """Return what a filesystem is short of: bytes, files or both."""
    signals = (("bytes", ".available"), ("files", ".inodesFree"))
    return [key for key, signal in signals if name + signal in short]


def places(paths, device, table, real=os.path.realpath):
    """Return those of these folders that lie on this device, without folders within another."""
    there = sorted({real(path) for path in paths})
    folders = [
        path for path in there if (pressure.mount_of(path, table) or ("", None))[1] == device
    ]
    return [
        path
        for path in folders
        if not any(
            path.startswith(other.rstrip("/") + "/") and _together(path, other, table)
            for other in folders
        )
    ]


def _together(path, other, table):
    """Return whether nothing is mounted between two folders."""
    return pressure.mount_of(path, table) == pressure.mount_of(other, table)


def walk(roots, points, end, keys=("bytes",)):
    """Return {folders, bytes, files, complete} of these folders.

    points: the paths where something is mounted.
    """
    count = _Count(points, end)
    count.add_roots(roots)
    rows = list(count.rows.values())
    total = [row for row in rows if row["path"] in roots]
    return {
        "folders": chosen(rows, keys),
        "complete": count.complete,
        "bytes": sum(row["bytes"] for row in total),
        "files": sum(row["files"] for row in total),
    }


class _Count:
    """The sums of folders, as far as the time and the number of entries reach."""

    def __init__(self, points, end):
        self.points = set(points)
        self.end = end
        self.rows = {}
        self.links = set()
        self.entries = 0
        self.complete = True

    def over(self):
        """Return whether time or number of entries is used up."""
        return self.entries > MAX_ENTRIES or time.monotonic() >= self.end

    def add_roots(self, roots):
        """Count what these folders hold, as far as the time reaches."""
        starts = [(root, self.start(root)) for root in roots]
        waiting = [(root, [start]) for root, start in starts if start]
        while waiting and not self.over():
            # Each has a share of the time that is left: a large folder does not hide the others.
            later = []
            for number, (root, stack) in enumerate(waiting):
                now = time.monotonic()
                self.folders(stack, now + max(0.05, self.end - now) / (len(waiting) - number))
                if stack:
                    later.append((root, stack))
            waiting = later
        self.complete = self.complete and not waiting

    def start(self, root):
        """Return what folders() takes for this folder; None where it is not there."""
        try:
            return root, os.lstat(root).st_dev, 0, [self._row(root)]
        except OSError:
            return None

    def folders(self, stack, until):
        """Count what the folders of the stack hold, until then; what is left stays on it."""
        while stack and time.monotonic() < until and not self.over():
            path, device, depth, rows = stack.pop()
            try:
                entries = os.scandir(path)
            except OSError:
                continue
            with entries:
                for entry in entries:
                    self.entries += 1
                    if not self.entries % EVERY and self.over():
                        self.complete = False
                        return
                    deeper = self._entry(entry, device, depth, rows)
                    if deeper:
                        stack.append(deeper)

    def _entry(self, entry, device, depth, rows):
        """Count an entry; return a folder with the rows that its content counts for."""
        if entry.path in self.points:
            return None
        try:
            state = entry.stat(follow_symlinks=False)
        except OSError:
            return None
        if state.st_dev != device or self._counted(state):
            return None
        is_folder = stat.S_ISDIR(state.st_mode)
        if is_folder and depth < TOLD:
            rows = [*rows, self._row(entry.path)]
        for row in rows:
            row["bytes"] += state.st_blocks * 512
            row["files"] += 1
        if not is_folder:
            return None
        if depth >= MAX_DEPTH:
            self.complete = False
            return None
        return (entry.path, device, depth + 1, rows)

    def _counted(self, state):
        """Return whether another name of the same file was counted."""
        if state.st_nlink < 2 or stat.S_ISDIR(state.st_mode) or len(self.links) >= MAX_LINKS:
            return False
        is_counted = state.st_ino in self.links
        self.links.add(state.st_ino)
        return is_counted

    def _row(self, path):
        return self.rows.setdefault(path, {"path": path, "bytes": 0, "files": 0})


def chosen(rows, keys):
    """Return the largest folders by bytes, by files or by both.

    A folder is left out where another one within it has most of what it has.
    """
    folders = []
    for key in keys:
        best = sorted(rows, key=lambda row: (-row[key], -len(row["path"])))[: 4 * MAX_FOLDERS]
        most = [row for row in best if row[key] and not _is_within(row, best, key)]
        folders += most[:MAX_FOLDERS]
    by_path = {row["path"]: row for row in folders}
    return [dict(row, path=files.one_line(row["path"], LONGEST)) for row in by_path.values()]


def _is_within(row, other_rows, key):
    """Return whether a folder within this one has most of what it has."""
    base = row["path"].rstrip("/") + "/"
    return any(
        other["path"].startswith(base) and other[key] >= MOST * row[key] for other in other_rows
    )


def processes(proc="/proc"):
    """Return {memory, threads}: the processes with the most of each."""
    rows = []
    for name in os.listdir(proc):
        if name.isdecimal():
            status = files.text(f"{proc}/{name}/status", 16384)
        else:
            status = None
        if status is None:
            continue
        resident, threads, uid = [
            procfs.number((procfs.status(status, key) or [""])[0]) or 0
            for key in ("VmRSS", "Threads", "Uid")
        ]
        rows.append({"pid": int(name), "uid": uid, "rss": resident * 1024, "threads": threads})
    by_kind = {}
    for kind, key in (("memory", "rss"), ("threads", "threads")):
        most = sorted(rows, key=lambda row: (-row[key], row["pid"]))[:MAX_PROCESSES]
        by_kind[kind] = [
            dict(row, **descriptors.holder(row["pid"], row["uid"], f"{proc}/{row['pid']}"))
            for row in most
            if row[key]
        ]
        descriptors.name_pods(by_kind[kind])
    return by_kind
