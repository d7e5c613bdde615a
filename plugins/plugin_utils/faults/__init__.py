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
    no_writes,
    node_api,
    node_boot,
    node_cgroups,
    node_clock,
    node_firewall,
    node_identity,
    node_runtime,
    node_swap,
    node_way,
    nodes,
    pinning,
    run,
    scheduling,
    scheduling_pending,
    scheduling_tree,
    scheduling_turn,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Fault


def _catalogue(*groups: tuple[Fault, ...]) -> dict[str, Fault]:
    found: dict[str, Fault] = {}
    for fault in (fault for group in groups for fault in group):
        if fault.code in found:
            raise ValueError(f"fault code {fault.code} is used twice")
        found[fault.code] = no_writes.standing(fault)
    return dict(sorted(found.items()))


CATALOGUE = _catalogue(*(module.FAULTS for module in (
    control_plane, kubelet, limits, managers, no_writes, node_api, node_boot, node_cgroups, node_clock, node_firewall, node_identity, node_runtime, node_swap,
    node_way, nodes, pinning, run, scheduling, scheduling_pending, scheduling_tree, scheduling_turn)))
