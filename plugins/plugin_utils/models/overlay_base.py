# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a kernel refuses the overlay mounts of containers, by what is known of the machine. Pure.

The message of such a mount is the same for each of the reasons. The file system below the folder of
the runtime, and the release of the kernel, tell which of them it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.boot import Boot
from ..evidence.answers.node.pressure import Pressure
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from ..parsers import release_number

# Documentation/filesystems/overlayfs.rst: the upper folder needs what these do not have.
_CARRIES_NONE = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "overlay", "aufs", "vfat", "exfat")
    + ("ecryptfs", "squashfs", "iso9660", "hfsplus", "lustre", "afs", "virtiofs")
)
_FUSE, _OVERLAY = "fuse", "overlay"
_INVALID = "invalid argument"
# The kernel that has metacopy first. The packages of CRI-O and podman set it in storage.conf.
_METACOPY, _STORAGE = (4, 19), "/var/lib/containers/storage"
_REFUSED = re.compile(
    r"error creating overlay mount to (?P<path>/\S{1,200})"
    r"|snapshotter cannot be enabled for \\*\"(?P<folder>/[^\"\\]{1,200})"
    r"|failed to mount (?:overlay|rootfs component)"
)
_FOLDER = "/var/lib/containerd"


@dataclass(frozen=True)
class Base:
    """What the containers of a machine stand on.

    mounts: (where it is mounted, its type, its source); of two at one place the first counts
    kernel: the release of the kernel
    """

    mounts: tuple[tuple[str, str, str], ...] = ()
    kernel: str = ""


@dataclass(frozen=True)
class Reason:
    """Why an overlay mount is refused: a clause, and what to do."""

    clause: str
    advice: str


def extract(document: Mapping[str, Any]) -> Base:
    """Return what the containers of a host stand on."""
    mounts = [
        (mount.point, one_line(mount.type, 40), one_line(mount.source, 120))
        for mount in contract.answer(document, Boot).mounts or ()
    ]
    mounts += [
        (row.mount or "", one_line(row.type or "", 40), one_line(row.device or "", 120))
        for row in contract.answer(document, Pressure).filesystems
    ]
    kernel = one_line(contract.answer(document, System).kernel or "", 80)
    return Base(tuple(row for row in mounts if row[0] and row[1]), kernel)


def reason(base: Base, text: str) -> Reason | None:
    """Return why the kernel refuses the overlay mount that a message tells of, or None."""
    refused = _REFUSED.search(text)
    if refused is None or _INVALID not in text:
        return None
    folder = refused.group("path") or refused.group("folder") or _FOLDER
    mount = _below(base.mounts, folder)
    if mount is not None and _carries_none(mount[1]):
        return _on(folder, *mount)
    number = release_number.parse(base.kernel)
    if folder.startswith(_STORAGE) and number is not None and number[:2] < _METACOPY:
        return _too_old(base.kernel)
    return None


def _below(mounts: Iterable[tuple[str, str, str]], folder: str) -> tuple[str, str, str] | None:
    """Return the mount on which a folder lies."""
    above = [row for row in mounts if f"{folder}/".startswith(f"{row[0].rstrip('/')}/")]
    return max(above, key=lambda row: len(row[0]), default=None)


def _carries_none(kind: str) -> bool:
    return kind in _CARRIES_NONE or kind == _FUSE or kind.startswith(f"{_FUSE}.")


def _on(folder: str, point: str, kind: str, source: str) -> Reason:
    system = f"{kind} ({source} at {point})"
    if kind == _OVERLAY:
        system = f"an overlay itself ({point})"
    place = one_line(folder, 200)
    return Reason(
        f"the folder of the runtime ({place}) is on {system}, on which the kernel makes no overlay"
        f" mount ({_INVALID})",
        "give that folder ext4 or XFS (ftype=1) of a local disk, of iSCSI, or of an image file that"
        " is mounted by loop, and let the runtime start on it with nothing in it; or another"
        " snapshotter (native copies each layer; fuse-overlayfs does not work on NFS either)",
    )


def _too_old(kernel: str) -> Reason:
    return Reason(
        f"the kernel {kernel} is older than 4.19, and does not know the mount option metacopy=on,"
        " which mountopt in /etc/containers/storage.conf has where the packages of CRI-O or podman"
        f" wrote it ({_INVALID})",
        "grep -n mountopt /etc/containers/storage.conf /usr/share/containers/storage.conf on the"
        ' node: take metacopy=on out (mountopt = "nodev") and systemctl restart crio, or boot a'
        " kernel from 4.19 on; journalctl -k -g overlayfs has the option that the kernel does not"
        " know",
    )
