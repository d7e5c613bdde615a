# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector path_states: what lies at the paths that programs of this node could not open.

The paths are those of messages that other collectors read. The collector reads the names and
modes of files and never what a file holds. Without such a message it opens nothing.
"""

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
# A program of another host may be slow to answer there.
REMOTE = ("nfs", "nfs4", "cifs", "ceph", "fuse", "9p", "glusterfs", "lustre", "smb3", "autofs")


def collect(context):
    """Return {paths: rows} of path_state.read, for the paths that messages name with an error."""
    context.source = "lstat of paths in messages, /proc/self/mountinfo"
    texts = []
    for name in SOURCES:
        texts += document_texts.having(context.data.get(name), path_in_error.MARKS)
    named_paths = (path for text in texts for path, _error in path_in_error.find(text))
    paths = list(dict.fromkeys(named_paths))
    if not paths:
        raise Absent("no message names a path with an error")
    context.truncated = len(paths) > MAX_PATHS
    mounts = path_state.mount_rows(files.whole("/proc/self/mountinfo") or "")
    remote = [point for point, kind, _options in mounts if kind.partition(".")[0] in REMOTE]
    local = [path for path in paths if not _is_below(path, remote)]
    return {"paths": [path_state.read(path, mounts) for path in local[:MAX_PATHS]]}


def _is_below(path, points):
    """Return whether a path lies on one of these mounts."""
    return any((path + "/").startswith(point.rstrip("/") + "/") for point in points)
