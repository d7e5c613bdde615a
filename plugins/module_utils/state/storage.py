# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read kubemend's directory on a node, `/var/lib/kubemend`; changes/durable_files.py writes it.

An error of either is a ChangeError: one sentence with the way out.
"""

import contextlib
import errno
import fcntl
import json
import os
import stat
import time

from ..shared.paths import ROOT  # noqa: F401 # pylint: disable=unused-import
from ..system.files import one_line, sha256

FLOCK = "flock"
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
MAX_RECORD = 1024 * 1024

WAYS_OUT = {
    errno.ENOSPC: "no space or no inode is left on its filesystem; make room there and run again",
    errno.EDQUOT: "the quota of its filesystem is used up; make room there and run again",
    errno.EROFS: (
        "its filesystem is read-only; find out why (dmesg), mount it writable and run again"
    ),
    errno.EPERM: (
        "the operation is not permitted; look for chattr +i or +a (lsattr) and a security module's"
        " refusal (ausearch -m avc)"
    ),
    errno.EACCES: (
        "permission is denied; run as root, and look for a security module's refusal (ausearch -m"
        " avc)"
    ),
    errno.EBUSY: (
        "it is a mount of its own (a bind-mounted file), which cannot be replaced; change the file"
        " that is mounted there"
    ),
    errno.EIO: "the disk failed (input/output error); see dmesg",
    errno.EEXIST: "something of that name was made meanwhile; collect evidence again",
    errno.ELOOP: "its symbolic links go round in a circle; fix the links",
    errno.ENOENT: "it or its folder does not exist; collect evidence again",
    errno.ENOTDIR: "a part of its path is no folder; collect evidence again",
}


class ChangeError(Exception):
    """One sentence: what was not done, the reason, the way out.

    changed: whether the file has the new bytes in spite of the error.
    """

    def __init__(self, reason, changed=False):
        super().__init__(one_line(reason, 1000))
        self.changed = changed


def way_out(error):
    """Return what an OSError means, and the way out."""
    return WAYS_OUT.get(error.errno) or (
        f"{one_line(error.strerror or error)}; fix that and run again"
    )


@contextlib.contextmanager
def change_errors(sentence):
    """Turn an OSError inside into a ChangeError that begins with the sentence."""
    try:
        yield
    except OSError as error:
        raise ChangeError(f"{sentence}: {way_out(error)}") from error


@contextlib.contextmanager
def descriptor(fd):
    """Yield a descriptor, and close it at the end."""
    try:
        yield fd
    finally:
        os.close(fd)


def digest(data):
    """Return the bytes' sha256, in hex."""
    return sha256(data).hexdigest()


def now():
    """Return the time as records have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def clock():
    """Return [this node's boot id, the seconds since that boot, suspended time included].

    An age that is measured with it needs no synchronized clocks.
    """
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot, open(
        "/proc/uptime", encoding="ascii"
    ) as up:
        return [boot.read().strip(), float(up.read().split()[0])]


def busy(root):
    """Return whether a process of kubemend changes this node at this moment. Makes no file."""
    try:
        fd = os.open(os.path.join(root, FLOCK), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    with descriptor(fd):
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def read_bytes(name, folder, limit):
    """Return the bytes of a regular file; ValueError when it is something else or larger."""
    with descriptor(
        os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    ) as fd:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("it is no regular file")
        data = read_all(fd, limit)
    if len(data) > limit:
        raise ValueError(f"it has more than {limit:d} bytes")
    return data


def read_all(fd, limit):
    """Read from the beginning, at most one byte more than the limit."""
    os.lseek(fd, 0, os.SEEK_SET)
    parts, size = [], 0
    while size <= limit:
        part = os.read(fd, min(1 << 20, limit + 1 - size))
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def load(name, folder):
    """Return a record as a dict; ValueError when it is none."""
    record = json.loads(read_bytes(name, folder, MAX_RECORD).decode("ascii"))
    if not isinstance(record, dict):
        raise ValueError("it is no record")
    return record
