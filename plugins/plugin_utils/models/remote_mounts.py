# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounts of remote file systems: which are dead, and whose volume each is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..evidence.answers.node.hangs import RemoteMount
from ..evidence.document import one_line

# A mount that answers with one of these serves nothing any more. Of a FUSE file system, ENOTCONN
# says that its program ended.
UNCONNECTED = "ENOTCONN"
_DEAD = {
    UNCONNECTED: "transport endpoint is not connected",
    "EHOSTDOWN": "host is down",
    "ESTALE": "stale file handle",
}
_POD = re.compile(r"/pods/(?P<uid>[0-9a-fA-F-]{1,40})/volumes/[^/]{1,120}/(?P<volume>[^/]{1,253})")
# A blank, a quote or a sign of the shell is in none of them.
_IN_SHELL = re.compile(r"/[A-Za-z0-9_./:@~-]{1,300}")
_ENDS_PATH = re.compile(r"[\s'\":,;]|$")


def is_silent(mount: RemoteMount) -> bool:
    """Tell whether a mount does not answer at all."""
    return mount.answers is False


def reason(mount: RemoteMount) -> str:
    """Return the error with which a dead mount answers, or ""."""
    return _DEAD.get(mount.error or "", "")


def is_well(mount: RemoteMount) -> bool:
    """Tell whether a mount answers, and not with an error that says it is dead."""
    return bool(mount.answers) and not reason(mount)


def is_unserved(mount: RemoteMount) -> bool:
    """Tell whether the program that served a mount has ended."""
    return mount.error == UNCONNECTED


def volume(mount: RemoteMount) -> str:
    """Return the volume and the pod to which a mount belongs, as a clause, or ""."""
    match = _POD.search(mount.point)
    if match is None:
        return ""
    name = one_line(match.group("volume"), 253)
    return f"the volume {name} of the pod with UID {match.group('uid')}"


def quoted(mounts: Iterable[RemoteMount], text: str) -> RemoteMount | None:
    """Return the mount whose own point a text names, or None."""
    return next((mount for mount in mounts if _names(text, mount.point)), None)


def _names(text: str, point: str) -> bool:
    start = text.find(point) if len(point) > 1 else -1
    return start >= 0 and _ENDS_PATH.match(text, start + len(point)) is not None


def described(mount: RemoteMount) -> str:
    """Return what a mount is: source, type and point."""
    source, kind = one_line(mount.source, 200), one_line(mount.type, 40)
    return f"{source} ({kind} at {one_line(mount.point, 200)})"


def in_shell(mount: RemoteMount) -> str:
    """Return the point of a mount as an operator may copy it into a shell."""
    if _IN_SHELL.fullmatch(mount.point):
        return mount.point
    return "PATH"
