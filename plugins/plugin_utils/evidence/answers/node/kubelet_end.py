# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `kubelet_end`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KubeletFile:
    """The end of a file in which the kubelet of RKE2, or containerd of k3s and RKE2, writes."""

    path: str = ""
    error: str | None = None
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class KubeletEnd:
    """The last log lines of a kubelet that exited or was restarted recently."""

    unit: str | None = None
    lines: tuple[str, ...] = ()
    # None: the kubelet writes to the journal, or an older release collected
    file: KubeletFile | None = None
    # that of containerd, where the journal of k3s or RKE2 says that it exited
    runtime_file: KubeletFile | None = None
