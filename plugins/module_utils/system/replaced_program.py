# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run, against the program that lies at their path now."""

import os

from . import command, files, procfs

DELETED = " (deleted)"  # what the kernel writes behind the path of a program that was removed
SECONDS = 3
# Programs that tell their version and end.
NAMES = ("kubelet", "containerd", "crio", "dockerd", "cri-dockerd", "hyperkube")


def replaced(name, pid, seconds=lambda most: most, proc="/proc"):
    """Return {name, pid, path, started_at, replaced, missing, running, disk} of a process.

    running, disk: what both programs say of their version, where they differ; path, replaced: None
    where this user may not know them.
    """
    row = {
        "name": name,
        "pid": pid,
        "path": None,
        "started_at": procfs.started_at(pid, proc),
        "replaced": None,
        "missing": False,
        "running": "",
        "disk": "",
    }
    link = procfs.link(pid, "exe", proc)
    if link:
        path = link.partition(DELETED)[0]
        row["path"] = files.one_line(path, 253)
        # of a kubelet in a container the path is one below the root of that container
        there = f"{proc}/{pid}/root{path}"
        row["missing"] = not os.path.lexists(there)
        row["replaced"] = link.endswith(DELETED) or _differs(f"{proc}/{pid}/exe", there)
        if row["replaced"] and _is_of_host(proc, pid) and path.rpartition("/")[2] in NAMES:
            row["running"] = version(f"{proc}/{pid}/exe", seconds(SECONDS))
            row["disk"] = version(path, seconds(SECONDS))
    return row


def _is_of_host(proc, pid):
    """Return whether a process has the root of the host."""
    try:
        return os.path.samefile(f"{proc}/{pid}/root", "/")
    except OSError:
        return False


def _differs(running, path):
    """Return whether another file lies at the path of a program; None where that is not known."""
    try:
        return not _same(os.stat(running), os.stat(path))
    except OSError as error:
        if files.reason(error) == "missing":
            return True
        return None


def _same(running, other):
    """Return whether two states are those of one program.

    An overlay gives a program another inode when its mode or owner is changed.
    """
    if (running.st_dev, running.st_ino) == (other.st_dev, other.st_ino):
        return True
    return (running.st_size, running.st_mtime) == (other.st_size, other.st_mtime)


def version(path, seconds):
    """Return the first line of what a program says of its version, or an empty text."""
    try:
        text = command.run([path, "--version"], seconds, 4096)
    except (command.CommandError, OSError):
        return ""
    return files.one_line(text.strip().partition("\n")[0], 200)
