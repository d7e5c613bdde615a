# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of the node as the write sees it: its bytes with all that a replacement must keep."""

import errno
import os
import stat

from . import storage
from .storage import ChangeError

MAX_SIZE = 16 * 1024 * 1024
# What the kernel computes from the content or the inode itself: copied, they would be wrong.
NOT_COPIED = ("security.ima", "security.evm")


class Place:
    """Where a path leads: a link in its last part is followed once, here, and never again."""

    def __init__(self, path, root):
        if not _is_plain(path):
            raise ChangeError(f"{path} was not changed: only a plain absolute path is")
        self.path = path
        here = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        self.linked = os.path.islink(here)
        self.real = os.path.realpath(here) if self.linked else here
        self.folder, self.name = os.path.split(self.real)
        if (self.real + "/").startswith(os.path.realpath(root) + "/"):
            raise ChangeError(f"{path} was not changed: it belongs to kubemend itself")

    def opened(self):
        """Return a descriptor of its directory."""
        return os.open(self.folder, storage.FOLDER_FLAGS)


class Found:
    """A regular file's bytes, and what a replacement must keep."""

    def __init__(self, data, status, xattrs):
        self.data = data
        self.sha256 = storage.digest(data)
        self.status = status
        self.mode = stat.S_IMODE(status.st_mode)
        self.uid = status.st_uid
        self.gid = status.st_gid
        self.xattrs = xattrs

    def same(self, other):
        """Return whether this is still that very file, unchanged."""
        return (
            other is not None
            and _identity(self.status) == _identity(other.status)
            and self.sha256 == other.sha256
        )


def _is_plain(path):
    """Return whether a path is absolute, normal, and not the root."""
    if not isinstance(path, str) or not os.path.isabs(path) or "\0" in path:
        return False
    return os.path.normpath(path) == path and path != "/"


def _identity(status):
    return (
        status.st_dev,
        status.st_ino,
        status.st_mode,
        status.st_nlink,
        status.st_uid,
        status.st_gid,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def look(place, folder):
    """Return the file at a place, None when there is none.

    The function follows no link, and opens no FIFO or device.
    """
    try:
        status = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            raise ChangeError(
                f"{place.path} was not changed: it is no regular file but {_kind(status.st_mode)};"
                " see what it is, remove it and run again"
            )
        fd = os.open(
            place.name,
            os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC,
            dir_fd=folder,
        )
    except FileNotFoundError:
        return None
    with storage.descriptor(fd):
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_SIZE:
            raise ChangeError(
                f"{place.path} was not changed: it is larger than {MAX_SIZE:d} bytes or no"
                " regular file"
            )
        return Found(storage.read_all(fd, MAX_SIZE), status, xattrs_of(fd))


def _kind(mode):
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISLNK, "a symbolic link that leads nowhere"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((kind for test, kind in kinds if test(mode)), "a device")


def xattrs_of(fd):
    """Return the extended attributes: SELinux label, access lists, capabilities, users' own."""
    try:
        return {name: os.getxattr(fd, name) for name in os.listxattr(fd) if name not in NOT_COPIED}
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        return {}
