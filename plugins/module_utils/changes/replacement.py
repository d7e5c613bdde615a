# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the bytes that replace a file, with everything else that the file has."""

import os

from ..state import storage
from ..state.file_target import xattrs_of
from . import durable_files

SELINUX = "security.selinux"


def write_temporary(name, data, folder, keep):
    """Write the new bytes to a file in the same folder, with the owner, mode and xattrs of `keep`.

    The bytes are on the disk afterwards. No xattrs are set where those of `keep` are None.
    """
    with storage.descriptor(os.open(name, durable_files.NEW_FLAGS, 0o600, dir_fd=folder)) as fd:
        durable_files.write_all(fd, data)
        os.fchown(fd, keep.uid, keep.gid)
        if keep.xattrs is not None:
            _set_xattrs(fd, keep.xattrs)
        os.fchmod(fd, keep.mode)
        os.fsync(fd)


def _set_xattrs(fd, expected):
    present = xattrs_of(fd)
    for name in present:
        if name not in expected and name != SELINUX:  # what the folder's defaults gave it
            os.removexattr(fd, name)
    for name, value in sorted(expected.items()):
        if present.get(name) != value:
            os.setxattr(fd, name, value)
