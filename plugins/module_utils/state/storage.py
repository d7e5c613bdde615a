# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubemend's directory on a node: files appear whole or not at all, also after a power cut.

`/var/lib/kubemend` has mode 0700, its files 0600. A process of kubemend that changes anything on
the node, in the directory or elsewhere, holds its flock. A file without an owner that is found
under the flock therefore belongs to a process that was killed.
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
WAIT_SECONDS = 15
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
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


def why(error):
    """Return what an OSError means, and the way out."""
    return WAYS_OUT.get(error.errno) or (
        f"{one_line(error.strerror or error)}; fix that and run again"
    )


@contextlib.contextmanager
def told(sentence):
    """Turn an OSError inside into a ChangeError that begins with the sentence."""
    try:
        yield
    except OSError as error:
        raise ChangeError(f"{sentence}: {why(error)}") from error


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
    with told(unusable):
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
        with told(unusable):
            yield root_fd


def _locked(fd):
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
