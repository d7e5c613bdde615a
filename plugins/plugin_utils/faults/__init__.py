# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: the catalogue of faults: every literal, by code."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    control_plane,
    kubelet,
    limits,
    managers,
    node_api,
    node_runtime,
    node_swap,
    nodes,
    pinning,
    run,
    scheduling,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Fault


def _catalogue(*groups: tuple[Fault, ...]) -> dict[str, Fault]:
    found: dict[str, Fault] = {}
    for fault in (fault for group in groups for fault in group):
        if fault.code in found:
            raise ValueError(f"fault code {fault.code} is used twice")
        found[fault.code] = fault
    return dict(sorted(found.items()))


CATALOGUE = _catalogue(control_plane.FAULTS, scheduling.FAULTS, managers.FAULTS, pinning.FAULTS, limits.FAULTS, nodes.FAULTS, kubelet.FAULTS,
                       node_api.FAULTS, node_runtime.FAULTS, node_swap.FAULTS, run.FAULTS)
