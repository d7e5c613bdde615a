# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which image a node's runtime makes sandboxes of, and what sets it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..evidence import contract
from ..evidence.answers.node.cri import Cri, CriConfig
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.runtime import Runtime
from ..parsers import pflag
from . import containerd_merge, containerd_tables

FLAG, DOCKER = "pod-infra-container-image", "docker"


class SandboxSetting(NamedTuple):
    """The image of sandboxes by the runtime's configuration, and where that says so.

    is_present: whether the runtime has it, None where it does not tell
    """

    image: str = ""
    place: str = ""
    is_present: bool | None = None


def extract(document: Mapping[str, Any]) -> SandboxSetting:
    """Return the setting of a host, an empty one where nothing tells it."""
    cri = contract.answer(document, Cri)
    config = cri.config or CriConfig()
    if config.sandbox_image_by:
        place = config.sandbox_image_by
        return SandboxSetting(config.sandbox_image, place, config.sandbox_image_present)
    if contract.answer(document, Runtime).kind == DOCKER:
        image = pflag.string_flag(contract.answer(document, Kubelet).argv, FLAG)
        if not image:
            return SandboxSetting()
        return SandboxSetting(image, f"--{FLAG} of the kubelet")
    image, place = _of_containerd(cri)
    return SandboxSetting(config.sandbox_image or image, place, config.sandbox_image_present)


def _of_containerd(cri: Cri) -> tuple[str, str]:
    """Return (image, file and line) of the last line that sets it and is read."""
    image, place, dropped = "", "", containerd_merge.dropped(cri)
    for file in cri.files:
        for line in file.lines:
            is_read = containerd_merge.of_line(dropped, file, line) is None
            if is_read and is_of_sandbox(line.table, line.key):
                image, place = line.value.strip("\"'"), f"{file.path}:{line.line}"
    return image, place


def is_of_sandbox(table: str, key: str) -> bool:
    """Tell whether a key of containerd's configuration is the image of sandboxes."""
    if key == containerd_tables.SANDBOX:
        return table.endswith("pinned_images")
    return key == containerd_tables.SANDBOX_IMAGE
