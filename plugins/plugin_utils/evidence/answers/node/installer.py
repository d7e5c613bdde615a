# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `installer`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Installer:
    """The traces of installers on a host."""

    paths: tuple[str, ...] = ()
    kubelet_exe: str | None = None
    traces: tuple[str, ...] | None = None  # None: an older release collected
    empty_arguments: tuple[str, ...] = ()  # files of flags of MicroK8s without any flag
