# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which paths a message names together with an error of the kernel about them.

Programs write the path before the error, in quotes or without, with nothing but the name of a
system call between them.
"""

import re

NO_ENTRY, DENIED, FOLDER = "no such file or directory", "permission denied", "is a directory"
NO_FOLDER, READ_ONLY = "not a directory", "read-only file system"
FORBIDDEN, LOOP = "operation not permitted", "too many levels of symbolic links"
FORMAT = "exec format error"
ERRORS = (NO_ENTRY, DENIED, FOLDER, NO_FOLDER, READ_ONLY, FORBIDDEN, LOOP, FORMAT)
# Words without which no text is searched; C programs begin them with a capital letter.
MARKS = tuple(error[1:] for error in ERRORS)
LONGEST, MOST = 4096, 4  # characters of a text that are read, paths of one text
# Made by the kernel.
_OF_KERNEL = ("/proc/", "/sys/", "/dev/")
# What a runtime says of a container is about its root, and of a pod about its own volumes.
_OF_CONTAINER = ("OCI runtime", "shim task", "/kubelet/pods/", "/rootfs/", "runc create")
_FORM = re.compile(
    r"(?<![\w./:-])(?P<path>/[^\s\x00-\x1f:\"'`\\,;()\[\]<>]{1,255})[\\\"'`\u2019)]{0,4}:"
    r" (?:(?:open|read|stat|lstat|connect|bind|mkdir|exec|failed): ){0,2}(?P<error>"
    + "|".join(ERRORS)
    + r")",
    re.IGNORECASE,
)


def find(text):
    """Return [(path, error)] of the paths that a text names, the last one first."""
    if not any(mark in text for mark in MARKS) or any(word in text for word in _OF_CONTAINER):
        return []
    rows = [
        (match.group("path").rstrip("/") or "/", match.group("error").lower())
        for match in _FORM.finditer(text[:LONGEST])
    ]
    rows = [row for row in rows if not row[0].startswith(_OF_KERNEL)]
    return list(dict.fromkeys(reversed(rows)))[:MOST]
