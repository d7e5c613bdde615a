# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data folder of an etcd on this node, the disk below it, and how busy the machine is."""

import os

from ..shared import file_systems
from . import files, procfs

DATABASE, LOG, SNAPSHOTS = "member/snap/db", "member/wal", "member/snap"
MAX_FILES = 500
# File systems whose server, or whose program, may be gone.
REMOTE = (*file_systems.REMOTE, "fuse")
BLOCKS = "/sys/dev/block"
STALLS = (("io", "full"), ("cpu", "some"))
PRESSURE = "/proc/pressure"
CGROUPS = "/sys/fs/cgroup"


def described(path, log_path, pid):
    """Return what lies in a data folder: the database, the log, and the disk below them.

    The paths are as the process of this id has them. A file server is not asked: it may be gone.
    """
    row = {"path": path, "database": None, "log": None, "snapshots": None, "error": None}
    row.update(mount(path, files.whole(f"/proc/{pid}/mountinfo") or ""))
    if row["filesystem"] in REMOTE:
        row["error"] = "it is on a file server"
        return row
    root = f"/proc/{pid}/root"
    try:
        state = os.stat(f"{root}{path}/{DATABASE}")
        row["database"] = {"bytes": state.st_size, "mtime": round(state.st_mtime, 3)}
    except OSError as error:
        row["error"] = files.reason(error)
        return row
    row["log"] = _log(root + (log_path or f"{path}/{LOG}"))
    names = files.names(f"{root}{path}/{SNAPSHOTS}")
    row["snapshots"] = len([name for name in names if name.endswith(".snap")])
    return row


def _log(path):
    """Return {files, bytes, mtime} of the log; None where none of them can be read."""
    sizes, newest = [], 0.0
    for name in files.names(path)[:MAX_FILES]:
        if not name.endswith(".wal"):
            continue
        try:
            state = os.stat(os.path.join(path, name))
        except OSError:
            continue
        sizes.append(state.st_size)
        newest = max(newest, state.st_mtime)
    if not sizes:
        return None
    return {"files": len(sizes), "bytes": sum(sizes), "mtime": round(newest, 3)}


def mount(path, mountinfo):
    """Return {mount, filesystem, source, device, disk, rotational} of the file system of a path."""
    best, length = None, -1
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if len(fields) < 10 or "-" not in fields:
            continue
        point = fields[4].rstrip("/")
        if (path == point or path.startswith(point + "/")) and len(point) >= length:
            best, length = fields, len(point)
    row = dict.fromkeys(("mount", "filesystem", "source", "device", "disk", "rotational"))
    if best is None:
        return row
    rest = best[best.index("-") + 1 :]
    row.update(mount=best[4], filesystem=rest[0], source=rest[1], device=best[2])
    row["disk"], row["rotational"] = _disk(best[2])
    return row


def _disk(device):
    """Return (name, whether it rotates) of the disk with this number; None for what is no disk."""
    folder = os.path.realpath(f"{BLOCKS}/{device}")
    if not os.path.isdir(folder) or device.startswith("0:"):
        return None, None
    if not os.path.isdir(folder + "/queue"):  # a partition lies below its disk
        folder = os.path.dirname(folder)
    value = (files.text(folder + "/queue/rotational") or "").strip()
    return os.path.basename(folder), {"0": False, "1": True}.get(value)


def stalls():
    """Return {io, cpu}: the percentage of the last minute in which work stood still for it.

    A kernel without /proc/pressure gives None.
    """
    row = {}
    for name, kind in STALLS:
        text = files.text(f"{PRESSURE}/{name}") or ""
        row[name] = next(
            (_minute(line) for line in text.splitlines() if line.startswith(kind + " ")), None
        )
    return row


def _minute(line):
    for word in line.split():
        if word.startswith("avg60="):
            try:
                return float(word[6:])
            except ValueError:
                return None
    return None


def throttled(pid):
    """Return {periods, throttled} of the CPU limit of a process; None where it has none."""
    for line in (files.text(f"/proc/{pid}/cgroup") or "").splitlines():
        _number, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if controllers == "":
            folder = CGROUPS + path
        elif "cpu" in controllers.split(","):
            folder = f"{CGROUPS}/{controllers}{path}"
        else:
            continue
        values = dict(
            pair.split(" ", 1)
            for pair in (files.text(folder + "/cpu.stat") or "").splitlines()
            if " " in pair
        )
        periods = procfs.number(values.get("nr_periods", ""))
        if periods:
            return {"periods": periods, "throttled": procfs.number(values.get("nr_throttled", ""))}
    return None
