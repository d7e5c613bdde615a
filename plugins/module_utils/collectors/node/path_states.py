# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector path_states: what lies at the paths that programs of this node could not open.

The paths are those of messages that other collectors read. The collector reads the names and
modes of files; of a program that the kernel does not execute it reads the first 20 bytes, which
name its processor. Without such a message it opens nothing.
"""

import os

from ...logs import document_texts
from ...shared import path_in_error
from ...system import files, path_state
from ..base import Absent

# In the order in which their messages count; the last two are of static pods too, whose paths the
# controller compares with their volumes.
SOURCES = (
    "kubelet_end",
    "component_units",
    "runtime",
    "unit_start",
    "failed_units",
    "component_restart",
    "component_end",
    "repeated_errors",
)
MAX_PATHS = 12
CONTAINERS = ("docker", "nerdctl", "podman", "rkt", "systemd-nspawn")  # programs that start one
# A program of another host may be slow to answer there.
REMOTE = ("nfs", "nfs4", "cifs", "ceph", "fuse", "9p", "glusterfs", "lustre", "smb3", "autofs")


def collect(context):
    """Return {processor, paths}: rows of path_state.read of the paths that messages name.

    processor: that of this machine. A row has program too: see path_state.program_of, None for a
    path with another error.
    """
    context.source = "lstat of paths in messages, /proc/self/mountinfo"
    errors = _errors(context.data)
    if not errors:
        raise Absent("no message names a path with an error")
    mounts = path_state.mount_rows(files.whole("/proc/self/mountinfo") or "")
    paths = list(dict.fromkeys(path for path, _error in errors))
    context.truncated = len(paths) > MAX_PATHS
    programs = {path for path, error in errors if error == path_in_error.FORMAT}
    rows = [_row(path, mounts, programs) for path in _local(paths, mounts)[:MAX_PATHS]]
    return {"processor": os.uname().machine, "paths": rows}


def _errors(data):
    """Return [(path, error)] of the messages of all sources."""
    rows = []
    for name in SOURCES:
        for text in document_texts.having(_of_host(data.get(name)), path_in_error.MARKS):
            rows += path_in_error.find(text)
    return rows


def _row(path, mounts, programs):
    row = dict(path_state.read(path, mounts), program=None)
    if path in programs and row["kind"] == "file":
        row["program"] = path_state.program_of(os.path.realpath(path))
    return row


def _local(paths, mounts):
    """Return the paths that lie on no remote file system."""
    remote = [point for point, kind, _options in mounts if kind.partition(".")[0] in REMOTE]
    return [path for path in paths if not _is_below(path, remote)]


def _of_host(answer):
    """Return an answer without the units whose program starts a container."""
    if not isinstance(answer, dict) or not answer.get("units"):
        return answer
    return dict(answer, units=[unit for unit in answer["units"] if not _is_container(unit)])


def _is_container(unit):
    argv = unit.get("argv") or [""]
    return os.path.basename(argv[0]) in CONTAINERS


def _is_below(path, points):
    """Return whether a path lies on one of these mounts."""
    return any((path + "/").startswith(point.rstrip("/") + "/") for point in points)
