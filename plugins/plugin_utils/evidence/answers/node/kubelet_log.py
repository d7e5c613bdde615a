# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `kubelet_log`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KubeletLog:
    """The log lines of kubelet and runtime that matter for faults."""

    lines: tuple[str, ...] = ()
    # warnings and errors of the start of the kubelet that runs; empty where an older release
    # collected
    at_start: tuple[str, ...] = ()
