# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an error of the kernel about a file means, by its operation and its path. Pure.

It is for messages whose cause no table has: the same errors mean the same in each program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 2048  # characters of a text that are read
_ERROR = re.compile(
    r"\b(?P<operation>open|openat|stat|lstat|read|readdirent|mkdir|mkdirat|create|write|unlink"
    r"|unlinkat|remove|rename|chmod|chown|lchown|fork/exec|listen unix|exec:)"
    r" \\*[\"'`]?(?P<path>/[^\s:\"'`\\]{1,255})\\*[\"'`]?: (?:bind: )?(?P<errno>permission denied"
    r"|is a directory|not a directory|no such file or directory|exec format error"
    r"|text file busy|too many levels of symbolic links)",
    re.IGNORECASE,
)
# Made by the kernel, or by another program when that starts.
_NOT_OF_A_DISK = ("/proc/", "/sys/", "/dev/", "/run/", "/var/run/")
# Asked for only where another credential is missing or expired.
_BOOTSTRAP = re.compile(r"bootstrap[\w-]{0,20}\.(?:conf|kubeconfig)$|/bootstrap-kubeconfig$")
_EXECUTES = frozenset(("fork/exec", "exec:"))
_CHANGES = frozenset(
    (
        *("mkdir", "mkdirat", "create", "write", "unlink", "unlinkat", "remove", "rename"),
        *("chmod", "chown", "lchown", "listen unix"),
    )
)
_DENIED = (
    "namei -l {path} shows owner and mode of the file and of each folder above it: let the user of"
    " the program (User= of its unit, runAsUser of its pod) pass the folders and {verb} the file"
    " (chown, chmod), and leave keys closed to others. What root may not {verb} is denied by"
    " SELinux or AppArmor (getenforce, ls -Z {path}, ausearch -m avc -ts recent; restorecon -Rv of"
    " the folder, and the SELinux package of the distribution), or by a share of NFS that takes"
    " root's rights away"
)
# errno: (what it means, what is done about it)
_TOLD = {
    "permission denied": (
        "the owner, the mode or the SELinux label of {path}, or of a folder above it, does not let"
        " the program {verb} it",
        _DENIED,
    ),
    "is a directory": (
        "{path} is a folder, where the program needs a file: a setting names the folder without"
        " the file's name, or a mount made a folder of a file that was not there yet",
        "ls -ld {path}: give the setting the path of the file; or stop the program, remove the"
        " empty folder (rmdir {path}), put the file there, and start it again",
    ),
    "not a directory": (
        "a part of {path} is a file, where a folder has to be",
        "namei -l {path} shows which part is a file: move it away, or correct the path",
    ),
    "no such file or directory": (
        "{path} is not there",
        "ls -l {path}, on the machine and, for a program in a container, among its volumes: bring"
        " the file back (from a backup, another machine of the same role, or the installer), or"
        " correct the setting with that path",
    ),
    "exec format error": (
        "{path} is no program for this processor: it is for another architecture, empty or cut off",
        "file {path} and uname -m show which: install the build for this machine again",
    ),
    "text file busy": (
        "{path} is being written while it is to be started",
        "fuser -v {path} names who writes it; wait for its end, or install the program again",
    ),
    "too many levels of symbolic links": (
        "a symbolic link in {path} leads to itself",
        "namei -l {path} shows the link: make it again with the right target",
    ),
}


@dataclass(frozen=True)
class PathError:
    """Error of the kernel about a file.

    clause: what it means; advice: what is done about it
    """

    operation: str
    path: str
    errno: str
    clause: str
    advice: str


def find(text: str) -> PathError | None:
    """Return the last error about a file in a text, or None."""
    matches = list(_ERROR.finditer(text[:LONGEST]))
    if not matches:
        return None
    operation, path, errno = (matches[-1].group(name) for name in ("operation", "path", "errno"))
    operation, errno = operation.lower(), errno.lower()
    is_absent = errno == "no such file or directory"
    is_made = path.startswith(_NOT_OF_A_DISK) or _BOOTSTRAP.search(path) is not None
    if is_absent and (operation in _CHANGES or is_made):
        return None
    clause, advice = (part.format(path=path, verb=_verb(operation)) for part in _TOLD[errno])
    return PathError(operation, path, errno, clause, advice)


def _verb(operation: str) -> str:
    if operation in _EXECUTES:
        return "execute"
    return "write" if operation in _CHANGES else "open"
