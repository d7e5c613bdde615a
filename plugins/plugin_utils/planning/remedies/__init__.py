# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The remedy of each fault that has one: from its finding to steps, or the reason why not."""

from __future__ import annotations

from ..plan import Remedy
from . import (
    boot,
    certificates,
    control_plane,
    cpu_manager_reset,
    etcd_space,
    kernel_settings,
    maintenance,
    next_start,
    rejected_pods,
    scheduler_restart,
    services,
    swap,
    workload_patch,
)

AREAS = (
    certificates,
    control_plane,
    maintenance,
    rejected_pods,
    cpu_manager_reset,
    workload_patch,
    kernel_settings,
    services,
    swap,
    boot,
    scheduler_restart,
    etcd_space,
    next_start,
)


def _registry() -> dict[str, Remedy]:
    """Return the remedies of all areas by fault; two of one fault are an error."""
    remedies: dict[str, Remedy] = {}
    for area in AREAS:
        doubled = remedies.keys() & area.REMEDIES.keys()
        if doubled:
            raise ValueError(f"{sorted(doubled)} have two remedies")
        remedies.update(area.REMEDIES)
    return remedies


REMEDIES = _registry()
