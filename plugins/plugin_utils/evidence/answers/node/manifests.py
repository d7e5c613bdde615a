# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `manifests`."""

from __future__ import annotations

from dataclasses import dataclass

from ..file_record import FileRecord


@dataclass(frozen=True)
class Manifests:
    """The files of the static pod directory.

    usual: names in kubeadm's folder where the kubelet reads another; None: an older release
    """

    folder: str | None = None
    files: tuple[FileRecord, ...] = ()
    ignored: tuple[str, ...] = ()
    is_mount: bool | None = None
    usual: tuple[str, ...] | None = None
