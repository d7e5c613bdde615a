# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the text of an errno is about, by its path or operation. Pure.

One errno has several causes: "no space left on device" is a full disk, used-up inotify watches, too
many cgroups, a cpuset without CPUs, or too many mounts. A text that names neither is no cause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NO_SPACE, QUOTA = "no space left on device", "disk quota exceeded"
MANY_FILES, MANY_IN_SYSTEM = "too many open files", "too many open files in system"
READ_ONLY, NO_MEMORY = "read-only file system", "cannot allocate memory"
CGROUP, CPUSET, WATCHES, INSTANCES, KEYRING, MOUNTS, DISK, KERNEL, FILES, FILE_MAX = (
    "cgroup",
    "cpuset",
    "watches",
    "instances",
    "keyring",
    "mounts",
    "disk",
    "kernel",
    "files",
    "file_max",
)
CGROUPS = "/sys/fs/cgroup"

_ERRNO = re.compile(
    f"(?:{MANY_IN_SYSTEM}|{NO_SPACE}|{QUOTA}|{MANY_FILES}|{READ_ONLY}|{NO_MEMORY})", re.IGNORECASE
)
_PATH = re.compile(r"(?<![\w./:])(/[^\s\"'\\,;)\]]+)")
_OPERATION = re.compile(r"(?:^|[\s\"'(])(\w+) +[\\\"']*/.*$")
_INOTIFY = re.compile(r"i?notify|\bwatch(?:er|es|ing)?\b", re.IGNORECASE)
_KEYS = re.compile(r"key ?ring|session key|\bkeyctl|\badd_key", re.IGNORECASE)
_CGROUP = re.compile(r"\bcgroups?\b|\bcpuset\.|cgroup\.procs", re.IGNORECASE)
_CPUSET = re.compile(r"cpuset", re.IGNORECASE)
_MOUNT = re.compile(r"\bmount(?:ing)?\b", re.IGNORECASE)
_OPENS = frozenset(
    (
        "open",
        "openat",
        "accept",
        "accept4",
        "pipe",
        "pipe2",
        "socket",
        "dup",
        "epoll_create1",
        "eventfd",
        "fork",
        "opendir",
        "connect",
    )
)
_MAKES = frozenset(("mkdir", "mkdirat", "create"))


@dataclass(frozen=True)
class About:
    """Cause of an errno.

    kind: one of the constants above
    subject: the operation and its path
    """

    errno: str
    kind: str
    subject: str
    path: str = ""


def about(text: str) -> About | None:
    """Return what the last errno of a text is about, or None if the text does not name it."""
    last = None
    for match in _ERRNO.finditer(text):
        last = _about(text[: match.start()], match.group().lower()) or last
    return last


def _about(before: str, errno: str) -> About | None:
    """Classify the clause before the errno, or the clause before that if the first has no path."""
    clauses = before.rstrip(": \\\"'").split(": ")
    clause = clauses[-1][-300:]
    if not _PATH.search(clause) and len(clauses) > 1 and not _kind(clause, "", errno):
        clause = clauses[-2][-300:]
    path = next(iter(_PATH.findall(clause)), "")
    kind = _kind(clause, path, errno)
    if kind is None:
        return None
    operation = _operation(clause)
    return About(errno, kind, f"{operation} {path}".strip() or clause.strip()[-120:], path)


def _operation(clause: str) -> str:
    match = _OPERATION.search(clause)
    if match:
        return match.group(1)
    return ""


def _kind(clause: str, path: str, errno: str) -> str | None:
    """Try special file systems and quotas of the kernel first, then a file system on a disk."""
    if errno == MANY_IN_SYSTEM:
        return FILE_MAX
    inotify = {NO_SPACE: WATCHES, MANY_FILES: INSTANCES}
    if errno in inotify and _INOTIFY.search(clause.replace(path, "")):
        return inotify[errno]
    if path.startswith(CGROUPS) or _CGROUP.search(clause):
        return _kind_of_cgroup(clause, path, errno)
    if errno == MANY_FILES:
        return _kind_of_process(clause, path)
    if _KEYS.search(clause):
        return KEYRING
    return _kind_of_file(clause, path, errno)


