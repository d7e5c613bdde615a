# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own folder on a node, whose files appear whole or not at all, also after a power cut.

`/var/lib/kubemend` is 0700, its files 0600. Whoever changes anything on the node, in it or
elsewhere, holds its flock: nothing of ours runs beside it, so what lies there under the flock
without an owner was left by one that was killed.
"""

import contextlib
import errno
import fcntl
import json
import os
import stat
import time

from ..shared.paths import ROOT  # noqa: F401 - the packages above take it from here
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
    errno.ELOOP: "its symbolic links go round in a circle; mend the links",
    errno.ENOENT: "it or its folder does not exist; collect evidence again",
    errno.ENOTDIR: "a part of its path is no folder; collect evidence again",
}


class ChangeError(Exception):
    """One sentence: what was not done, why, the way out.

    `changed` is whether the file holds the new bytes nevertheless.
    """

    def __init__(self, reason, changed=False):
        super().__init__(one_line(reason, 1000))
        self.changed = changed


def why(error):
    """What an OSError means, and the way out."""
    return WAYS_OUT.get(error.errno) or "{}; mend that and run again".format(
        one_line(error.strerror or error)
    )


@contextlib.contextmanager
def told(sentence):
    """An OSError inside becomes a ChangeError that begins with the sentence."""
    try:
        yield
    except OSError as error:
        raise ChangeError(f"{sentence}: {why(error)}")


@contextlib.contextmanager
def descriptor(fd):
    """The descriptor, closed at the end."""
    try:
        yield fd
    finally:
        os.close(fd)


def digest(data):
    """The bytes' sha256, in hex."""
    return sha256(data).hexdigest()


def now():
    """The time as records have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def clock():
    """[this node's boot id, the seconds since that boot, suspended time included].

    An age that no clock needs to agree on.
    """
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot, open(
        "/proc/uptime", encoding="ascii"
    ) as up:
        return [boot.read().strip(), float(up.read().split()[0])]


def private_folder(path, parent=None):
    """A descriptor of a folder that is ours alone, made if it is missing, and its name on the
    disk in any case.
    """
    made = True
    try:
        os.mkdir(path, 0o700, dir_fd=parent)
    except FileExistsError:
        made = False  # perhaps a moment ago, by one that was killed before it could sync
    no_link = os.O_NOFOLLOW if made or parent is not None else 0
    fd = os.open(path, FOLDER_FLAGS | no_link, dir_fd=parent)
    try:
        sync_folder(os.path.dirname(path) if parent is None else parent)
        found = os.fstat(fd)
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise ChangeError(
                f"nothing was changed: the folder {path} belongs to somebody else or others may"
                " write to it; find out who put it there, remove it and run again"
            )
        if found.st_mode & 0o777 != 0o700:
            os.fchmod(fd, 0o700)
    except BaseException:
        os.close(fd)
        raise
    return fd


def sync_folder(folder):
    """Make the names in a folder (path or descriptor) last."""
    if isinstance(folder, int):
        os.fsync(folder)
        return
    with descriptor(os.open(folder, FOLDER_FLAGS)) as fd:
        os.fsync(fd)


@contextlib.contextmanager
def exclusive(root, wait=WAIT_SECONDS, lead="nothing was changed"):
    """A descriptor of our folder while nobody else of us changes anything on this node. lead.

    How a refusal begins.
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
                    "%s: another process changes this node (it has held %s for %d s); "
                    "let it end and run again" % (lead, os.path.join(root, FLOCK), wait)
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
    """Whether somebody of us is changing this node at this moment. Makes no file."""
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
    """Remove a name if it is there; whether it was."""
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
    """A new file of ours with these bytes, on the disk."""
    with descriptor(os.open(name, NEW_FLAGS, 0o600, dir_fd=folder)) as fd:
        write_all(fd, data)
        os.fsync(fd)


def write_all(fd, data):
    """os.write until nothing is left."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def temporary(name):
    """Under which name a file of ours is written before it gets its own."""
    return f".{name}.tmp"


def prepare(name, record, folder):
    """Write a record under its temporary name: later, `publish` needs no space any more."""
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
    """The bytes of a regular file; ValueError when it is something else or larger."""
    with descriptor(
        os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    ) as fd:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("it is no regular file")
        data = read_all(fd, limit)
    if len(data) > limit:
        raise ValueError("it has more than %d bytes" % limit)
    return data


def read_all(fd, limit):
    """From its beginning, at most one byte more than the limit."""
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
    """A record as dict; ValueError when it is none."""
    record = json.loads(read_bytes(name, folder, MAX_RECORD).decode("ascii"))
    if not isinstance(record, dict):
        raise ValueError("it is no record")
    return record
