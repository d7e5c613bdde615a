# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of fstab whose source is not there, so that the next boot cannot mount them."""

import os

from . import files

TAGS = {
    "UUID": "by-uuid",
    "LABEL": "by-label",
    "PARTUUID": "by-partuuid",
    "PARTLABEL": "by-partlabel",
}
# A boot does not wait for these, or goes on without them.
PASSED = ("noauto", "nofail", "_netdev", "x-systemd.automount", "comment=systemd.automount")
# systemd makes the folder of such a mount where it is not there.
BINDS = ("bind", "rbind")
REMOTE = ("nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "ocfs2", "gfs2", "lustre", "davfs")
ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))
# A boot makes these again, with what programs put there.
VOLATILE = ("/run/", "/tmp/", "/proc/", "/sys/", "/dev/shm/")
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-")
MAX_ROWS = 20


def absent(text, container, crypttab="", root=""):
    """Return ([{line, what, point}] without a source, how many lines are not known).

    container: whether the node is a container, where no device of fstab counts.
    """
    rows, unknown = [], 0
    opened_later = {line.split()[0] for line in crypttab.split("\n") if line.split()}
    for number, line in enumerate(text.split("\n"), 1):
        mount = _mount(line)
        if mount is None:
            continue
        path = _source(mount)
        if path is None or path.rpartition("/")[2] in opened_later:
            continue
        state = _is_there(root + path, container)
        if state is None:
            unknown += 1
        elif not state:
            rows.append(
                {
                    "line": number,
                    "what": files.one_line(mount[0], 200),
                    "point": files.one_line(mount[1], 200),
                }
            )
    return rows[:MAX_ROWS], unknown


def _mount(line):
    """Return [what, point, type, options] of a mount that a boot waits for, else None."""
    words = [_plain(word) for word in line.split()]
    if len(words) < 3 or words[0].startswith("#"):
        return None
    options = ",".join(words[3:4]).split(",")
    if not _is_local(words[1], words[2]) or any(option in PASSED for option in options):
        return None
    return [words[0], words[1], words[2], options]


def _is_local(point, kind):
    """Return whether a file system is one of local-fs.target, apart from the root's."""
    if point == "/" or not point.startswith("/"):
        return False
    return kind not in ("swap", "ignore", *REMOTE) and not kind.startswith("fuse")


def _plain(word):
    for escape, char in ESCAPES:
        word = word.replace(escape, char)
    return word


def _source(mount):
    """Return the path of the device that a boot waits for, or None."""
    source, options = mount[0], mount[3]
    tag, equals, value = source.partition("=")
    value = value.strip("\"'")
    if equals and tag in TAGS:
        # udev encodes other characters in the names of its links.
        if value and PLAIN.issuperset(value):
            return f"/dev/disk/{TAGS[tag]}/{value}"
        return None
    if not source.startswith("/") or source.startswith(("//", *VOLATILE)):
        return None
    if any(option in BINDS for option in options):
        return None
    return source


def _is_there(path, container):
    """Return whether a source is there, None where that is not known."""
    if container:
        return None
    folder = os.path.dirname(path)
    if "/dev/disk/" in path and not os.path.isdir(folder):
        return None
    try:
        os.stat(path)
    except OSError as error:
        if files.reason(error) == "missing":
            return False
        return None
    except ValueError:  # a path with a null byte
        return None
    return True
