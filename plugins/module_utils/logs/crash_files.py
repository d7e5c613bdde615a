# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a kernel's last lines, where kdump or the firmware (pstore) kept them for this boot.

kdump writes them before the boot. At the boot, systemd moves those that the firmware kept.
"""

import os
import re

from ..system import files

FOLDERS = ("/var/crash", "/var/lib/systemd/pstore", "/sys/fs/pstore")
NAMES = re.compile(r"(?:vmcore-)?dmesg(?:\.txt|\.\d{8,16})\Z|dmesg-[\w-]{1,60}(?:\.enc\.z)?\Z")
BEFORE, AFTER = 3600, 900  # seconds about a boot
MAX_FOLDERS, MAX_NAMES, TAIL = 50, 20, 192 * 1024
_HEAD = re.compile(rb"^(?:<\d{1,3}>)?\[ {0,8}(\d{1,10}\.\d{1,6})\](?:\[ {0,6}\w{1,10}\])? ?")


def newest(booted):
    """Return (path, when it was written) of the newest file for this boot, or (None, None)."""
    paths = [path for folder in FOLDERS for path in _paths(folder)]
    times = [(files.mtime(path) or 0.0, path) for path in paths]
    fitting = [row for row in times if booted - BEFORE <= row[0] <= booted + AFTER]
    if not fitting:
        return None, None
    at, path = max(fitting)
    return path, at


def _paths(folder):
    """Return the files of a folder and of those in it, the newest of which have the last names."""
    for name in sorted(files.names(folder))[-MAX_FOLDERS:]:
        path = os.path.join(folder, name)
        if NAMES.match(name):
            yield path
        elif os.path.isdir(path) and not os.path.islink(path):
            inner = sorted(files.names(path))[:MAX_NAMES]
            for below in inner:
                if NAMES.match(below):
                    yield os.path.join(path, below)


def lines(path):
    """Return (seconds since the start of that kernel, text) of the last lines of such a file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        size = os.fstat(descriptor).st_size
        os.lseek(descriptor, max(0, size - TAIL), os.SEEK_SET)
        raw = os.read(descriptor, TAIL)
    except OSError:
        return []
    finally:
        os.close(descriptor)
    heads = ((_HEAD.match(line), line) for line in raw.split(b"\n"))
    return [(float(head.group(1)), line[head.end() :]) for head, line in heads if head]
