# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel of a node says of the remote storage whose volumes pods wait for. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.kernel_log import KernelLine, KernelLog

KINDS = ("storage", "client")
COUNT = 3  # of a line in an hour; fewer may be chance
# Of a message about a volume, and of the lines of the client in the kernel that mounts it.
_CLIENTS = (
    (re.compile(r"\brbd\b|ceph|\bRook\b"), re.compile(r"(?:lib)?ceph: |rbd: ")),
    (re.compile(r"\bnfs\b|mount\.nfs|NFS"), re.compile(r"nfs4?: |NFS: ")),
    (re.compile(r"\bcifs\b|mount\.cifs|\bsmb\b"), re.compile(r"CIFS")),
)


def lines(document: Mapping[str, Any]) -> tuple[KernelLine, ...]:
    """Return what the kernel said often of remote storage, the newest first."""
    rows = contract.answer(document, KernelLog).rows
    kept = [row for row in rows if row.kind in KINDS and row.count >= COUNT]
    return tuple(sorted(kept, key=lambda row: row.last or 0.0, reverse=True))


def about(rows: Iterable[KernelLine], message: str) -> KernelLine | None:
    """Return the newest line about the storage that a message about a volume is about, or None."""
    kinds = [client for volume, client in _CLIENTS if volume.search(message)]
    return next((row for row in rows if any(kind.match(row.line) for kind in kinds)), None)
