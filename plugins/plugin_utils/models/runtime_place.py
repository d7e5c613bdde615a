# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a runtime stands on: the file system of its images, the kernel, its default runtime. Pure.

Messages of a runtime name several causes; these facts of the node tell which one it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.cri import Cri, CriConfig
from ..evidence.answers.node.pressure import Pressure
from ..evidence.answers.node.runtime import Runtime
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from ..parsers import release_number

IMAGES, CRIO = "imagefs", "crio"
# Where the kernel makes no overlay, or one without what containers need.
UNFIT = re.compile(r"overlay|aufs|zfs|nfs4?|ecryptfs|fuse(?:blk|\..{1,30})?|9p|virtiofs|vfat|exfat")
METACOPY = (4, 19)  # the first kernel with this option of overlay
_REFUSED = re.compile(
    r"overlay[^\n]{0,700}: (?:invalid argument|no such device|operation not permitted"
    r"|permission denied|not supported)"
    r"|failed to mount rootfs component[^\n]{0,400}: (?:invalid argument|operation not permitted)"
    r"|failed to find snapshotter \\*\"overlayfs\\*\"|snapshotter cannot be enabled",
)
# Messages of a plugin that lacks what only the runtime of NVIDIA gives a container.
WITHOUT_DRIVER = frozenset(("nvml-library-missing",))
_NVIDIA = re.compile(r"nvidia", re.IGNORECASE)


@dataclass(frozen=True)
class RuntimePlace:
    """What a runtime stands on.

    folder, type: of its images, and of their file system; "" where that is not known
    default_runtime: what runs a container of no RuntimeClass, "" where it is not known
    """

    kind: str = ""
    folder: str = ""
    type: str = ""
    kernel: str = ""
    default_runtime: str = ""

    def overlay_clause(self, text: str) -> str:
        """Return which of its causes a refused mount of overlay has here, as a clause, or ""."""
        if not _REFUSED.search(text):
            return ""
        if UNFIT.fullmatch(self.type):
            return f"; {self.folder} of that node is on a file system of the type {self.type}"
        number = release_number.parse(self.kernel.partition("-")[0])
        if self.kind != CRIO or "invalid argument" not in text or number is None:
            return ""
        if number[:2] >= METACOPY or "el8" in self.kernel:
            return ""
        return (
            f"; the kernel {self.kernel} of that node is older than 4.19, and does not know"
            " metacopy=on of mountopt in /etc/containers/storage.conf"
        )

    def driver_clause(self, known_id: str) -> str:
        """Return that the default runtime gives a plugin no driver, as a clause, or ""."""
        if known_id not in WITHOUT_DRIVER or not self.default_runtime:
            return ""
        if _NVIDIA.search(self.default_runtime):
            return ""
        return (
            f"; the default runtime of that node is {self.default_runtime}, which gives a pod"
            " without a RuntimeClass neither GPU nor driver"
        )


def extract(document: Mapping[str, Any]) -> RuntimePlace:
    """Return what the evidence of one node tells of its runtime's place."""
    rows = contract.answer(document, Pressure).filesystems
    images = next((row for row in rows if row.name == IMAGES), None)
    folder, kind = (images.path, images.type or "") if images is not None else ("", "")
    config = contract.answer(document, Cri).config or CriConfig()
    return RuntimePlace(
        contract.answer(document, Runtime).kind or "",
        one_line(folder, 200),
        one_line(kind, 40),
        one_line(contract.answer(document, System).kernel or "", 80),
        one_line(config.default_runtime, 80),
    )
