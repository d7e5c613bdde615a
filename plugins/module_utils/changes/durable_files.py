# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write kubemend's directory on a node: files appear whole or not at all, also after a power cut.

`/var/lib/kubemend` has mode 0700, its files 0600. A process of kubemend that changes anything on
the node, in the directory or elsewhere, holds its flock. A file without an owner that is found
under the flock therefore belongs to a process that was killed.
"""

import contextlib
import fcntl
import json
import os
import time

from ..state.storage import FLOCK, FOLDER_FLAGS, ChangeError, change_errors, descriptor

WAIT_SECONDS = 15
NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def private_folder(path, parent=None):
    """Return a descriptor of a private directory, made if missing; its name is on the disk then."""
    is_new = True
    try:
        os.mkdir(path, 0o700, dir_fd=parent)
    except FileExistsError:
        is_new = False  # perhaps a moment ago, by one that was killed before it could sync
    no_link = os.O_NOFOLLOW if is_new or parent is not None else 0
    fd = os.open(path, FOLDER_FLAGS | no_link, dir_fd=parent)
    try:
        sync_folder(os.path.dirname(path) if parent is None else parent)
        status = os.fstat(fd)
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise ChangeError(
                f"nothing was changed: the folder {path} belongs to another user or others may"
                " write to it; find out who put it there, remove it and run again"
            )
        if status.st_mode & 0o777 != 0o700:
            os.fchmod(fd, 0o700)
    except BaseException:
        os.close(fd)
        raise
    return fd


def sync_folder(folder):
    """Put the names in a directory (path or descriptor) on the disk."""
    if isinstance(folder, int):
        os.fsync(folder)
        return
    with descriptor(os.open(folder, FOLDER_FLAGS)) as fd:
        os.fsync(fd)


@contextlib.contextmanager
def exclusive(root, wait=WAIT_SECONDS, lead="nothing was changed"):
    """Yield a descriptor of kubemend's directory while no other kubemend process changes this node.

    lead: how the sentence of an error begins.
    """
    unusable = f"{lead}, because {root} cannot be used"
    with change_errors(unusable):
        root_fd = private_folder(root)
        try:
            lock_fd = os.open(
                FLOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=root_fd
            )
        except BaseException:
            os.close(root_fd)
            raise
    with descriptor(root_fd), descriptor(lock_fd):
        end = time.monotonic() + wait
        while not _locked(lock_fd):
            if time.monotonic() >= end:
                raise ChangeError(
                    f"{lead}: another process changes this node (it has held"
                    f" {os.path.join(root, FLOCK)} for {int(wait)} s); let it end and run again"
                )
            time.sleep(0.05)
        with change_errors(unusable):
            yield root_fd


def _locked(fd):
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlink(name, folder):
    """Remove a name if it is there, and return whether it was."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        try:
            os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:  # a read-only filesystem refuses even to remove nothing
            return False
        raise
    return True


def write_new(name, data, folder):
    """Write a new private file with these bytes to the disk."""
    with descriptor(os.open(name, NEW_FLAGS, 0o600, dir_fd=folder)) as fd:
        write_all(fd, data)
        os.fsync(fd)


def write_all(fd, data):
    """Write all of the bytes, however many os.write takes at once."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def temporary(name):
    """Return the name under which a private file is written before it gets its own."""
    return f".{name}.tmp"


def prepare(name, record, folder):
    """Write a record under its temporary name, so that `publish` needs no disk space."""
    unlink(temporary(name), folder)
    try:
        write_new(
            temporary(name),
            (json.dumps(record, indent=1, sort_keys=True) + "\n").encode("ascii"),
            folder,
        )
    except BaseException:
        with contextlib.suppress(OSError):
            unlink(temporary(name), folder)
        raise


def publish(name, folder):
    """Give the prepared record its name, for good."""
    os.rename(temporary(name), name, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)


def put(name, record, folder):
    """Write or replace a record."""
    prepare(name, record, folder)
    publish(name, folder)
