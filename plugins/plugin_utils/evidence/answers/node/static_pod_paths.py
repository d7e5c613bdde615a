# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `static_pod_paths`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HostPath:
    """One path of the host.

    kind: file, directory, socket or another sort; missing, denied or an error where there is none
    """

    path: str = ""
    kind: str = ""


@dataclass(frozen=True)
class StaticPodPaths:
    """What lies at the paths of the host that static pods name."""

    paths: tuple[HostPath, ...] = ()
