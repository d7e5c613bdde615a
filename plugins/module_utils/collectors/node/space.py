# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector space: what is free where logs and kubemend's own journal lie."""

import os

from ...system import files

# Not /run/log/journal: a journal in memory bounds itself, and /run is small where memory is.
FOLDERS = ("/var/log/pods", "/var/log/journal", "/var/lib/kubemend")


def collect(context):
    """Return {folders: [{path, free_bytes, total_bytes, free_inodes, error}]}.

    For a missing folder the values are those of the nearest folder above it.
    """
    context.source = "statvfs"
    return {"folders": [_space(path) for path in FOLDERS]}


def _space(path):
    there = path
    while not os.path.isdir(there) and there != "/":
        there = os.path.dirname(there)
    record = {
        "path": path,
        "free_bytes": None,
        "total_bytes": None,
        "free_inodes": None,
        "error": None,
    }
    try:
        stats = os.statvfs(there)
    except OSError as error:
        record["error"] = files.reason(error)
        return record
    record.update(
        free_bytes=stats.f_bavail * stats.f_frsize,
        total_bytes=stats.f_blocks * stats.f_frsize,
        free_inodes=stats.f_favail if stats.f_files else None,
    )  # some filesystems count none
    return record
