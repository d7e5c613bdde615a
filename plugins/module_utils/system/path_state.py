# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies at a path: its kind, owner and mode, the folders above it and its mount."""

import os
import stat

from ..shared.program_kinds import EMPTY, NO_PROGRAM, SCRIPT
from . import files

KINDS = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "directory"),
    (stat.S_ISLNK, "link"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISBLK, "block device"),
    (stat.S_ISCHR, "character device"),
)
# e_machine of elf(5), by the name that uname prints
PROCESSORS = {
    3: "i686",
    8: "mips",
    21: "ppc64",
    22: "s390x",
    40: "arm",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    258: "loongarch64",
}
BIG_ENDIAN = 2
MISSING, DENIED, OTHER = "missing", "denied", "other"
MAX_ENTRIES = 1000  # of a folder that are counted
GET_FLAGS, IMMUTABLE = 0x80086601, 0x10  # FS_IOC_GETFLAGS of ioctl_iflags(2), on 64 bits


def read(path, mounts):
    """Return the state of a path.

    It is {path, kind, target, uid, gid, owner, group, mode, entries, changed, immutable, above,
    above_kind, above_owner, above_mode, closed, closed_mode, closed_owner, mount, mount_type,
    mount_options}.

    target: where a link leads in the end, also to nothing; kind and the rest are those of the
    target. above: the deepest folder above the path that is there, with its kind, owner and mode,
    where the path is missing; immutable is that of this folder then.
    closed: the first folder above it that only its owner or group may pass.
    mounts: rows of mount_rows.
    """
    row = dict.fromkeys(
        ("target", "uid", "gid", "owner", "group", "mode", "entries", "changed", "above"), None
    )
    row.update(path=path, above_kind=None, above_owner=None, above_mode=None)
    row.update(closed=None, closed_mode=None, closed_owner=None)
    row.update(immutable=None, mount=None, mount_type=None, mount_options=None)
    real = os.path.realpath(path)
    if real != path:
        row["target"] = real[:512]
    row["kind"], status = _lookup(real)
    if status is not None:
        row.update(_owner(status), mode=_mode(status), changed=round(status.st_ctime, 3))
        row.update(entries=_entries(real, row["kind"]), immutable=is_immutable(real, row["kind"]))
    else:
        row.update(_above(real))
    row.update(_closed(real))
    row.update(_mount(real, mounts))
    return row


def program_of(path):
    """Return the processor of a program, or EMPTY, SCRIPT or NO_PROGRAM; None where unreadable."""
    try:
        descriptor = files.opened(path)
    except OSError:
        return None
    try:
        head = os.read(descriptor, 20)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if not head:
        return EMPTY
    if head[:2] == b"#!":
        return SCRIPT
    if head[:4] != b"\x7fELF" or len(head) < 20:
        return NO_PROGRAM
    number = int.from_bytes(head[18:20], "little")
    if head[5] == BIG_ENDIAN:
        number = int.from_bytes(head[18:20], "big")
    return PROCESSORS.get(number, f"machine {number}")


def kind_of(mode):
    """Return the name of a type of file."""
    return next((name for is_kind, name in KINDS if is_kind(mode)), OTHER)


def _lookup(path):
    """Return (kind, status) of a path; the status is None where nothing is told."""
    try:
        status = os.lstat(path)
    except OSError as error:
        if files.reason(error) == DENIED:
            return DENIED, None
        return MISSING, None
    except ValueError:
        return MISSING, None
    return kind_of(status.st_mode), status


def _above(path):
    """Return the deepest folder above a path that is there: its kind, owner and mode."""
    while path not in ("", "/"):
        path = os.path.dirname(path)
        kind, status = _lookup(path)
        if status is not None:
            return {
                "above": path,
                "above_kind": kind,
                "above_owner": "{owner}:{group}".format(**_owner(status)),
                "above_mode": _mode(status),
                "immutable": is_immutable(path, kind),
            }
    return {}


def _closed(path):
    """Return the first folder above a path that not every user may pass."""
    parts = path.split("/")[1:-1]
    for count in range(1, len(parts) + 1):
        folder = "/" + "/".join(parts[:count])
        kind, status = _lookup(folder)
        if status is None:
            break
        if kind == "directory" and not status.st_mode & stat.S_IXOTH:
            owner = _owner(status)["owner"]
            return {"closed": folder, "closed_mode": _mode(status), "closed_owner": owner}
    return {}


def _mode(status):
    return f"{stat.S_IMODE(status.st_mode):04o}"


def _owner(status):
    """Return the user and the group of a file, by number and name."""
    import grp
    import pwd

    names = {}
    for key, read_name, number in (
        ("owner", _user(pwd), status.st_uid),
        ("group", _group(grp), status.st_gid),
    ):
        try:
            names[key] = read_name(number)[:64]
        except (KeyError, OSError, UnicodeError):
            names[key] = str(number)
    return dict(names, uid=status.st_uid, gid=status.st_gid)


def _user(pwd):
    return lambda number: pwd.getpwuid(number).pw_name


def _group(grp):
    return lambda number: grp.getgrgid(number).gr_name


def _entries(path, kind):
    """Return how many entries a folder has, at most MAX_ENTRIES; None for anything else."""
    if kind != "directory":
        return None
    try:
        with os.scandir(path) as entries:
            return sum(1 for _number, _entry in zip(range(MAX_ENTRIES), entries))
    except OSError:
        return None


def is_immutable(path, kind):
    """Return whether no one may change a file (chattr +i); None where that is not told."""
    if kind not in ("file", "directory"):
        return None
    import fcntl
    import struct

    try:
        descriptor = os.open(path, files.FLAGS)
    except OSError:
        return None
    try:
        flags = fcntl.ioctl(descriptor, GET_FLAGS, struct.pack("l", 0))
        return bool(struct.unpack("l", flags)[0] & IMMUTABLE)
    except (OSError, struct.error):
        return None
    finally:
        os.close(descriptor)


def mount_rows(text):
    """Return [(mount point, type, options)] of a mountinfo, in its order."""
    rows = []
    for line in text.splitlines():
        head, _dash, tail = line.partition(" - ")
        fields, words = head.split(" "), tail.split(" ")
        if len(fields) > 5 and len(words) > 2:
            point = fields[4].replace("\\040", " ").replace("\\134", "\\")
            options = fields[5].split(",")
            # the file system itself may be read-only where this mount of it is not
            if "ro" in words[2].split(",") and "ro" not in options:
                options.append("ro")
            rows.append((point, words[0], options))
    return rows


def _mount(path, mounts):
    """Return the mount that a path lies on: the deepest, and of several there the last."""
    best = None
    for point, kind, options in mounts:
        base = point.rstrip("/")
        if (path + "/").startswith(base + "/") and (best is None or len(base) >= best[0]):
            best = (len(base), point, kind, options)
    if best is None:
        return {}
    kept = [word for word in best[3] if word in ("ro", "rw", "noexec", "nosuid")]
    return {"mount": best[1][:512], "mount_type": best[2][:40], "mount_options": ",".join(kept)}
