# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `system_pods`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SystemPod:
    """A container of the cluster's own pods that was started again and again."""

    namespace: str = ""
    pod: str = ""
    container: str = ""
    restart: int = 0
    begun: float | None = None
    written: float | None = None
    path: str | None = None
    first: float | None = None
    last: float | None = None
    lines: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class SystemPods:
    """The cluster's own pods on this host whose containers end again and again."""

    pods: tuple[SystemPod, ...] = ()
    more: int = 0
