# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector space: what is free where a node's programs write.

These are logs, kubemend's own journal, and the folders without which Kubernetes does not work. The
size of etcd's database is read from its file, which is there while etcd does not run.
"""

import os

from ...system import etcd_folder, files, procfs
from . import hangs, pressure

# Not /run/log/journal: a journal in memory bounds itself, and /run is small where memory is.
FOLDERS = ("/var/log/pods", "/var/log/journal", "/var/lib/kubemend")
ETCD = "etcd"
# What lies where on a node, besides the folders of its kubelet, runtime and etcd.
STORES = (
    ("/run", "run"),
    ("/var/log/pods", "pod_logs"),
    ("/var/log/journal", "journal"),
    ("/var/lib/cni", "cni"),
    ("/var/lib/rancher/k3s/server/db", ETCD),
    ("/var/lib/rancher/rke2/server/db", ETCD),
    ("/var/lib/k0s/etcd", ETCD),
    ("/var/snap/microk8s/current/var/kubernetes/backend", ETCD),
)
USUAL = "/var/lib/etcd"
# Data folders that no flag of a process or a manifest names.
UNNAMED = (
    USUAL,
    "/var/lib/rancher/k3s/server/db/etcd",
    "/var/lib/rancher/rke2/server/db/etcd",
    "/var/lib/k0s/etcd",
)
READ_ONLY = 1  # ST_RDONLY of statvfs
MAX_STORES = 24
MOUNT_SECONDS = 2.0
UNANSWERED = "it does not answer"


def collect(context):
    """Return {folders, stores, database}: what is free, and the file of etcd's database.

    folders: [{path, free_bytes, total_bytes, free_inodes, error}], for a missing folder the values
    of the nearest one above it. stores: the file systems of the folders that are there, free is
    what root may still write. database: {path, bytes, mtime}, None where there is none.
    """
    context.source = "statvfs"
    mountinfo = files.whole("/proc/self/mountinfo", hangs.MAX_MOUNTINFO) or ""
    silent = silent_folders(
        [*FOLDERS, *candidates(context.data)], mountinfo, context.seconds(MOUNT_SECONDS)
    )
    rows = [_store(path, use, silent) for path, use in places(context.data, silent)[:MAX_STORES]]
    return {
        "folders": [_space(path, silent) for path in FOLDERS],
        "stores": [row for row in rows if row],
        "database": database(context.data, silent),
    }


def silent_folders(paths, mountinfo, seconds):
    """Return the folders whose file system does not answer, {} where none can be of that kind.

    Where a server of files is mounted, each folder is asked in a process of its own: a link may
    lead to it, and what is gone holds up who asks.
    """
    if not any(map(hangs.is_remote_line, mountinfo.split("\n"))):
        return frozenset()
    answers = hangs.answering(list(dict.fromkeys(paths)), seconds)
    return frozenset(path for path, answers_now in answers.items() if not answers_now)


def candidates(data):
    """Return each folder of which this collector may ask the file system."""
    paths = [*etcd_flags(data), *manifest_folders(data), os.path.join(USUAL, "member"), *UNNAMED]
    if data.get("kubelet"):
        paths += [pressure.root_dir(data["kubelet"]), *(path for _part, path in pressure.IMAGES)]
    return [*paths, *(path for path, _use in STORES)]


def places(data, silent=frozenset()):
    """Return [(folder, what lies there)] of a node, by the data of other collectors."""

    def exists(path):
        return path in silent or os.path.isdir(path)

    folders = [(path, ETCD) for path in etcd_folders(data, silent)]
    kubelet = data.get("kubelet")
    if kubelet:
        folders.append((pressure.root_dir(kubelet), "kubelet"))
        folders += [(path, "runtime") for path in pressure.images(kubelet, exists)]
    if folders or data.get("component_units"):
        folders += STORES
    return folders


def etcd_folders(data, silent=frozenset()):
    """Return the folders of etcd's data and of its log, the usual one where none is named."""
    paths = etcd_flags(data)
    member = os.path.join(USUAL, "member")
    if not paths and (member in silent or os.path.isdir(member)):
        return [USUAL]
    return paths


def etcd_flags(data):
    """Return the folders that the command lines of the node's own etcd name."""
    rows = (data.get("instances") or {}).get("processes") or []
    rows = [row for row in rows if _is_own(row, data)]
    rows += (data.get("component_units") or {}).get("units") or []
    paths = set()
    for row in rows:
        if row.get("component") == ETCD:
            paths.update(_named(row.get("argv") or []))
    return sorted(paths)


def database(data, silent=frozenset()):
    """Return {path, bytes, mtime} of the database of this node's etcd, None without one."""
    named = [*etcd_flags(data), *manifest_folders(data)]
    for folder in named or UNNAMED:
        path = os.path.join(folder, etcd_folder.DATABASE)
        if folder in silent:
            continue
        try:
            state = os.stat(path)
        except OSError:
            continue
        return {"path": path, "bytes": state.st_size, "mtime": round(state.st_mtime, 3)}
    return None


def manifest_folders(data):
    """Return the folders of the host that manifests of etcd name as its data."""
    paths = []
    for record in (data.get("manifests") or {}).get("files") or ():
        text = record.get("text") or ""
        if "--data-dir=" not in text:
            continue
        from . import static_pod_paths

        paths += static_pod_paths.of_flag(text, "data-dir")
    return list(dict.fromkeys(paths))


def _is_own(process, data):
    """Return whether a process is of a unit, or of a static pod that a manifest of the node makes.

    Pods of users have etcd too, whose folders are those of their container.
    """
    if not process.get("pod_uid"):
        return True
    if not process.get("static"):
        return False
    records = (data.get("manifests") or {}).get("files")
    if records is None:  # this user may not read them
        return True
    texts = [record.get("text") or "" for record in records]
    paths = _named(process.get("argv") or [])
    return any(path in text for text in texts for path in paths)


def _named(argv):
    """Return the folders that a command line of etcd names."""
    values = [procfs.flag(argv, flag) or "" for flag in ("data-dir", "wal-dir")]
    return [path for path in values if path.startswith("/")]


def _store(path, use, silent=frozenset()):
    """Return the file system of a folder; None where the folder is not there."""
    if path in silent:
        return {"path": path, "use": use, "error": UNANSWERED}
    try:
        stats = os.statvfs(path)
    except OSError as error:
        if files.reason(error) == "missing":
            return None
        return {"path": path, "use": use, "error": files.reason(error)}
    row = {
        "path": path,
        "use": use,
        "device": None,
        "total_bytes": stats.f_blocks * stats.f_frsize,
        "free_bytes": stats.f_bfree * stats.f_frsize,
        "inodes": None,
        "free_inodes": None,
        "read_only": bool(stats.f_flag & READ_ONLY),
        "error": None,
    }
    if stats.f_files:  # some filesystems count none
        row.update(inodes=stats.f_files, free_inodes=stats.f_ffree)
    row["device"] = _device(path)
    return row


def _device(path):
    try:
        return os.stat(path).st_dev
    except OSError:
        return None


def _space(path, silent=frozenset()):
    record = {
        "path": path,
        "free_bytes": None,
        "total_bytes": None,
        "free_inodes": None,
        "error": None,
    }
    if path in silent:
        return dict(record, error=UNANSWERED)
    there = path
    while not os.path.isdir(there) and there != "/":
        there = os.path.dirname(there)
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