def _kind_of_cgroup(clause: str, path: str, errno: str) -> str:
    if errno == NO_SPACE and _is_cpuset(clause, path):
        return CPUSET
    return CGROUP


def _kind_of_process(clause: str, path: str) -> str | None:
    words = set(re.findall(r"\w+", clause.replace(path, "")))
    if words & _OPENS:
        return FILES
    return None


def _kind_of_file(clause: str, path: str, errno: str) -> str | None:
    if errno == NO_SPACE and _MOUNT.search(clause.replace(path, "")):
        return MOUNTS
    if errno == NO_MEMORY or not path:
        return None
    if path.startswith(("/proc/", "/sys/")):
        return KERNEL
    if path.startswith("/dev/") and not path.startswith("/dev/shm"):
        return KERNEL
    return DISK


def _is_cpuset(clause: str, path: str) -> bool:
    """Return whether a cpuset's parent has no CPUs or no memory nodes to give.

    The kernel then refuses a write to a cpuset. It does not refuse a new directory.
    """
    creates = _operation(clause) in _MAKES
    return not creates and bool(
        _CPUSET.search(clause) or path.endswith(("/cgroup.procs", "/tasks"))
    )


# kind: (what it is, what is done about it); {0} is the operation and its path, {1} the errno.
_TOLD = {
    CGROUP: (
        "a cgroup operation failed ({0}: {1}); this is not a disk problem",
        (
            "see how many cgroups there are (num_cgroups of /proc/cgroups; 65535 memory cgroups "
            "are the most), whether the folder is there and writable, and journalctl -k; cgroups "
            "that a kernel of 3.10 leaks go with a reboot, and a newer kernel"
        ),
    ),
    CPUSET: (
        "a cpuset has no CPU or no memory node to give ({0}: {1}); this is not a disk problem",
        (
            "compare cpuset.cpus and cpuset.mems of that cgroup with those of its parents; an "
            "empty one refuses every process"
        ),
    ),
    WATCHES: (
        "no inotify watches are left (KM403)",
        "the playbook too_many_open_files shows who holds them, and raises it",
    ),
    INSTANCES: (
        "no inotify instance is left (KM401, KM402)",
        "the playbook too_many_open_files shows who holds them, and raises it",
    ),
    FILE_MAX: (
        "the machine has no file handle left (KM405)",
        "the playbook too_many_open_files shows it, and raises it",
    ),
    FILES: (
        "it may open no more files ({0}: {1}; KM404)",
        "the playbook too_many_open_files shows which limit, and raises it",
    ),
    KEYRING: (
        "the kernel's quota of keys is used up ({1})",
        "see /proc/key-users, and raise kernel.keys.maxkeys and kernel.keys.maxbytes",
    ),
    MOUNTS: (
        "the kernel makes no further mount ({0}: {1})",
        (
            "count the lines of /proc/self/mountinfo, compare with fs.mount-max, and see who "
            "mounts so many"
        ),
    ),
    KERNEL: (
        "a file of the kernel refuses it ({0}: {1}); this is not a disk problem",
        "see how /proc, /sys and /dev are mounted here, and journalctl -k",
    ),
}


def explanation(text: str) -> tuple[str, str] | None:
    """Return (what it is, what is done about it), or None if the text does not name a cause."""
    cause = about(text)
    if cause is None:
        return None
    if cause.kind == DISK:
        return _disk(cause)
    summary, advice = _TOLD[cause.kind]
    return summary.format(cause.subject, cause.errno), advice


def _disk(cause: About) -> tuple[str, str]:
    if cause.errno == READ_ONLY:
        return (
            f"the file system of {cause.path} is read-only (KM521)",
            "see why (journalctl -k), and mount it for writing",
        )
    if cause.errno == QUOTA:
        return (
            f"the disk quota of {cause.path} is used up",
            "see repquota, and make room or raise it",
        )
    return f"a disk is full ({cause.path})", f"df -h and df -i of {cause.path}; make room"
